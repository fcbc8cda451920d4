"""Which words and shapes say where a reservation stands? (decision and phase; the third sign is push_state's)"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reservations import states
from reservations.models import Reservation
from reservations.states import OPEN

DECISIONS: Mapping[str, tuple[str, str]] = {
    "draft": ("ring", "draft"),
    "requested": ("triangle", "waits for approval"),
    "counter_offered": ("triangle", "counter-offer"),
    "approved": ("tick", "approved"),
    "rejected": ("cross", "rejected"),
    "withdrawn": ("ring", "withdrawn"),
    "lapsed": ("ring", "lapsed"),
    "cancelled": ("ring", "cancelled"),
}
PHASES: Mapping[str, tuple[str, str]] = {
    "scheduled": ("half", "scheduled"),
    "active": ("disc", "active"),
    "over": ("ring", "over"),
}
EVENTS: Mapping[str, tuple[str, str]] = {
    "reservation.requested": ("half", "Asked"),
    "reservation.decided": ("tick", "One yes"),
    "reservation.approved": ("tick", "Approved"),
    "reservation.rejected": ("cross", "Rejected"),
    "reservation.withdrawn": ("ring", "Withdrawn"),
    "reservation.cancelled": ("ring", "Cancelled"),
    "reservation.lapsed": ("ring", "Lapsed: nobody decided before the hold ran out"),
}


@dataclass(frozen=True)
class Sign:
    """One shape and one word."""

    shape: str
    word: str


def decision_sign(reservation: Reservation, at: datetime, role: str | None = None) -> Sign:
    """What was decided; an open ask says for whom it waits where `role` is known, or that its hold ran out."""
    if reservation.decision in OPEN and reservation.hold_expires_at is not None and reservation.hold_expires_at <= at:
        return Sign("ring", "lapsed")
    if reservation.decision == "requested" and role:
        return Sign("triangle", f"waits for {'an' if role[0] in 'aeio' else 'a'} {role}")
    return Sign(*DECISIONS[reservation.decision])


def phase_of(reservation: Reservation, at: datetime) -> states.Phase | None:
    """scheduled, active or over for what was approved; None for every other decision."""
    return states.phase(reservation.decision, reservation.start_at, reservation.end_at, reservation.released_at, at)


def phase_sign(reservation: Reservation, at: datetime) -> Sign:
    """Where it stands in time; an open ask is held, everything that came to nothing is over."""
    phase = phase_of(reservation, at)
    if phase is not None:
        return Sign(*PHASES[phase])
    if reservation.decision in OPEN and (reservation.hold_expires_at is None or reservation.hold_expires_at > at):
        return Sign("half", "held")
    return Sign("ring", "over")
