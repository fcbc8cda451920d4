"""Can an ask be decided twice, or taken back while it is approved?"""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from allocations.errors import DomainError
from allocations.models import Cluster, Decision, Event
from reservations.models import Hold, Reservation
from reservations.services import approve as approving
from reservations.services import withdraw as withdrawing
from reservations.services.approve import approve
from reservations.services.reject import reject
from reservations.services.withdraw import withdraw
from tests.races.conftest import race
from tests.reservations.asks import ask
from tests.reservations.world import NOW, World, two_racks

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 3


def codes(results: list[Any]) -> list[str]:
    return [one.code if isinstance(one, DomainError) else type(one).__name__ for one in results]


def test_approval_and_withdrawal_at_once_end_in_one_of_them(world: World) -> None:
    for _ in range(ROUNDS):
        one = ask(world, spec=two_racks(racks=1, duration_minutes=60))
        results = race(
            [
                lambda one=one: approve(reservation=one, actor=world.approver, at=NOW),  # type: ignore[misc]
                lambda one=one: withdraw(reservation=one, actor=world.lead, at=NOW),  # type: ignore[misc]
            ]
        )
        assert sorted(codes(results)) == ["Reservation", "wrong_state"]
        one.refresh_from_db()
        firm = Hold.objects.filter(reservation=one, released_at=None, is_provisional=False).count()
        assert (one.decision, firm) in {("approved", 4), ("withdrawn", 0)}
        told = Event.objects.filter(subject_kind="reservation", subject_id=one.public_id).exclude(
            verb="reservation.requested"
        )
        assert [event.verb for event in told] == [f"reservation.{one.decision}"]


def test_two_approvers_at_once_approve_it_once(world: World) -> None:
    one = ask(world)
    results = race(
        [
            lambda: approve(reservation=one, actor=world.approver, at=NOW),
            lambda: approve(reservation=one, actor=world.colleague, at=NOW),
        ]
    )
    assert sorted(codes(results)) == ["Reservation", "wrong_state"]
    assert Decision.objects.count() == 1
    assert Cluster.objects.get(pk=world.cluster.pk).desired_generation == 1


def test_a_yes_and_a_no_at_once_leave_one_decision(world: World) -> None:
    one = ask(world)
    results = race(
        [
            lambda: approve(reservation=one, actor=world.approver, at=NOW),
            lambda: reject(reservation=one, actor=world.colleague, at=NOW, reason="No."),
        ]
    )
    assert sorted(codes(results)) == ["Reservation", "wrong_state"]
    one.refresh_from_db()
    assert one.decision in ("approved", "rejected")
    assert Hold.objects.filter(reservation=one, released_at=None).exists() == (one.decision == "approved")


def test_without_the_lock_approval_and_withdrawal_run_into_each_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look at an open ask, both go on: the one thing that must not happen, and PostgreSQL has to break it up."""
    looked, decided = threading.Barrier(2), threading.Barrier(2)

    def look_together(reservation: Reservation) -> tuple[Cluster, Reservation]:
        rows = Reservation.objects.select_related("team", "flavor", "cluster", "approval_case", "created_by")
        fresh = rows.get(pk=reservation.pk)
        looked.wait(60)
        return fresh.cluster, fresh

    def meet_before(real: Callable[..., Any]) -> Callable[..., Any]:
        def wait_and_do(*given: Any, **more: Any) -> Any:
            decided.wait(60)
            return real(*given, **more)

        return wait_and_do

    one = ask(world)
    monkeypatch.setattr(approving, "locked", look_together)
    monkeypatch.setattr(withdrawing, "locked", look_together)
    monkeypatch.setattr(approving, "take_effect", meet_before(approving.take_effect))
    monkeypatch.setattr(withdrawing, "check", meet_before(withdrawing.check))
    results = race(
        [
            lambda: approve(reservation=one, actor=world.approver, at=NOW),
            lambda: withdraw(reservation=one, actor=world.lead, at=NOW),
        ]
    )
    assert "wrong_state" not in codes(results)
    assert "OperationalError" in codes(results)
