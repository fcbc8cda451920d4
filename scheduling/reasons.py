"""Why does it not fit? (coded reasons that are true and name no more than they must)

Reasons speak of one start: where the fewest nodes are missing. Of everything in the way there, the things around the
nearest placement are taken, and then each one is put back if the ask fits all the same: what is left is
inclusion-minimal. With all of it gone the ask fits; with any one of it back it does not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduling.answers import Cause, CauseKind, Reason, ReasonCode
from scheduling.ask import Ask
from scheduling.periods import length_words, minute_words
from scheduling.search import free_from, nearest_miss
from scheduling.snapshot import FOREVER
from scheduling.topology import WORD_BITS, Indexes, Masks

ORDER: tuple[ReasonCode, ...] = (
    "rack_held",
    "node_held",
    "running_job",
    "outage",
    "unhealthy",
    "nvlink_unhealthy",
    "not_yet_delivered",
    "contract_ends",
)
MOST_NAMED = 4  # names spelled out in one sentence; the machine fields hold all of them


@dataclass(frozen=True, slots=True, eq=False)
class Obstacle:
    """One removable thing in the way: how it is named, the places it takes (word column * 64 + bit), and until when."""

    code: ReasonCode
    kind: CauseKind | None
    id: str
    places: Indexes
    until: int | None

    def cause(self) -> Cause | None:
        """As named in an answer; None for the cluster's own contract, which is no thing on it."""
        return None if self.kind is None else Cause(self.kind, self.id, self.until)


def never_possible(ask: Ask) -> Reason:
    """The ask is larger than the fleet it may use, whatever is removed."""
    most = ask.units(max(0, ask.possible))
    asked = ask.least
    where = f"{ask.snapshot.cluster} has at most {_amount(most, ask.unit)} of {ask.flavor.name} that this ask could use"
    limit = " within its block limit" if ask.max_groups is not None else ""
    each = " each" if asked > 1 else ""
    shape = f" with {_amount(ask.piece_nodes, 'nodes')}{each}" if ask.per_rack else ""
    sentence = f"{_amount(asked, ask.unit)}{shape} can never be had: {where}{limit}."
    return Reason("never_possible", asked - most, ask.unit, (), None, sentence)


def window_too_short(ask: Ask) -> Reason:
    """There is no start at all between the earliest start (or now) and the latest end."""
    missing = ask.first_start - ask.last_start
    end = ask.last_start + ask.spec.duration_minutes
    length, first = length_words(ask.spec.duration_minutes), minute_words(ask.first_start)
    if end <= ask.first_start:
        sentence = f"The latest end, {minute_words(end)}, is not after the earliest start, {first}."
    else:
        sentence = f"The window from {first} to {minute_words(end)} is {length_words(missing)} too short for {length}."
    return Reason("window_too_short", missing, "minutes", (), None, sentence)


def explain(ask: Ask) -> tuple[Reason, ...]:
    """Reasons of an ask that is possible, has a window, and fits at no start of it. Never empty."""
    return explain_at(ask, nearest_miss(ask))


def explain_at(ask: Ask, start: int) -> tuple[Reason, ...]:
    """Reasons why a possible ask does not fit at exactly `start`."""
    obstacles = [*_intervals(ask, start), *_bad_nodes(ask), *_bad_racks(ask)]
    cover = np.zeros(len(ask.timeline.word) * WORD_BITS, np.int64)
    for obstacle in obstacles:
        cover[obstacle.places] += 1
    named = _minimal(ask, cover, _around_nearest(ask, start, obstacles, cover))
    reasons = [_reason(ask, start, code, named, cover) for code in ORDER if any(each.code == code for each in named)]
    return (*_fragmented(ask, start, reasons), *reasons)


def _intervals(ask: Ask, start: int) -> list[Obstacle]:
    """Reservations, outages, jobs and ends of life that take an allowed node during the period, in a fixed order."""
    timeline = ask.timeline
    meets = (timeline.entry_start < start + ask.spec.duration_minutes) & (timeline.entry_end > start)
    masks = timeline.entry_mask & timeline.allowed[timeline.entry_word]
    found: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(meets & (masks != 0)).tolist():
        source = timeline.source(row)
        found.setdefault((source.kind, source.id), []).append(row)
    obstacles = []
    for kind, id in sorted(found):
        rows = found[kind, id]
        at, bit = np.nonzero(_bits(masks[rows]))
        places = np.unique(timeline.entry_word[rows][at] * WORD_BITS + bit)
        code, cause = _code(ask, kind)
        obstacles.append(Obstacle(code, cause, id, places, _latest(_until(ask, row, kind) for row in rows)))
    return obstacles


