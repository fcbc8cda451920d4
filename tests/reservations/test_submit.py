"""What happens when racks are asked for?"""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from allocations.errors import Invalid, NotAllowed, WrongState
from allocations.models import Event, Node, Team
from allocations.services import approvals
from reservations.errors import DoesNotFit, LimitReached
from reservations.models import Hold, Reservation, ReservationPolicy
from reservations.moments import minute_from
from tests.reservations.asks import approved, ask
from tests.reservations.world import DAY, NOW, World, grant, masks_and_holds, two_racks

NOW_MINUTE = minute_from(NOW)


def test_an_ask_holds_its_nodes_provisionally_until_it_is_decided(world: World) -> None:
    reservation = ask(world)
    assert reservation.decision == "requested"
    assert reservation.hold_expires_at == NOW + timedelta(minutes=1440)
    masks, holds = masks_and_holds(reservation)
    assert len(holds) == 36
    assert masks == holds
    assert set(Hold.objects.values_list("is_provisional", flat=True)) == {True}
    world.cluster.refresh_from_db()
    assert (world.cluster.snapshot_version, world.cluster.desired_generation) == (1, 0)
    assert Event.objects.filter(verb="reservation.requested", subject_id=reservation.public_id).count() == 1


def test_two_asks_never_hold_the_same_node(world: World) -> None:
    first = ask(world)
    second = ask(world, actor=world.outsider, team=world.other_team)
    assert not set(first.mask_racks) & set(second.mask_racks)


def test_what_does_not_fit_says_who_is_in_the_way_and_what_would_fit(world: World) -> None:
    holder = approved(world, spec=two_racks(racks=3))
    window = {"earliest_start_minute": minute_from(NOW), "latest_end_minute": minute_from(NOW + 3 * DAY)}
    with pytest.raises(DoesNotFit) as caught:
        ask(world, spec=two_racks(**window))
    assert caught.value.code == "does_not_fit"
    refusal = caught.value.detail["refusal"]
    reason = refusal["reasons"][0]
    assert (reason["code"], reason["missing"], reason["by"][0]["id"]) == ("rack_held", 1, holder.public_id)
    assert f"{holder.public_id} (acme/vision)" in reason["sentence"]
    assert refusal["alternatives"]
    assert Reservation.objects.count() == 1


def test_a_drained_node_is_never_held(world: World) -> None:
    Node.objects.filter(name="sol0001").update(is_drained=True)
    reservation = ask(world, spec=two_racks(racks=3))
    assert not Hold.objects.filter(reservation=reservation, node__name="sol0001").exists()


@pytest.mark.parametrize("name", ["member", "outsider", "approver", "operator", "auditor", "stranger"])
def test_only_a_lead_asks_in_the_name_of_a_team(world: World, name: str) -> None:
    with pytest.raises(NotAllowed):
        ask(world, actor=getattr(world, name))


def test_an_ask_without_an_allocation_says_so(world: World) -> None:
    world.team.allocations.all().delete()
    with pytest.raises(LimitReached) as caught:
        ask(world)
    assert caught.value.code == "no_allocation"
    assert "acme/vision has no allocation of gb200 on sol" in caught.value.sentence


def test_an_allocation_must_cover_the_whole_period(world: World) -> None:
    world.team.allocations.update(end_at=NOW + 2 * DAY)
    with pytest.raises(LimitReached) as caught:
        ask(world)
    assert caught.value.code == "no_allocation"
    assert world.allocation.public_id in caught.value.sentence


def test_an_allocation_of_a_team_above_pays_too(world: World) -> None:
    world.team.allocations.all().delete()
    assert world.team.parent is not None
    above = grant(world.team.parent, world.flavor)
    assert ask(world).allocation == above


def test_an_ask_beyond_the_gpu_hours_names_the_number_and_what_fits(world: World) -> None:
    world.team.allocations.update(gpu_hours=6000)
    with pytest.raises(LimitReached) as caught:
        ask(world)
    fault = caught.value.faults[0]
    assert (fault.code, fault.missing, fault.unit) == ("budget_short", 36 * 4 * 72 - 6000.0, "gpu_hours")
    assert "20 of the 36 nodes fit" in fault.sentence


def test_open_asks_earmark_their_gpu_hours(world: World) -> None:
    hours = Decimal(36 * 4 * 72)
    world.team.allocations.update(gpu_hours=hours * 2 - 1)
    ask(world)
    with pytest.raises(LimitReached) as caught:
        ask(world)
    assert caught.value.faults[0].missing == 1.0


def test_own_funding_needs_a_guarantee_that_is_not_reserved_yet(world: World) -> None:
    world.team.allocations.update(guaranteed_gpus=144)
    ask(world, funding="own")
    with pytest.raises(LimitReached) as caught:
        ask(world, funding="own")
    assert (caught.value.code, caught.value.faults[0].missing) == ("budget_short", 144)


def test_reservations_that_do_not_meet_take_the_same_guarantee_one_after_the_other(world: World) -> None:
    world.team.allocations.update(guaranteed_gpus=216)
    one_rack = two_racks(racks=1, duration_minutes=1440, earliest_start_minute=NOW_MINUTE)
    ask(world, funding="own", spec=one_rack)
    ask(world, funding="own", spec=replace(one_rack, earliest_start_minute=NOW_MINUTE + 1440))
    whole = replace(one_rack, racks=2, duration_minutes=2 * 1440)
    ask(world, funding="own", spec=whole)
    with pytest.raises(LimitReached):
        ask(world, funding="own", spec=replace(one_rack, earliest_start_minute=NOW_MINUTE + 1440))


