"""Which nodes of a flavor are free, and when? (free_at, fits_during, starts_in: the planner's view of a snapshot)

A commitment needs the same nodes throughout, so the answer is always a set of nodes (64-bit masks), never a count. For
a duration d, an interval [a, b) forbids exactly the starts in (a - d, b). Sorted starts turn that into a range of rows,
and an OR over row ranges is a sparse table read backwards: cover each range with two overlapping powers of two, then
push every level down to the one below. All starts of a horizon cost one pass over the masks per level.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scheduling.snapshot import FOREVER, JOB, RESERVATION, Busy, FleetSnapshot
from scheduling.topology import Indexes, Masks

CELLS = 1 << 21  # words of one chunk of starts: 16 MB at most, whatever the size of the fleet
FIRST_ROWS = 32  # most asks fit soon: look at few starts first, then at ever more


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Where an entry is from: kind reservation, outage, job, repair, delivery, retirement or contract, and its id."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The words an ask may use, and what blocks them when.

    `word` are word numbers of the topology, rack by rack; `first[r]:first[r + 1]` are the words of rack column r and
    `rack[r]` its rack number. `allowed` are the nodes the ask could ever use, `broken` those of them that are out for
    all time. An entry blocks `entry_mask` of word column `entry_word` during [entry_start, entry_end); `source()` says
    what it is part of.
    """

    word: Indexes
    rack: Indexes
    first: Indexes
    allowed: Masks
    broken: Masks
    entry_start: Indexes
    entry_end: Indexes
    entry_word: Indexes
    entry_mask: Masks
    entry_source: Indexes
    subjects: tuple[Busy, ...]
    lives: tuple[Source, ...]

    @classmethod
    def of(
        cls, snapshot: FleetSnapshot, racks: Indexes, allowed: Masks, broken: Masks, ignore_jobs: bool
    ) -> "Timeline":
        """The view on some racks (one flavor, given as rack numbers). `allowed` and `broken` are planes u64[W].

        Reservations are padded on both sides by the flavor's turnaround, so that two of them never come closer.
        """
        topology = snapshot.topology
        sizes = topology.first_word[racks + 1] - topology.first_word[racks]
        first = np.concatenate(([0], np.cumsum(sizes)))
        word = np.repeat(topology.first_word[racks] - first[:-1], sizes) + np.arange(first[-1])
        column = np.full(len(topology.full), -1, np.int64)
        column[word] = np.arange(len(word))

        rows = np.repeat(np.arange(len(snapshot.start)), np.diff(snapshot.first_entry))
        at = column[snapshot.entry_word]
        keep = at >= 0
        if ignore_jobs:
            keep &= snapshot.kind[rows] != JOB
        rows, at = rows[keep], at[keep]
        turnaround = np.array([flavor.turnaround_minutes for flavor in topology.flavors], np.int64)
        flavors = topology.rack_flavor[topology.word_rack[word[at]]]
        padding = np.where(snapshot.kind[rows] == RESERVATION, turnaround[flavors], 0)
        life = _lifecycle(snapshot, racks, first, word)
        return cls(
            word=word,
            rack=racks,
            first=first,
            allowed=allowed[word],
            broken=broken[word] & allowed[word],
            entry_start=np.concatenate((snapshot.start[rows] - padding, life[0])),
            entry_end=np.concatenate((snapshot.end[rows] + padding, life[1])),
            entry_word=np.concatenate((at, life[2])),
            entry_mask=np.concatenate((snapshot.entry_mask[keep], topology.full[word[life[2]]])),
            entry_source=np.concatenate((snapshot.subject[rows], life[3] + len(snapshot.subjects))),
            subjects=snapshot.subjects,
            lives=tuple(life[4]),
        )

    def source(self, row: int) -> Source:
        """What an entry is part of."""
        number = int(self.entry_source[row])
        if number < len(self.subjects):
            return Source(self.subjects[number].kind, self.subjects[number].id)
        return self.lives[number - len(self.subjects)]

    def free_at(self, minute: int) -> Masks:
        """Free nodes at one moment, u64[word columns]."""
        free: Masks = self.fits_during(np.array([minute], np.int64), 1)[0]
        return free

    def fits_during(self, starts: Indexes, duration: int) -> Masks:
        """For each start (ascending) the nodes free throughout [start, start + duration): u64[starts, word columns]."""
        low = np.searchsorted(starts, self.entry_start - duration, "right")
        high = np.searchsorted(starts, self.entry_end, "left")
        always = (low == 0) & (high == len(starts))
        free = self.allowed & ~self.broken
        np.bitwise_and.at(free, self.entry_word[always], ~self.entry_mask[always])
        some = np.flatnonzero((low < high) & ~always)
        blocked = _or_over_rows(
            len(starts), len(self.word), low[some], high[some], self.entry_word[some], self.entry_mask[some]
        )
        return free & ~blocked

    def starts_in(self, first: int, last: int) -> Indexes:
        """The starts in [first, last] worth a look: the first one, and each minute at which something ends.

        Moving a start earlier is prevented only by something that ends there, so every earliest fit, and every
        earliest best, is among them.
        """
        ends = self.entry_end[(self.entry_end > first) & (self.entry_end <= last)]
        return np.unique(np.append(ends, first))

    def sweep(self, first: int, last: int, duration: int) -> Iterator[tuple[Indexes, Masks]]:
        """Chunks of (starts, free masks) over all starts worth a look in [first, last], in time order."""
        starts = self.starts_in(first, last)
        most = max(1, CELLS // max(1, len(self.word)))
        position, rows = 0, min(FIRST_ROWS, most)
        while position < len(starts):
            chunk = starts[position : position + rows]
            yield chunk, self.fits_during(chunk, duration)
            position, rows = position + rows, min(rows * 8, most)

    def counts(self, free: Masks) -> Indexes:
        """Nodes per rack column of a mask array [..., word columns]."""
        if not len(self.rack):
            return np.zeros((*free.shape[:-1], 0), np.int64)
        counted = np.bitwise_count(free)
        if len(self.word) == len(self.rack):
            return counted.astype(np.int64)
        return np.add.reduceat(counted, self.first[:-1], axis=-1, dtype=np.int64)


def _or_over_rows(rows: int, columns: int, low: Indexes, high: Indexes, word: Indexes, mask: Masks) -> Masks:
    """OR each mask into its word column for rows [low, high): u64[rows, columns]."""
    plane = np.zeros((rows, columns), np.uint64)
    if not len(low):
        return plane
    level = np.frexp((high - low).astype(np.float64))[1] - 1
    cells = plane.reshape(-1)
    for power in range(int(level.max()), -1, -1):
        here = level == power
        np.bitwise_or.at(cells, low[here] * columns + word[here], mask[here])
        np.bitwise_or.at(cells, (high[here] - (1 << power)) * columns + word[here], mask[here])
        if power:
            half = 1 << power - 1
            plane[half:] |= plane[:-half]
    return plane


def _lifecycle(
    snapshot: FleetSnapshot, racks: Indexes, first: Indexes, word: Indexes
) -> tuple[Indexes, Indexes, Indexes, Indexes, list[Source]]:
    """Entries (start, end, word column, source) for racks not yet or no longer there, and for the contract."""
    start: list[int] = []
    end: list[int] = []
    at: list[int] = []
    source: list[int] = []
    sources: list[Source] = []

    def block(source_of: Source, columns: range, begin: int, finish: int) -> None:
        start.extend([begin] * len(columns))
        end.extend([finish] * len(columns))
        at.extend(columns)
        source.extend([len(sources)] * len(columns))
        sources.append(source_of)

    for column, number in enumerate(racks.tolist()):
        rack, columns = snapshot.topology.racks[number], range(int(first[column]), int(first[column + 1]))
        if rack.from_minute is not None:
            block(Source("delivery", rack.name), columns, -FOREVER, rack.from_minute)
        if rack.until_minute is not None:
            block(Source("retirement", rack.name), columns, rack.until_minute, FOREVER)
    if snapshot.contract_ends_minute is not None:
        block(Source("contract", snapshot.cluster), range(len(word)), snapshot.contract_ends_minute, FOREVER)
    as_array = [np.array(values, np.int64) for values in (start, end, at, source)]
    return as_array[0], as_array[1], as_array[2], as_array[3], sources
