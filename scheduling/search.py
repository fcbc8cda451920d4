"""When does an ask first fit, and how near does it come? (the earliest start, the largest size, the nearest miss)"""

from dataclasses import dataclass

import numpy as np

from scheduling.ask import Ask
from scheduling.topology import Masks


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The earliest start at which the ask fits, and what is free throughout then."""

    start_minute: int
    free: Masks


@dataclass(frozen=True, slots=True)
class Shortfall:
    """No start fits: the most pieces obtainable at any start, and the first start that yields them."""

    most_pieces: int
    start_minute: int


def search(ask: Ask) -> Fit | Shortfall:
    """The earliest start in the ask's window, to the minute. The window must not be empty."""
    most = Shortfall(-1, ask.first_start)
    for starts, free in ask.timeline.sweep(ask.first_start, ask.last_start, ask.spec.duration_minutes):
        pieces = ask.obtainable(ask.timeline.counts(free))
        fits = pieces >= ask.need
        if fits.any():
            at = int(np.argmax(fits))
            return Fit(int(starts[at]), free[at])
        at = int(np.argmax(pieces))
        if pieces[at] > most.most_pieces:
            most = Shortfall(int(pieces[at]), int(starts[at]))
    return most


def nearest_miss(ask: Ask) -> int:
    """The start in the window where the fewest nodes are missing, the earliest on a tie."""
    best, best_start = None, ask.first_start
    near_sets = ask.near_sets()
    for starts, free in ask.timeline.sweep(ask.first_start, ask.last_start, ask.spec.duration_minutes):
        missing = ask.nodes_missing(ask.timeline.counts(free), near_sets)
        at = int(np.argmin(missing))
        if best is None or missing[at] < best:
            best, best_start = int(missing[at]), int(starts[at])
    return best_start


def free_from(ask: Ask, start: int) -> Masks:
    """What is free throughout the ask's length from `start`."""
    free: Masks = ask.timeline.fits_during(np.array([start], np.int64), ask.spec.duration_minutes)[0]
    return free
