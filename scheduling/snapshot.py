"""What stands in the way on one cluster at one moment? (topology, health, holds, outages and running jobs)

A snapshot never changes; `with_hold()` returns a new one. Busy intervals are a struct of arrays sorted by start: one
row per interval, and its nodes as (word, mask) entries between `first_entry[i]` and `first_entry[i + 1]`.
Minutes count from the epoch; intervals are half-open.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from scheduling.spec import ReservationSpec
from scheduling.topology import Indexes, Masks, NodeMasks, Topology

FOREVER = 1 << 40  # later than any minute, and small enough that adding a duration stays an int64

BusyKind = Literal["reservation", "outage", "job", "repair"]
KINDS: tuple[BusyKind, ...] = ("reservation", "outage", "job", "repair")
RESERVATION, OUTAGE, JOB, REPAIR = range(4)


@dataclass(frozen=True, slots=True)
class Busy:
    """Nodes that are taken during [start_minute, end_minute); no end blocks for ever.

    `nodes` are masks or names. A repair is one bad node until it comes back; its id is the node's name. `request`
    (reservations only) says that it may be moved within that spec. A job whose end has passed still runs: it blocks
    until now + 1.
    """

    kind: BusyKind
    id: str
    nodes: NodeMasks | Iterable[str]
    start_minute: int
    end_minute: int | None = None
    provisional: bool = False
    tier: str | None = None
    request: ReservationSpec | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FleetSnapshot:
    """One cluster at `now_minute`; build it with `FleetSnapshot.build`. `unhealthy` is a plane u64[W] of bad nodes."""

    cluster: str
    now_minute: int
    topology: Topology
    unhealthy: Masks
    contract_ends_minute: int | None
    start: Indexes
    end: Indexes
    kind: Indexes
    subject: Indexes
    first_entry: Indexes
    entry_word: Indexes
    entry_mask: Masks
    subjects: tuple[Busy, ...]

    @classmethod
    def build(
        cls,
        cluster: str,
        now_minute: int,
        topology: Topology,
        unhealthy: Iterable[str] = (),
        busy: Iterable[Busy] = (),
        contract_ends_minute: int | None = None,
    ) -> "FleetSnapshot":
        """Freeze a cluster. `unhealthy` are node names that no placement may use (bad, drained, gone).

        Intervals that ended before `now_minute` are left out, except jobs: they run until somebody says they stopped.
        """
        empty = np.zeros(0, np.int64)
        nothing = cls(
            cluster=cluster,
            now_minute=now_minute,
            topology=topology,
            unhealthy=topology.plane(topology.masks(unhealthy)),
            contract_ends_minute=contract_ends_minute,
            start=empty,
            end=empty,
            kind=empty,
            subject=empty,
            first_entry=np.zeros(1, np.int64),
            entry_word=empty,
            entry_mask=np.zeros(0, np.uint64),
            subjects=(),
        )
        return nothing._joined(busy)

    def with_hold(self, id: str, nodes: NodeMasks | Iterable[str], start: int, end: int) -> "FleetSnapshot":
        """A new snapshot in which reservation `id` also holds `nodes` during [start, end)."""
        return self._joined([Busy("reservation", id, nodes, start, end)])

    def without(self, kind: BusyKind, id: str) -> "FleetSnapshot":
        """A new snapshot without any interval of that reservation, outage or job."""
        keep = np.array([not (busy.kind == kind and busy.id == id) for busy in self.subjects], bool)
        rows = np.flatnonzero(keep[self.subject]) if len(self.subject) else self.subject
        return self._taken(rows)

    def _taken(self, rows: Indexes) -> "FleetSnapshot":
        """The same snapshot with only the given intervals, in the given order."""
        lengths = np.diff(self.first_entry)[rows]
        first = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.repeat(self.first_entry[rows] - first[:-1], lengths) + np.arange(first[-1])
        return replace(
            self,
            start=self.start[rows],
            end=self.end[rows],
            kind=self.kind[rows],
            subject=self.subject[rows],
            first_entry=first,
            entry_word=self.entry_word[entries],
            entry_mask=self.entry_mask[entries],
        )

    def _joined(self, busy: Iterable[Busy]) -> "FleetSnapshot":
        """This snapshot with more intervals, sorted by start again."""
        start, end, kind, subjects = [], [], [], []
        lengths, words, masks = [], [self.entry_word], [self.entry_mask]
        for one in busy:
            last = self._last_minute(one)
            if last <= self.now_minute or last <= one.start_minute:
                continue
            nodes = one.nodes if isinstance(one.nodes, NodeMasks) else self.topology.masks(one.nodes)
            start.append(one.start_minute)
            end.append(last)
            kind.append(KINDS.index(one.kind))
            subjects.append(replace(one, nodes=nodes))
            lengths.append(len(nodes.rack))
            words.append(self.topology.first_word[nodes.rack] + nodes.word)
            masks.append(nodes.mask)
        first = self.first_entry[-1] + np.cumsum(np.array(lengths, np.int64))
        numbers = np.arange(len(self.subjects), len(self.subjects) + len(subjects))
        joined = replace(
            self,
            start=np.concatenate((self.start, np.array(start, np.int64))),
            end=np.concatenate((self.end, np.array(end, np.int64))),
            kind=np.concatenate((self.kind, np.array(kind, np.int64))),
            subject=np.concatenate((self.subject, numbers)),
            first_entry=np.concatenate((self.first_entry, first)),
            entry_word=np.concatenate(words),
            entry_mask=np.concatenate(masks),
            subjects=(*self.subjects, *subjects),
        )
        return joined._taken(np.lexsort((joined.end, joined.start)))

    def _last_minute(self, busy: Busy) -> int:
        """The end that blocks: for ever when not told, now + 1 for a job that should have ended."""
        if busy.end_minute is None:
            return FOREVER
        if busy.kind == "job":
            return max(busy.end_minute, self.now_minute + 1)
        return busy.end_minute
