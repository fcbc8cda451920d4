"""Which deed may follow which decision, and where does a reservation stand in time? (pure: no Django, no clock)"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

Deed = Literal["submit", "approve", "reject", "offer", "accept_offer", "withdraw", "lapse", "cancel"]
Phase = Literal["scheduled", "active", "over"]

# deed -> (decisions it may be done in, the decision after it)
TRANSITIONS: Mapping[str, tuple[frozenset[str], str]] = {
    "submit": (frozenset({"draft"}), "requested"),
    "approve": (frozenset({"requested"}), "approved"),
    "reject": (frozenset({"requested"}), "rejected"),
    "offer": (frozenset({"requested"}), "counter_offered"),
    "accept_offer": (frozenset({"counter_offered"}), "requested"),
    "withdraw": (frozenset({"draft", "requested", "counter_offered"}), "withdrawn"),
    "lapse": (frozenset({"requested", "counter_offered"}), "lapsed"),
    "cancel": (frozenset({"approved"}), "cancelled"),
}
OPEN = frozenset({"requested", "counter_offered"})
HOLDING = OPEN | {"approved"}


def after(deed: Deed, decision: str) -> str | None:
    """The decision after the deed; None when this deed cannot be done in this decision. LookupError: no such deed."""
    allowed, result = TRANSITIONS[deed]
    return result if decision in allowed else None


def phase(
    decision: str, start_at: datetime, end_at: datetime, released_at: datetime | None, at: datetime
) -> Phase | None:
    """Where an approved reservation stands at `at`; None for every other decision. Periods are half-open.

    Given back before its end it is over from that moment on.
    """
    if decision != "approved":
        return None
    if at >= end_at or (released_at is not None and at >= released_at):
        return "over"
    return "active" if at >= start_at else "scheduled"
