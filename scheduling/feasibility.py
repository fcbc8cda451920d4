"""Does it fit, when and where; and if not, why not and what would? (find(snapshot, spec) -> Placement | Refusal)

The one entrance of the planner: form, API, command line and services all call these functions.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scheduling.alternatives import offers
from scheduling.answers import Alternative, Placement, Reason, Refusal, StripBar
from scheduling.ask import Ask
from scheduling.periods import MINUTES_PER_DAY
from scheduling.placement import place
from scheduling.reasons import explain, explain_at, never_possible, window_too_short
from scheduling.search import Fit, Shortfall, free_from, search
from scheduling.snapshot import FleetSnapshot
from scheduling.spec import ReservationSpec

__all__ = [
    "Alternative",
    "Placement",
    "Reason",
    "Refusal",
    "StripBar",
    "check",
    "earliest",
    "find",
    "next_free",
    "strip",
]


def find(
    snapshot: FleetSnapshot, spec: ReservationSpec, *, others: Sequence[FleetSnapshot] = (), explained: bool = True
) -> Placement | Refusal:
    """The earliest placement in the spec's window, or why there is none and what would fit.

    `others` are clusters to offer instead. `explained=False` leaves the alternatives out, not the reasons.
    Raises SpecError for a spec that is wrong in itself or names a flavor the cluster does not have.
    """
    return _answer(Ask.of(snapshot, spec), others, explained)


def earliest(
    snapshot: FleetSnapshot, spec: ReservationSpec, *, others: Sequence[FleetSnapshot] = (), explained: bool = True
) -> Placement | Refusal:
    """find() without the spec's latest end: it looks 400 days ahead of now."""
    return find(snapshot, replace(spec, latest_end_minute=None), others=others, explained=explained)


def next_free(snapshot: FleetSnapshot, spec: ReservationSpec) -> int | None:
    """The earliest start within 400 days, whatever the spec's latest end; None when there is none."""
    found = earliest(snapshot, spec, explained=False)
    return found.start_minute if isinstance(found, Placement) else None


def strip(snapshot: FleetSnapshot, spec: ReservationSpec, days: int) -> tuple[StripBar, ...]:
    """One bar per 24 hours from the window's start: the most that could start then for the whole length, and when.

    The window's end is ignored: the strip shows what lies behind it too.
    """
    ask = Ask.of(snapshot, replace(spec, latest_end_minute=None))
    edges = ask.first_start + MINUTES_PER_DAY * np.arange(days + 1)
    bars = []
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        most, best_start = -1, first
        for starts, free in ask.timeline.sweep(first, last - 1, spec.duration_minutes):
            pieces = ask.obtainable(ask.timeline.counts(free))
            at = int(np.argmax(pieces))
            if pieces[at] > most:
                most, best_start = int(pieces[at]), int(starts[at])
            if most >= ask.wanted:
                break
        bars.append(StripBar(first, ask.units(min(most, ask.wanted)), most >= ask.need, best_start))
    return tuple(bars)


def check(snapshot: FleetSnapshot, spec: ReservationSpec, placement: Placement) -> Refusal | None:
    """None when exactly this placement still stands, else a Refusal that says what came in its way.

    Asked under the lock at approval: the snapshot must not contain the reservation's own hold (`without()` takes it
    out). A placement whose start has passed is judged from now on.
    """
    start = max(placement.start_minute, snapshot.now_minute)
    end = placement.end_minute
    if end <= start:
        over = replace(spec, earliest_start_minute=None, latest_end_minute=end)
        return Refusal((window_too_short(Ask.of(snapshot, over)),))
    pinned = replace(
        _as_placed(snapshot, spec, placement),
        earliest_start_minute=start,
        latest_end_minute=end,
        duration_minutes=end - start,
    )
    ask = Ask.of(snapshot, pinned, only=placement.nodes)
    if ask.possible < ask.need:
        gone = f"Some nodes of this placement are no longer usable on {snapshot.cluster}, whatever is removed."
        return Refusal((replace(never_possible(ask), sentence=gone),))
    if int(ask.obtainable(ask.timeline.counts(free_from(ask, start)))) < ask.need:
        return Refusal(explain_at(ask, start))
    return None


def _as_placed(snapshot: FleetSnapshot, spec: ReservationSpec, placement: Placement) -> ReservationSpec:
    """The spec for the size that was placed: all of it must stand, not only the minimum."""
    flavor = snapshot.topology.flavor(spec.flavor)
    if spec.min is None or flavor is None:
        return spec
    if spec.racks is not None:
        return spec.of_size(len(placement.racks))
    nodes = len(placement.nodes)
    return spec.of_size(nodes if spec.gpus is None else min(spec.gpus, nodes * flavor.gpus_per_node))


def _answer(ask: Ask, others: Sequence[FleetSnapshot], explained: bool) -> Placement | Refusal:
    """Search, then explain: never possible and no window come alone, before anything is searched."""
    shortfall: Shortfall | None = None
    if ask.possible < ask.need:
        reasons: tuple[Reason, ...] = (never_possible(ask),)
        if ask.last_start >= ask.first_start:
            found = search(ask)
            shortfall = found if isinstance(found, Shortfall) else None
    elif ask.last_start < ask.first_start:
        reasons = (window_too_short(ask),)
    else:
        found = search(ask)
        if isinstance(found, Fit):
            return place(ask, found.start_minute, found.free)
        shortfall, reasons = found, explain(ask)
    return Refusal(reasons, offers(ask, shortfall, reasons, others) if explained else ())