def _code(ask: Ask, kind: str) -> tuple[ReasonCode, CauseKind | None]:
    """The code of a busy interval and the kind under which its source is named."""
    codes: dict[str, tuple[ReasonCode, CauseKind | None]] = {
        "reservation": ("rack_held" if ask.per_rack else "node_held", "reservation"),
        "outage": ("outage", "outage"),
        "job": ("running_job", "job"),
        "repair": ("unhealthy", "node"),
        "delivery": ("not_yet_delivered", "rack"),
        "retirement": ("contract_ends", "rack"),
        "contract": ("contract_ends", None),
    }
    return codes[kind]


def _until(ask: Ask, row: int, kind: str) -> int | None:
    """When an entry's own source ends: padding between reservations is not part of it."""
    end = int(ask.timeline.entry_end[row])
    if end >= FOREVER:
        return None
    return end - ask.flavor.turnaround_minutes if kind == "reservation" else end


def _bad_nodes(ask: Ask) -> list[Obstacle]:
    """Each unhealthy node is a thing of its own: one may be repaired without the others."""
    timeline, topology = ask.timeline, ask.snapshot.topology
    places = np.flatnonzero(_bits(ask.snapshot.unhealthy[timeline.word] & timeline.allowed).reshape(-1))
    found = []
    for place in places.tolist():
        name = topology.node_at(int(timeline.word[place // WORD_BITS]), place % WORD_BITS)
        found.append(Obstacle("unhealthy", "node", name, np.array([place]), None))
    return found


def _bad_racks(ask: Ask) -> list[Obstacle]:
    """Racks whose NVLink is worse than the ask takes: all their nodes are out, unhealthy ones included."""
    timeline, found = ask.timeline, []
    usable = _bits(timeline.allowed)
    for column, number in enumerate(timeline.rack.tolist()):
        if ask.refuses_nvlink(number):
            first, last = timeline.first[column : column + 2].tolist()
            places = first * WORD_BITS + np.flatnonzero(usable[first:last].reshape(-1))
            name = ask.snapshot.topology.racks[number].name
            found.append(Obstacle("nvlink_unhealthy", "rack", name, places, None))
    return found


def _around_nearest(ask: Ask, start: int, obstacles: Sequence[Obstacle], cover: Indexes) -> list[Obstacle]:
    """The obstacles that take nodes of the placement that lacks the fewest nodes at `start`."""
    counts = ask.timeline.counts(free_from(ask, start))
    columns = min(ask.near_sets(), key=lambda columns: int(ask.missing_within(counts[None, :], columns)[0]))
    usable = _bits(ask.timeline.allowed).reshape(-1).astype(bool)
    wanted = np.zeros(len(cover), bool)
    if ask.per_rack:
        for column in sorted(columns.tolist(), key=lambda column: (-int(counts[column]), column))[: ask.need]:
            first, last = (ask.timeline.first[column : column + 2] * WORD_BITS).tolist()
            inside = first + np.flatnonzero(usable[first:last])
            wanted[inside[np.argsort(cover[inside], kind="stable")[: ask.piece_nodes]]] = True
    else:
        inside = np.flatnonzero(usable & np.isin(_place_columns(ask), columns))
        wanted[inside[np.argsort(cover[inside], kind="stable")[: ask.need]]] = True
    return [obstacle for obstacle in obstacles if wanted[obstacle.places].any()]


def _minimal(ask: Ask, cover: Indexes, removed: Sequence[Obstacle]) -> list[Obstacle]:
    """Those of `removed` that must go. The others are put back; `cover` ends without what must go."""
    for obstacle in removed:
        cover[obstacle.places] -= 1
    place_column = _place_columns(ask)
    counts = _counts(ask, cover)
    named = []
    for obstacle in sorted(removed, key=lambda each: len(each.places)):
        newly = obstacle.places[cover[obstacle.places] == 0]
        fewer = counts - np.bincount(place_column[newly], minlength=len(counts))
        if int(ask.obtainable(fewer)) < ask.need:
            named.append(obstacle)
        else:
            counts = fewer
            cover[obstacle.places] += 1
    return named


def _place_columns(ask: Ask) -> Indexes:
    """The rack column of each place."""
    return np.repeat(np.arange(len(ask.timeline.rack)), np.diff(ask.timeline.first) * WORD_BITS)


def _counts(ask: Ask, cover: Indexes) -> Indexes:
    """Free nodes per rack column when exactly the uncovered allowed places are free."""
    uncovered = np.packbits(cover.reshape(-1, WORD_BITS) == 0, axis=1, bitorder="little").view("<u8").reshape(-1)
    return ask.timeline.counts(uncovered.astype(np.uint64) & ask.timeline.allowed)


def _bits(masks: Masks) -> NDArray[np.uint8]:
    """Words as a matrix of single bits, position by position: u8[words, 64]."""
    as_bytes = np.ascontiguousarray(masks.astype("<u8")).view(np.uint8).reshape(len(masks), 8)
    return np.unpackbits(as_bytes, axis=1, bitorder="little")


def _reason(ask: Ask, start: int, code: ReasonCode, named: Sequence[Obstacle], cover: Indexes) -> Reason:
    """One code's reason; what it takes away is counted with the things of the other codes gone."""
    mine = [obstacle for obstacle in named if obstacle.code == code]
    with_mine = cover.copy()
    for obstacle in mine:
        with_mine[obstacle.places] += 1
    missing = ask.least - ask.units(int(ask.obtainable(_counts(ask, with_mine))))
    by = tuple(cause for cause in (obstacle.cause() for obstacle in mine) if cause is not None)
    until = _latest(obstacle.until for obstacle in mine)
    period = f"from {minute_words(start)} for {length_words(ask.spec.duration_minutes)}"
    sentence = f"{_amount(missing, ask.unit)} missing {period}: {_why(ask, code, mine, until)}."
    return Reason(code, missing, ask.unit, by, until, sentence, start)


def _why(ask: Ask, code: ReasonCode, mine: Sequence[Obstacle], until: int | None) -> str:
    """The second half of a sentence: who or what, and until when."""
    names = _names([obstacle.id for obstacle in mine])
    end = "with no known end" if until is None else f"until {minute_words(until)}"
    several = len(mine) > 1
    if code in ("rack_held", "node_held"):
        return f"held by {names} {end}"
    if code == "running_job":
        return f"job{'s' * several} {names} run{'' if several else 's'} there {end}"
    if code == "outage":
        return f"outage{'s' * several} {names} {end}"
    if code == "unhealthy":
        return f"unhealthy or drained: {names}" + ("" if until is None else f" {end}")
    if code == "nvlink_unhealthy":
        return f"the NVLink of {names} is not fully healthy"
    if code == "not_yet_delivered":
        return f"{names} {'are' if several else 'is'} not there {end.replace('until', 'before')}"
    if any(obstacle.kind is None for obstacle in mine):
        ends = ask.snapshot.contract_ends_minute
        return f"the contract of {ask.snapshot.cluster} ends on {minute_words(ends or 0)}"
    return f"{names} leave{'' if several else 's'} the fleet before the end"


def _fragmented(ask: Ask, start: int, reasons: Sequence[Reason]) -> list[Reason]:
    """The block limit itself, when enough would be free at `start` without it."""
    if ask.max_groups is None:
        return []
    counts = ask.timeline.counts(free_from(ask, start))
    if int(ask.pieces(counts).sum()) < ask.need:
        return []
    most = ask.units(int(ask.obtainable(counts)))
    blocks = "one block" if ask.max_groups == 1 else f"{ask.max_groups} blocks"
    free = f"{_amount(ask.least, ask.unit)} are free from {minute_words(start)}"
    sentence = f"{free}, but at most {most} of them in {blocks}."
    until = _latest(reason.until_minute for reason in reasons)
    return [Reason("block_fragmented", ask.least - most, ask.unit, (), until, sentence, start)]


def _latest(untils: Iterable[int | None]) -> int | None:
    """The last of some ends, None when one is not known."""
    ends = list(untils)
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def _amount(number: int, unit: str) -> str:
    """`1 rack`, `12 nodes`, `64 GPUs`."""
    word = "GPUs" if unit == "gpus" else unit
    return f"{number} {word[:-1] if number == 1 else word}"


def _names(names: Sequence[str]) -> str:
    """A few names and how many more."""
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
