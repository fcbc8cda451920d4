"""Is a change by somebody's hand seen, told once, and put back or asked about?"""

from pathlib import Path

import pytest

from allocations.models import Cluster
from console.models import ClusterEndpoint, ObservedObject, PushPlan
from console.push import control
from reservations.models import Reservation
from tests.push.passes import RESERVATIONS, fresh, push, told, written
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World


@pytest.fixture
def reservation(world: World, endpoint: ClusterEndpoint) -> Reservation:
    """One that stands, verified."""
    reservation = approved(world)
    assert push(endpoint).ended == "verified"
    return reservation


def delete_by_hand(folder: Path) -> None:
    (folder / RESERVATIONS).write_text("")


def edit_by_hand(folder: Path) -> None:
    path = folder / RESERVATIONS
    path.write_text(path.read_text().replace("sol[0001-0008]", "sol[0001-0007]"))


def test_a_reservation_deleted_by_hand_is_told_and_put_back(
    reservation: Reservation, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    before = written(tmp_path)
    delete_by_hand(tmp_path)
    outcome = push(endpoint)
    assert outcome.ended == "verified"
    assert written(tmp_path) == before
    (sentence,) = told("push.drift_found")
    assert f"berth-{reservation.public_id} is gone from sol by hand" in sentence
    assert outcome.plan is not None and outcome.plan.is_drift
    push(endpoint)
    assert len(told("push.drift_found")) == 1


def test_a_reservation_changed_by_hand_is_told_and_put_back(
    reservation: Reservation, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    before = written(tmp_path)
    edit_by_hand(tmp_path)
    assert push(endpoint).ended == "verified"
    assert written(tmp_path) == before
    (sentence,) = told("push.drift_found")
    assert "was changed on sol by hand" in sentence


def test_what_was_approved_anew_is_no_drift(world: World, reservation: Reservation, endpoint: ClusterEndpoint) -> None:
    approved(world)
    outcome = push(endpoint)
    assert outcome.ended == "verified"
    assert outcome.plan is not None and not outcome.plan.is_drift
    assert told("push.drift_found") == []


def test_a_cluster_that_asks_goes_on_asking_until_somebody_says_yes(
    world: World, reservation: Reservation, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    Cluster.objects.update(drift_policy="ask")
    before = written(tmp_path)
    edit_by_hand(tmp_path)
    for _ in range(3):
        outcome = push(endpoint)
        assert outcome.ended == "waiting"
        assert "asks before" in outcome.sentence
        assert "sol[0001-0007]" in written(tmp_path)
    assert len(told("push.drift_found")) == 1
    assert ObservedObject.objects.get(object_class="reservation").state == "drifted"
    control.agree(plan=PushPlan.objects.get(state="waiting"), actor=world.operator, at=NOW)
    assert push(endpoint).ended == "verified"
    assert written(tmp_path) == before


def test_a_no_to_putting_back_leaves_the_change_and_shows_it(
    world: World, reservation: Reservation, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    Cluster.objects.update(drift_policy="ask")
    edit_by_hand(tmp_path)
    push(endpoint)
    control.discard(plan=PushPlan.objects.get(state="waiting"), actor=world.operator, at=NOW)
    for _ in range(2):
        assert push(endpoint).ended == "differs"
    assert "sol[0001-0007]" in written(tmp_path)
    assert fresh(endpoint).state == "drifted"


def test_a_broken_file_is_never_taken_for_an_empty_cluster(
    reservation: Reservation, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    broken = "half a line of somebody else\n"
    (tmp_path / RESERVATIONS).write_text(broken)
    outcome = push(endpoint)
    assert outcome.ended == "failed"
    assert written(tmp_path) == broken
    assert told("push.drift_found") == []
