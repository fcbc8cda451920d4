"""Can anybody have changed the past? (seals chain events in commit order; verify() finds what no longer fits)

Events are sealed in (transaction id, id) order, and only those of transactions older than every running one: none
can still appear before them. Each seal hashes the seal before it and the events since.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from allocations.models import Event, EventSeal

GENESIS = "0" * 64
_AT_MOST = 20_000
_LOCK = 0x6265727468  # an advisory lock of our own: two sealers would race for the same place in the chain


@dataclass(frozen=True, slots=True)
class ChainFault:
    """One place where the chain does not fit what the events say now."""

    seal: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What verify() found: how much was read, how many events wait for their seal, and every fault."""

    seals: int
    events: int
    unsealed: int
    faults: tuple[ChainFault, ...]


def seal(*, at: datetime) -> int:
    """Seal what can be sealed; says how many events. Nothing to do when there are none, or when another one seals now.

    Writes no event: it would have to be sealed next, for ever.
    """
    with transaction.atomic():
        if not _only_sealer():
            return 0
        last = EventSeal.objects.order_by("-id").first()
        chain = hashlib.sha256((last.hash if last else GENESIS).encode())
        count, newest = 0, None
        for event in _between(last, _oldest_running())[:_AT_MOST].iterator(chunk_size=2000):
            chain.update(_line(event))
            count, newest = count + 1, event
        if newest is None:
            return 0
        EventSeal.objects.create(
            last_transaction_id=newest.transaction_id,
            last_event_id=newest.pk,
            event_count=count,
            previous_hash=last.hash if last else GENESIS,
            hash=chain.hexdigest(),
            sealed_at=at,
        )
    return count


def verify() -> ChainReport:
    """Read the whole chain again and compare. One pass over the events, in one snapshot of the database."""
    with transaction.atomic():
        if not connection.needs_rollback and len(connection.savepoint_ids) == 0:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        faults: list[ChainFault] = []
        before: EventSeal | None = None
        seals = events = 0
        for one in EventSeal.objects.order_by("id").iterator():
            seals += 1
            faults += _faults_of(one, before)
            events += one.event_count
            before = one
        return ChainReport(seals, events, _between(before, None).count(), tuple(faults))


def _faults_of(one: EventSeal, before: EventSeal | None) -> Iterator[ChainFault]:
    """What does not fit about one seal, given the one before it."""
    expected = before.hash if before else GENESIS
    if one.previous_hash != expected:
        yield ChainFault(one.pk, f"seal {one.pk} does not follow the seal before it: one is missing or was changed")
        return
    chain, count = hashlib.sha256(expected.encode()), 0
    upto = Q(transaction_id__lt=one.last_transaction_id) | Q(
        transaction_id=one.last_transaction_id, pk__lte=one.last_event_id
    )
    for event in _between(before, None).filter(upto).iterator(chunk_size=2000):
        chain.update(_line(event))
        count += 1
    if count != one.event_count:
        yield ChainFault(one.pk, f"seal {one.pk} covers {one.event_count} events, and {count} are there")
    elif chain.hexdigest() != one.hash:
        yield ChainFault(one.pk, f"an event under seal {one.pk} (up to E-{one.last_event_id}) was changed")


def _between(after: EventSeal | None, before_transaction: int | None) -> QuerySet[Event]:
    """Events beyond a seal, of transactions older than the given one, in commit order."""
    events = Event.objects.order_by("transaction_id", "id")
    if after is not None:
        events = events.filter(
            Q(transaction_id__gt=after.last_transaction_id)
            | Q(transaction_id=after.last_transaction_id, pk__gt=after.last_event_id)
        )
    return events if before_transaction is None else events.filter(transaction_id__lt=before_transaction)


def _line(event: Event) -> bytes:
    """One event as bytes that are equal only for equal events: every column, in one order, moments in UTC."""
    row = [
        event.pk,
        event.transaction_id,
        event.verb,
        event.subject_kind,
        event.subject_id,
        event.team_id,
        event.cluster_id,
        event.actor_id,
        event.at.astimezone(UTC).isoformat(),
        event.request_id,
        event.before,
        event.after,
        event.sentence,
    ]
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def _oldest_running() -> int:
    """The id of the oldest transaction that still runs: everything below it is decided."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])


def _only_sealer() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])
