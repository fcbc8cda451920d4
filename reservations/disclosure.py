"""Who may know what about a hold? (the one function that serves board, refusals, API, feeds and exports)

Everyone signed in sees that a node is held and until when. A cluster that discloses names adds team and reservation
id. Purpose and people stay with the team and those who decide or operate.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from allocations.models import Cluster, User
from allocations.permissions import can, rights
from reservations.models import Reservation
from reservations.moments import moment_of
from scheduling.answers import Alternative, Cause, CauseKind, Reason, ReasonCode, Refusal

_RESERVATION_ID = re.compile(r"\bR-(\d+)\b")


@dataclass(frozen=True)
class Disclosed:
    """What one person may know of one reservation. None where it is not theirs to know; `team` is the path."""

    id: str | None
    team: str | None
    purpose: str | None
    people: tuple[str, ...] | None
    start_at: datetime
    end_at: datetime
    is_mine: bool


@dataclass(frozen=True)
class DisclosedCause:
    """One thing in the way. `id` and `team` are None where they are not disclosed; until_at None: no end is known."""

    kind: CauseKind
    id: str | None
    team: str | None
    until_at: datetime | None


@dataclass(frozen=True)
class DisclosedReason:
    """A reason of the planner with moments for minutes, and no name that is not to be known."""

    code: ReasonCode
    missing: int
    unit: str
    by: tuple[DisclosedCause, ...]
    until_at: datetime | None
    sentence: str


@dataclass(frozen=True)
class DisclosedRefusal:
    """Why not, and what would fit; as one person may read it."""

    reasons: tuple[DisclosedReason, ...]
    alternatives: tuple[Alternative, ...]


def disclose(user: User, reservation: Reservation) -> Disclosed:
    """What this person may know. Reads no row when the reservation's team and cluster are loaded."""
    may_read = can(user, "reservation.read", reservation)
    named = may_read or reservation.cluster.disclosure == Cluster.Disclosure.NAMES
    end = reservation.end_at
    if reservation.released_at is not None:
        end = max(reservation.start_at, min(end, reservation.released_at))
    return Disclosed(
        id=reservation.public_id if named else None,
        team=reservation.team.path if named else None,
        purpose=reservation.purpose if may_read else None,
        people=(reservation.created_by.name,) if may_read else None,
        start_at=reservation.start_at,
        end_at=end,
        is_mine=rights(user).belongs_to(reservation.team),
    )


def knows_names(user: User, cluster: Cluster) -> bool:
    """Whether this person may read what the push says of a cluster: it names teams and reservations of everybody."""
    return (
        cluster.disclosure == Cluster.Disclosure.NAMES
        or can(user, "cluster.operate", cluster)
        or can(user, "audit.read")
    )


def disclosed_refusal(user: User, cluster: Cluster, refusal: Refusal) -> DisclosedRefusal:
    """The refusal as this person may read it; one query for the reservations that it names."""
    named = {cause.id for reason in refusal.reasons for cause in reason.by if cause.kind == "reservation"}
    ids = [int(name.removeprefix("R-")) for name in named if _RESERVATION_ID.fullmatch(name)]
    rows = Reservation.objects.filter(pk__in=ids).select_related("team", "created_by")
    known: dict[str, Disclosed] = {}
    for row in rows:
        row.cluster = cluster
        known[row.public_id] = disclose(user, row)
    sees_jobs = cluster.disclosure == Cluster.Disclosure.NAMES or can(user, "cluster.operate", cluster)
    reasons = tuple(_reason(reason, known, sees_jobs) for reason in refusal.reasons)
    return DisclosedRefusal(reasons, tuple(_without_moves(refusal.alternatives)))


def _without_moves(alternatives: Iterable[Alternative]) -> Iterable[Alternative]:
    """Alternatives that ask others to give way are for operators' pages, not for whoever asks."""
    return (alternative for alternative in alternatives if not alternative.moves)


def _reason(reason: Reason, known: dict[str, Disclosed], sees_jobs: bool) -> DisclosedReason:
    sentence = reason.sentence
    if not sees_jobs:
        for cause in reason.by:
            if cause.kind == "job":
                sentence = re.sub(rf"(?<![\w-]){re.escape(cause.id)}(?![\w-])", "a running job", sentence)
    return DisclosedReason(
        code=reason.code,
        missing=reason.missing,
        unit=reason.unit,
        by=tuple(_cause(cause, known, sees_jobs) for cause in reason.by),
        until_at=None if reason.until_minute is None else moment_of(reason.until_minute),
        sentence=_RESERVATION_ID.sub(lambda found: _named(found.group(), known), sentence),
    )


def _named(name: str, known: dict[str, Disclosed]) -> str:
    """A reservation in a sentence: with its team, or without any name."""
    shown = known.get(name)
    if shown is None or shown.id is None:
        return "another reservation"
    return f"{name} ({shown.team})"


def _cause(cause: Cause, known: dict[str, Disclosed], sees_jobs: bool) -> DisclosedCause:
    until_at = None if cause.until_minute is None else moment_of(cause.until_minute)
    if cause.kind == "reservation":
        shown = known.get(cause.id)
        return DisclosedCause(cause.kind, shown.id if shown else None, shown.team if shown else None, until_at)
    if cause.kind == "job" and not sees_jobs:
        return DisclosedCause(cause.kind, None, None, until_at)
    return DisclosedCause(cause.kind, cause.id, None, until_at)
