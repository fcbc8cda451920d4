"""Does the third sign say what is true on the cluster, and "verified" only when it was read back?"""

from datetime import timedelta
from typing import Any

import pytest

from allocations.models import Cluster
from console.models import ClusterEndpoint, ObservedObject
from console.web.push_state import needs_look, next_look_seconds, on_cluster_signs
from reservations.models import Reservation
from reservations.services.approve import approve
from reservations.services.cancel import cancel
from reservations.services.submit import submit
from tests.reservations.world import DAY, NOW, World, two_racks

LATER = NOW + timedelta(minutes=1)


@pytest.fixture
def asked(world: World) -> Reservation:
    tomorrow = int((NOW + DAY).timestamp()) // 60
    spec = two_racks(earliest_start_minute=tomorrow)
    return submit(team=world.team, cluster=world.cluster, spec=spec, purpose="x", actor=world.lead, at=NOW)


@pytest.fixture
def approved(world: World, asked: Reservation) -> Reservation:
    return approve(reservation=asked, actor=world.approver, at=NOW)


def endpoint(reservation: Reservation, **more: Any) -> None:
    ClusterEndpoint.objects.update_or_create(
        cluster=reservation.cluster, defaults={"driver": "files", "modes": {"*": "enforce"}, **more}
    )


def applied(reservation: Reservation) -> None:
    """The push verified everything up to the generation that carries the reservation's last change."""
    Cluster.objects.filter(pk=reservation.cluster_id).update(applied_generation=reservation.wanted_generation)


def seen(reservation: Reservation, state: str, name: str | None = None, object_class: str = "Reservation") -> None:
    ObservedObject.objects.create(
        cluster=reservation.cluster,
        object_class=object_class,
        name=name or reservation.name_on_cluster,
        state=state,
        observed_at=LATER,
        since_at=LATER,
    )


def sign(reservation: Reservation, at=LATER):
    fresh = Reservation.objects.select_related("cluster").get(pk=reservation.pk)
    return on_cluster_signs([fresh], at)[fresh.pk]


def test_an_ask_is_not_yet_there(asked):
    assert (sign(asked).state, sign(asked).shape, sign(asked).word) == ("not_due", "ring", "not yet")


def test_a_cluster_without_an_endpoint_is_said_to_have_none(approved):
    assert sign(approved).word == "not connected"


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("idle", "pending"),
        ("verified", "pending"),
        ("applying", "applying"),
        ("converging", "converging"),
        ("waiting", "plan waits"),
        ("failed", "failed"),
        ("unreachable", "unreachable"),
        ("drifted", "only observed"),
    ],
)
def test_it_is_never_verified_before_its_generation_was_applied(approved, state, told):
    endpoint(approved, state=state, verified_at=NOW)
    seen(approved, "in_step")
    assert sign(approved).word == told
    assert needs_look(sign(approved))


def test_it_is_verified_when_it_was_read_back_and_equal(approved):
    endpoint(approved, state="verified", verified_at=LATER)
    applied(approved)
    seen(approved, "in_step")
    found = sign(approved)
    assert (found.state, found.shape, found.word) == ("verified", "tick", "verified 09:01")
    assert not needs_look(found)


@pytest.mark.parametrize("state", ["drifted", "missing"])
def test_what_differs_of_its_own_is_drift_even_at_an_applied_generation(approved, state):
    endpoint(approved, state="verified", verified_at=NOW)
    applied(approved)
    seen(approved, state)
    assert (sign(approved).state, sign(approved).word) == ("drifted", "drift, 1 object")


def test_another_reservations_drift_is_not_its_own(approved):
    endpoint(approved, state="drifted", verified_at=LATER)
    applied(approved)
    seen(approved, "missing", name=f"{approved.name_on_cluster}1")
    assert sign(approved).state == "verified"


def test_objects_in_a_namespace_of_kueue_are_found(approved):
    Cluster.objects.filter(pk=approved.cluster_id).update(kind="kueue")
    endpoint(approved, state="verified", verified_at=LATER)
    applied(approved)
    seen(approved, "missing", name=f"vision/rsv-r-{approved.pk}", object_class="LocalQueue")
    assert sign(approved).state == "drifted"


