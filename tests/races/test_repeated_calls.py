"""Can one call, sent twice at the same moment, be done twice? (and without the lock, to see that it could)"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import time_machine

from console.api import idempotency
from console.api import reservations as endpoints
from console.models import IdempotencyKey
from reservations.models import Reservation
from tests.api.callers import Caller, caller
from tests.api.test_reservations import wanted
from tests.races.conftest import race
from tests.reservations.world import NOW, World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _frame(settings: Any) -> Any:
    settings.WHITENOISE_AUTOREFRESH = True
    with time_machine.travel(NOW, tick=True):
        yield


@pytest.fixture
def lead(world: World) -> Caller:
    who = caller(world.lead)
    who.get("me")  # notes the token's use, so that no row of it is waited for
    return who


def one_rack(world: World) -> dict[str, Any]:
    return wanted(world, spec={"flavor": "gb200", "racks": 1, "duration_minutes": 60})


def twice(world: World, lead: Caller) -> list[Any]:
    """The same call from two threads, each with a client of its own."""
    content = one_rack(world)
    return race([lambda: Caller(lead.secret).post("reservations", content, key="k-1")] * 2)


def test_of_two_equal_calls_one_is_done_and_the_other_told_to_come_again(
    world: World, lead: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winner is kept busy until the loser has its answer."""
    loser_answered = threading.Event()
    real_lock, real_submit = idempotency.lock, endpoints.submit.submit

    def lock(*given: Any) -> None:
        try:
            real_lock(*given)
        except Exception:
            loser_answered.set()
            raise

    def submit(**given: Any) -> Reservation:
        assert loser_answered.wait(60)
        return real_submit(**given)

    monkeypatch.setattr(idempotency, "lock", lock)
    monkeypatch.setattr(endpoints.submit, "submit", submit)
    won, lost = sorted(twice(world, lead), key=lambda response: response.status_code)
    assert won.status_code == 201
    assert (lost.status_code, lost.json()["code"], lost["Retry-After"]) == (409, "in_flight", "1")
    assert lost.json()["retry"] == "same"
    assert Reservation.objects.count() == IdempotencyKey.objects.count() == 1
    again = lead.post("reservations", one_rack(world), key="k-1")
    assert (again.content, again["Idempotency-Replayed"]) == (won.content, "true")


def test_without_the_lock_both_calls_hold_racks(world: World, lead: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the lock keeps the second from its effect: both looked before either wrote."""
    everyone_looked = threading.Barrier(2)
    real: Callable[..., Any] = idempotency._kept

    def look_together(*given: Any) -> Any:
        kept = real(*given)
        everyone_looked.wait(60)
        return kept

    submitted: list[Reservation] = []
    real_submit = endpoints.submit.submit

    def submit(**given: Any) -> Reservation:
        submitted.append(real_submit(**given))
        return submitted[-1]

    monkeypatch.setattr(idempotency, "lock", lambda *given: None)
    monkeypatch.setattr(idempotency, "_kept", look_together)
    monkeypatch.setattr(endpoints.submit, "submit", submit)
    statuses = sorted(response.status_code for response in twice(world, lead))
    # The deed ran twice; the constraint idempotency_key_once is the last referee and breaks the second off.
    assert len(submitted) == 2
    assert statuses == [201, 500]
    assert Reservation.objects.count() == 1


def test_a_killed_call_leaves_its_key_free(world: World, lead: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """The effect was written and not committed: neither it nor the key is there."""
    real = idempotency._keep

    def die(*given: Any) -> None:
        raise RuntimeError("the process is gone")

    monkeypatch.setattr(idempotency, "_keep", die)
    assert lead.post("reservations", one_rack(world), key="k-1").status_code == 500
    assert Reservation.objects.count() == IdempotencyKey.objects.count() == 0
    monkeypatch.setattr(idempotency, "_keep", real)
    assert lead.post("reservations", one_rack(world), key="k-1").status_code == 201
