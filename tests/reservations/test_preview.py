"""What is a person told before anything is sent?"""

import pytest

from allocations.errors import Invalid, NotAllowed
from allocations.models import Cluster, Event
from allocations.services import approvals
from reservations.answers_json import placement_to, refusal_to
from reservations.errors import DoesNotFit, LimitReached
from reservations.models import Reservation, ReservationPolicy
from reservations.moments import minute_from
from reservations.services.preview import Preview, preview
from tests.reservations.asks import approved, ask
from tests.reservations.world import DAY, NOW, World, two_racks


def look(world: World, **more: object) -> Preview:
    given = {"team": world.team, "cluster": world.cluster, "spec": two_racks(), "user": world.lead, "at": NOW}
    return preview(**{**given, **more})  # type: ignore[arg-type]


def test_a_yes_says_where_when_what_it_takes_and_who_must_agree(world: World) -> None:
    answer = look(world)
    assert answer.fits
    assert answer.can_be_asked
    assert answer.placement is not None
    assert answer.cost is not None
    assert (answer.cost.held_gpus, answer.cost.use_gpus, float(answer.cost.gpu_hours)) == (144, 144, 10368.0)
    assert answer.cost.allocation == world.allocation
    assert float(answer.cost.left_after_gpu_hours or 0) == 989_632.0
    assert answer.approval is not None
    assert answer.approval.steps == (("approver", 1),)
    assert len(answer.strip) == 21
    assert answer.strip[0].fits
    states = [cell.state for block in answer.map for rack in block.racks for cell in rack.cells]
    assert (states.count("yours"), states.count("free")) == (36, 36)
    assert {rack.name for block in answer.map for rack in block.racks if rack.is_picked} == set(answer.placement.racks)


def test_a_preview_writes_nothing(world: World) -> None:
    before = Cluster.objects.values_list("snapshot_version", "desired_generation").get()
    look(world)
    assert Cluster.objects.values_list("snapshot_version", "desired_generation").get() == before
    assert (Reservation.objects.count(), Event.objects.count()) == (0, 0)


def test_submit_takes_exactly_what_the_preview_showed(world: World) -> None:
    answer = look(world)
    reservation = ask(world)
    assert answer.placement is not None
    assert sorted(reservation.holds.values_list("node__name", flat=True)) == sorted(answer.placement.nodes)
    assert minute_from(reservation.start_at) == answer.placement.start_minute


def test_a_no_has_reasons_alternatives_strip_and_map(world: World) -> None:
    holder = approved(world, spec=two_racks(racks=3), actor=world.outsider, team=world.other_team)
    window = {"earliest_start_minute": minute_from(NOW), "latest_end_minute": minute_from(NOW + 3 * DAY)}
    answer = look(world, spec=two_racks(**window))
    assert not answer.fits
    assert answer.refusal is not None
    assert answer.refusal.reasons[0].by[0].id == holder.public_id
    assert answer.refusal.alternatives
    assert [bar.fits for bar in answer.strip][:4] == [False, False, False, True]
    assert answer.map
    told = refusal_to(answer.refusal)
    assert told["alternatives"][0]["placement"] == placement_to(answer.refusal.alternatives[0].placement)


def test_a_bare_cluster_names_nobody_in_a_refusal(world: World) -> None:
    holder = approved(world, spec=two_racks(racks=3), actor=world.outsider, team=world.other_team)
    Cluster.objects.update(disclosure="bare")
    window = {"earliest_start_minute": minute_from(NOW), "latest_end_minute": minute_from(NOW + 3 * DAY)}
    answer = look(world, spec=two_racks(**window))
    assert answer.refusal is not None
    cause = answer.refusal.reasons[0].by[0]
    assert (cause.kind, cause.id, cause.team, cause.until_at) == ("reservation", None, None, NOW + 3 * DAY)
    text = str(refusal_to(answer.refusal)) + str(
        [cell for block in answer.map for rack in block.racks for cell in rack.cells]
    )
    assert holder.public_id not in text
    assert "speech" not in text


@pytest.mark.parametrize(
    "prepare",
    [
        lambda world: world.team.allocations.all().delete(),
        lambda world: world.team.allocations.update(gpu_hours=5),
        lambda world: ReservationPolicy.objects.create(name="house"),
        lambda world: approvals.set_policy(name="no", automatic="refuse", reason="No.", steps=(), actor=None, at=NOW),
    ],
)
def test_every_rule_that_submit_would_raise_is_shown_before(world: World, prepare) -> None:  # type: ignore[no-untyped-def]
    prepare(world)
    answer = look(world)
    assert answer.fits
    assert not answer.can_be_asked
    with pytest.raises((LimitReached, DoesNotFit)) as caught:
        ask(world)
    assert answer.faults == caught.value.faults


def test_a_member_may_look_and_is_told_that_a_lead_asks(world: World) -> None:
    assert [fault.code for fault in look(world, user=world.member).faults] == ["not_allowed"]
    for name in ("outsider", "stranger", "operator"):
        with pytest.raises(NotAllowed):
            look(world, user=getattr(world, name))


def test_a_wrong_spec_is_said_with_its_field(world: World) -> None:
    with pytest.raises(Invalid) as caught:
        look(world, spec=two_racks(spare_nodes=18))
    assert caught.value.faults[0].pointer == "/spec/spare_nodes"


def test_an_ask_larger_than_the_fleet_is_answered(world: World) -> None:
    answer = look(world, spec=two_racks(racks=9))
    assert answer.refusal is not None
    assert [reason.code for reason in answer.refusal.reasons] == ["never_possible"]
    assert len(answer.strip) == 21


def test_the_number_of_queries_is_fixed(world: World, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    for _ in range(3):
        approved(world, spec=two_racks(racks=1))
    lead = world.lead
    with django_assert_max_num_queries(32):
        look(world, user=lead)
    with django_assert_max_num_queries(20):
        look(world, user=lead)