def test_a_scheduler_without_a_calendar_gets_it_at_its_start(approved):
    Cluster.objects.filter(pk=approved.cluster_id).update(kind="kueue")
    endpoint(approved, state="verified", verified_at=LATER)
    applied(approved)
    assert sign(approved).word == "not due until Tue 5 Jan 09:00"


def test_without_a_calendar_it_is_verified_only_by_a_look_after_its_start(approved):
    Cluster.objects.filter(pk=approved.cluster_id).update(kind="kueue")
    endpoint(approved, state="verified", verified_at=LATER)
    applied(approved)
    begun = approved.start_at + timedelta(seconds=1)
    assert sign(approved, begun).state == "pending"
    endpoint(approved, state="converging", sentence="sol0002 still runs work.", verified_at=LATER)
    assert sign(approved, begun).word == "converging"
    endpoint(approved, state="verified", verified_at=begun)
    assert sign(approved, begun).word == "verified 09:00"


def test_the_page_of_an_open_ask_looks_again_for_the_decision(asked):
    assert next_look_seconds(sign(asked), asked, LATER) == 15


def test_a_page_looks_until_what_ended_is_proved_gone(world, approved):
    endpoint(approved, state="verified", verified_at=LATER)
    applied(approved)
    end = approved.end_at
    assert next_look_seconds(sign(approved, end - timedelta(hours=1)), approved, end - timedelta(hours=1)) == 0
    assert next_look_seconds(sign(approved, end - timedelta(seconds=9)), approved, end - timedelta(seconds=9)) == 10
    assert next_look_seconds(sign(approved, end), approved, end) == 3
    endpoint(approved, state="verified", verified_at=end)
    assert next_look_seconds(sign(approved, end), approved, end) == 0


def test_a_page_looks_again_at_the_start_that_it_waits_for(approved):
    Cluster.objects.filter(pk=approved.cluster_id).update(kind="kueue")
    endpoint(approved, state="verified", verified_at=LATER)
    applied(approved)
    before = approved.start_at - timedelta(seconds=20)
    assert next_look_seconds(sign(approved, before), approved, before) == 21
    endpoint(approved, state="verified", verified_at=approved.start_at)
    assert next_look_seconds(sign(approved, approved.start_at), approved, approved.start_at) == 0


def test_an_unreachable_cluster_is_said_to_be_so_with_its_last_proof(approved):
    endpoint(approved, state="unreachable", sentence="sol has not answered since 08:52.", verified_at=NOW)
    applied(approved)
    found = sign(approved)
    assert found.shape == "cross" and "Last verified Mon 4 Jan 09:00." in found.sentence


def test_a_cancelled_one_goes_and_is_then_proved_gone(world, approved):
    endpoint(approved, state="verified", verified_at=NOW)
    applied(approved)
    seen(approved, "in_step")
    gone = cancel(reservation=approved, actor=world.lead, at=LATER)
    assert sign(gone).state == "pending"
    applied(gone)
    assert sign(gone).word == "going"
    ObservedObject.objects.all().delete()
    endpoint(approved, state="verified", verified_at=LATER + timedelta(minutes=1))
    assert sign(gone).word == "gone, verified 09:02"


def test_a_frozen_cluster_is_not_said_to_be_on_its_way(approved):
    endpoint(approved, state="verified", verified_at=NOW)
    Cluster.objects.filter(pk=approved.cluster_id).update(frozen_at=NOW)
    assert sign(approved).word == "frozen"


def test_the_signs_of_many_cost_two_queries(world, approved, django_assert_num_queries):
    endpoint(approved, state="verified")
    rows = list(Reservation.objects.select_related("cluster"))
    with django_assert_num_queries(2):
        on_cluster_signs(rows * 3, LATER)


def test_a_cluster_that_discloses_no_names_says_none_in_the_sentence_of_its_push(approved):
    endpoint(approved, state="failed", sentence="berth-R-999 of another team stands in the way")
    assert "R-999" in sign(approved).sentence
    Cluster.objects.filter(pk=approved.cluster_id).update(disclosure="bare")
    assert sign(approved).state == "failed" and "R-999" not in sign(approved).sentence
