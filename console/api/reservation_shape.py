"""How does a reservation look in JSON? (one shape in lists, details and answers of deeds)"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from allocations.errors import NotFound
from allocations.models import User
from allocations.permissions import can, rights
from allocations.public_ids import number_of
from console.api.clusters import or_null
from console.push.standing import Standing, name_on_cluster, standings
from reservations import queries, states
from reservations.holdings import HeldNode, holdings
from reservations.models import Reservation
from reservations.moments import text_of
from scheduling.hostlist import fold


def readable(user: User) -> QuerySet[Reservation]:
    """Reservations that the person may open, with everything that the shape reads."""
    return queries.visible_reservations(user).prefetch_related("approval_case__steps__decisions")


def one(user: User, public_id: str) -> Reservation:
    """The reservation R-n as it stands now. Raises NotFound when there is none or the person may not see it."""
    found = readable(user).filter(pk=number_of(public_id, "R")).first()
    if found is None:
        raise NotFound()
    return found


def shapes(user: User, rows: Sequence[Reservation], at: datetime, scopes: Collection[str] = ()) -> list[dict[str, Any]]:
    """The JSON objects of reservations; three queries however many they are. `scopes` bound what `may` says."""
    held, pushed = holdings(rows), standings(rows, at)
    return [_shape(row, held[row.pk], pushed[row.pk], user, at, scopes) for row in rows]


def _shape(
    row: Reservation, held: Sequence[HeldNode], push: Standing, user: User, at: datetime, scopes: Collection[str]
) -> dict[str, Any]:
    phase = states.phase(row.decision, row.start_at, row.end_at, row.released_at, at)
    return {
        "id": row.public_id,
        "version": row.version,
        "team": row.team.public_id,
        "team_path": row.team.path,
        "cluster": row.cluster.name,
        "purpose": row.purpose,
        "spec": row.spec,
        "placement": _placement(row, held),
        "allocation": row.allocation.public_id if row.allocation else None,
        "funding": row.funding,
        "at_end": row.at_end,
        "run_over_minutes": row.run_over_minutes,
        "spares": row.spares,
        "decision": row.decision,
        "waits_for": _waits_for(row),
        "hold": _hold(row, phase),
        "hold_expires_at": or_null(row.hold_expires_at),
        "phase": phase,
        "released_at": or_null(row.released_at),
        "push": _push(row, push, phase),
        "series": None if row.series_id is None else f"S-{row.series_id}",
        "external_id": row.external_id or None,
        "created_by": row.created_by.public_id,
        "created_at": text_of(row.created_at),
        "may": may(user, row, phase, at, scopes),
    }


def may(user: User, row: Reservation, phase: states.Phase | None, at: datetime, scopes: Collection[str]) -> list[str]:
    """What the caller can do to it now, with this token."""
    deeds = []
    if "request" in scopes:
        if states.after("withdraw", row.decision) and can(user, "reservation.withdraw", row):
            deeds.append("withdraw")
        if phase in ("scheduled", "active") and can(user, "reservation.cancel", row):
            deeds.append("cancel")
    if "approve" in scopes and _can_decide(user, row, at):
        deeds += ["approve", "reject"]
    return deeds


def _can_decide(user: User, row: Reservation, at: datetime) -> bool:
    """Does the open step ask this person, who has not spoken yet, while the hold lasts?"""
    if row.decision != Reservation.Decision.REQUESTED or row.approval_case is None or row.end_at <= at:
        return False
    if row.hold_expires_at is not None and row.hold_expires_at <= at:
        return False
    outcome = queries.outcome_loaded(row)
    if not outcome.is_open or not queries.may_decide(rights(user), row, outcome.role):
        return False
    made = (one for step in row.approval_case.steps.all() for one in step.decisions.all())
    return all(one.approver_id != user.pk for one in made)


def _placement(row: Reservation, held: Sequence[HeldNode]) -> dict[str, Any] | None:
    """What it holds, or held when it ended; null for a draft that never held anything."""
    if not held:
        return None
    return {
        "cluster": row.cluster.name,
        "racks": sorted({each.rack for each in held if each.rack is not None}),
        "nodes": fold([each.name for each in held]),
        "spares": fold([each.name for each in held if each.is_spare]),
        "node_count": len(held),
        "start_at": text_of(row.start_at),
        "end_at": text_of(row.end_at),
        "score": row.score,
    }


def _waits_for(row: Reservation) -> list[dict[str, Any]]:
    """The steps that are still to be taken, the open one first."""
    if row.decision != Reservation.Decision.REQUESTED or row.approval_case is None:
        return []
    outcome = queries.outcome_loaded(row)
    if not outcome.is_open:
        return []
    return [
        {
            "step": step.number,
            "role": step.role,
            "needed": step.quorum,
            "got": step.quorum - outcome.missing if step.number == outcome.step else 0,
        }
        for step in row.approval_case.steps.all()
        if outcome.step is not None and step.number >= outcome.step
    ]


def _hold(row: Reservation, phase: states.Phase | None) -> str | None:
    if row.decision in states.OPEN:
        return "provisional"
    return "firm" if phase in ("scheduled", "active") else None


def _push(row: Reservation, push: Standing, phase: states.Phase | None) -> dict[str, Any]:
    is_coming = row.decision in states.OPEN or phase in ("scheduled", "active")
    return {
        "state": push.state,
        "due_at": text_of(row.start_at) if is_coming else None,
        "desired_generation": row.wanted_generation or None,
        "applied_generation": row.cluster.applied_generation,
        "verified_at": or_null(push.verified_at),
        "updated_at": or_null(push.updated_at),
        "name_on_cluster": name_on_cluster(row),
    }
