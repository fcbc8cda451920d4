"""Does the chain of seals hold, and does it break where the past was changed?"""

import threading

import pytest
from django.db import connection, transaction

from allocations.events import record
from allocations.models import Event, EventSeal
from allocations.services import sealing
from tests.allocations.fleets import AT

pytestmark = pytest.mark.django_db(transaction=True)


def tell(number: int) -> None:
    record("team.added", subject=("team", f"T-{number}"), actor=None, at=AT, after={"b": 1, "a": [number]})


def test_events_are_sealed_once_in_commit_order_and_the_chain_holds():
    for number in range(3):
        tell(number)
    assert sealing.seal(at=AT) == 3
    assert sealing.seal(at=AT) == 0
    tell(4)
    assert sealing.seal(at=AT) == 1
    report = sealing.verify()
    assert (report.seals, report.events, report.unsealed, report.faults) == (2, 4, 0, ())
    first, second = EventSeal.objects.order_by("id")
    assert second.previous_hash == first.hash


def test_an_event_of_a_running_transaction_and_those_after_it_wait():
    tell(1)
    began, done = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with transaction.atomic():
                tell(2)
                began.set()
                assert done.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert began.wait(30)
    tell(3)
    assert sealing.seal(at=AT) == 1
    done.set()
    thread.join(30)
    assert sealing.seal(at=AT) == 2
    assert sealing.verify().faults == ()


def falsify(sql: str, *given: object) -> None:
    """Change the past as only the owner of the database could: with its triggers off."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, given)


def test_a_changed_event_breaks_the_chain_at_its_seal():
    tell(1)
    sealing.seal(at=AT)
    tell(2)
    sealing.seal(at=AT)
    falsify("UPDATE allocations_event SET sentence = %s WHERE subject_id = %s", "nothing happened", "T-1")
    (fault,) = sealing.verify().faults
    assert fault.seal == EventSeal.objects.order_by("id").first().pk
    assert "was changed" in fault.sentence


def test_a_removed_event_and_a_removed_seal_are_found():
    for number in range(3):
        tell(number)
        sealing.seal(at=AT)
    falsify("DELETE FROM allocations_event WHERE subject_id = %s", "T-0")
    assert "0 are there" in sealing.verify().faults[0].sentence
    falsify("DELETE FROM allocations_eventseal WHERE id = %s", EventSeal.objects.order_by("id")[1].pk)
    assert any("does not follow" in fault.sentence for fault in sealing.verify().faults)


def test_the_database_itself_refuses_to_change_the_past():
    tell(1)
    for deed in (lambda: Event.objects.update(sentence="x"), lambda: Event.objects.all().delete()):
        with pytest.raises(Exception, match="append-only"), transaction.atomic():
            deed()