def test_two_teams_do_not_both_take_the_guarantee_of_the_team_above_them(world: World) -> None:
    grant(Team.objects.get(path="acme"), world.flavor, guaranteed_gpus=144)
    ask(world, funding="own")
    with pytest.raises(LimitReached) as caught:
        ask(world, funding="own", team=world.other_team, actor=world.outsider)
    assert (caught.value.code, caught.value.faults[0].missing) == ("budget_short", 144)


def test_reservations_that_do_not_meet_count_once_against_those_at_one_time(world: World) -> None:
    ReservationPolicy.objects.create(name="house", reservable_share_percent=100, active_count=2, open_asks_per_team=9)
    day = two_racks(racks=1, duration_minutes=1440, earliest_start_minute=NOW_MINUTE)
    ask(world, spec=day)
    ask(world, spec=replace(day, earliest_start_minute=NOW_MINUTE + 1440))
    ask(world, spec=replace(day, duration_minutes=2 * 1440))
    with pytest.raises(LimitReached, match="at one time"):
        ask(world, spec=replace(day, earliest_start_minute=NOW_MINUTE + 1440))


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"reservable_share_percent": 30}, "At most 1 of 4 healthy racks"),
        ({"reservable_share_percent": 100, "team_share_percent": 25}, "reserved by acme/vision"),
        ({"reservable_share_percent": 100, "max_duration_minutes": 1440}, "4,320 minutes are more than the 1,440"),
        ({"reservable_share_percent": 100, "rack_hours_ahead": 100}, "100 rack-hours ahead"),
        ({"reservable_share_percent": 100, "horizon_days": 2}, "may end until"),
    ],
)
def test_a_policy_limit_is_said_with_its_number(world: World, limits: dict[str, int], words: str) -> None:
    ReservationPolicy.objects.create(name="house", **limits)
    with pytest.raises(LimitReached) as caught:
        ask(world)
    assert caught.value.code == "policy_limit"
    assert words in caught.value.sentence


def test_one_open_ask_is_allowed_by_default(world: World) -> None:
    ReservationPolicy.objects.create(name="house", reservable_share_percent=100)
    ask(world)
    with pytest.raises(LimitReached, match="1 open ask; it has 1"):
        ask(world)


def test_the_share_counts_provisional_and_approved_holds_of_everyone_at_one_instant(world: World) -> None:
    ReservationPolicy.objects.create(name="house", reservable_share_percent=75, open_asks_per_team=9)
    ask(world, actor=world.outsider, team=world.other_team)
    with pytest.raises(LimitReached, match="At most 3 of 4"):
        ask(world)
    later = two_racks(earliest_start_minute=minute_from(NOW + 3 * DAY))
    assert ask(world, spec=later).decision == "requested"


def test_lead_time_moves_the_start_when_the_window_allows_it(world: World) -> None:
    ReservationPolicy.objects.create(name="house", reservable_share_percent=100, lead_minutes=120)
    assert ask(world).start_at == NOW + timedelta(minutes=120)


def test_a_policy_that_approves_by_itself_makes_the_holds_firm_at_once(world: World) -> None:
    approvals.set_policy(name="small", automatic="approve", steps=(), actor=None, at=NOW)
    reservation = ask(world)
    assert (reservation.decision, reservation.hold_expires_at) == ("approved", None)
    assert reservation.wanted_generation == 1
    assert set(Hold.objects.values_list("is_provisional", flat=True)) == {False}


def test_a_policy_that_refuses_by_itself_gives_its_reason(world: World) -> None:
    approvals.set_policy(name="no", automatic="refuse", reason="Not this week.", steps=(), actor=None, at=NOW)
    with pytest.raises(LimitReached, match="Not this week"):
        ask(world)
    assert Hold.objects.count() == 0


def test_a_hold_that_ran_out_makes_place_for_the_next_ask(world: World) -> None:
    first = ask(world, spec=two_racks(racks=4))
    second = ask(world, spec=two_racks(racks=4), at=NOW + DAY)
    first.refresh_from_db()
    assert first.decision == "lapsed"
    assert second.start_at == NOW + DAY


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"purpose": " "}, "/purpose"),
        ({"purpose": "x" * 501}, "/purpose"),
        ({"funding": "loan"}, "/funding"),
        ({"at_end": "explode"}, "/at_end"),
        ({"at_end": "run_over"}, "/run_over_minutes"),
        ({"spares": "many"}, "/spares"),
        ({"external_id": "x" * 256}, "/external_id"),
        ({"spec": two_racks(racks=1, spare_nodes=18)}, "/spec/spare_nodes"),
    ],
)
def test_wrong_words_point_at_their_field(world: World, more: dict[str, object], pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        ask(world, **more)
    assert caught.value.faults[0].pointer == pointer


def test_an_unknown_flavor_names_the_known_ones(world: World) -> None:
    with pytest.raises(Invalid, match="it has gb200") as caught:
        ask(world, spec=replace(two_racks(), flavor="h100"))
    assert caught.value.code == "unknown_flavor"


def test_an_archived_team_asks_for_nothing(world: World) -> None:
    lead = world.lead
    assert ask(world, actor=lead).pk
    world.team.archived_at = NOW
    with pytest.raises(WrongState, match="archived"):
        ask(world, actor=lead)
