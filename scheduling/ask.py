"""How much of what a person asks for do given free nodes yield? (a spec laid on a snapshot: pieces, groups, window)

An ask is a number of pieces: racks with enough free nodes, or nodes. Its racks may have to lie in at most so many
groups (blocks); a rack whose block is unknown is a group of its own, because unknown is never adjacent. All counting
works on arrays whose last axis is the rack columns of the ask's timeline, so that one call judges every start.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from scheduling.snapshot import FleetSnapshot
from scheduling.spec import ReservationSpec, SpecError
from scheduling.timeline import Timeline
from scheduling.topology import UNKNOWN, FlavorShape, Indexes, Masks

LOOK_AHEAD_MINUTES = 400 * 24 * 60
MOST_COMBINATIONS = 256  # block sets tried one by one when looking for the nearest miss; beyond, only the roomiest
NVLINK_TAKEN = {"full": ("ok",), "degraded_ok": ("ok", "degraded"), "not_needed": ("ok", "degraded", "broken")}


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A checked spec on a snapshot, ready to be searched; build it with `Ask.of`.

    `need` pieces of `piece_nodes` nodes each (up to `wanted`, where the spec has a minimum), at most one per rack when
    `per_rack`; a piece counts `piece_units` of `unit`. `group` numbers the block of each rack column; at most
    `max_groups` of them may be used (None: any). Starts lie in [first_start, last_start], empty when the window is
    too short.
    """

    snapshot: FleetSnapshot
    spec: ReservationSpec
    flavor: FlavorShape
    timeline: Timeline
    unit: str
    need: int
    wanted: int
    piece_nodes: int
    piece_units: int
    per_rack: bool
    group: Indexes
    max_groups: int | None
    first_start: int
    last_start: int

    @classmethod
    def of(cls, snapshot: FleetSnapshot, spec: ReservationSpec, only: Iterable[str] | None = None) -> "Ask":
        """Lay the spec on the snapshot, on the nodes `only` if given. Raises SpecError: unknown flavor, bad spec."""
        spec = spec.checked()
        flavor = snapshot.topology.flavor(spec.flavor)
        if flavor is None:
            raise SpecError("flavor", f"{snapshot.cluster} has no flavor {spec.flavor}")
        unit, need, piece_nodes, piece_units = _pieces(spec, flavor)
        max_groups = 1 if spec.same_block else spec.max_blocks
        allowed = _allowed(snapshot, spec, only)
        racks = _racks(snapshot, spec, flavor, allowed, piece_nodes, grouped=max_groups is not None)
        broken = _broken(snapshot, spec, racks)
        first = max(snapshot.now_minute, spec.earliest_start_minute or snapshot.now_minute)
        latest_end = spec.latest_end_minute
        if latest_end is None:
            latest_end = snapshot.now_minute + LOOK_AHEAD_MINUTES
        return cls(
            snapshot=snapshot,
            spec=spec,
            flavor=flavor,
            timeline=Timeline.of(snapshot, racks, allowed, broken, spec.ignore_jobs),
            unit=unit,
            need=need if spec.min is None else -(-spec.min // max(1, piece_units)),
            wanted=need,
            piece_nodes=piece_nodes,
            piece_units=piece_units,
            per_rack=spec.racks is not None,
            group=_group_columns(snapshot, racks),
            max_groups=max_groups,
            first_start=first,
            last_start=latest_end - spec.duration_minutes,
        )

    def refuses_nvlink(self, rack: int) -> bool:
        """Whether the NVLink of a rack (by number) is worse than the ask takes."""
        return self.snapshot.topology.racks[rack].nvlink not in NVLINK_TAKEN[self.spec.nvlink]

    def pieces(self, counts: Indexes) -> Indexes:
        """Pieces that each rack yields from its free nodes; same shape as `counts`."""
        return (counts >= self.piece_nodes).astype(np.int64) if self.per_rack else counts

    def obtainable(self, counts: Indexes) -> Indexes:
        """The most pieces that the block limit lets one ask take, per row of free counts."""
        pieces = self.pieces(counts)
        if self.max_groups is not None:
            pieces = self.per_group(pieces)
            if pieces.shape[-1] > self.max_groups:
                pieces = -np.partition(-pieces, self.max_groups - 1, axis=-1)[..., : self.max_groups]
        most: Indexes = pieces.sum(axis=-1)
        return most

    def per_group(self, values: Indexes) -> Indexes:
        """Sums of rack columns per group, groups in number order."""
        if not len(self.group):
            return np.zeros((*values.shape[:-1], 0), np.int64)
        order = np.argsort(self.group, kind="stable")
        edges = np.flatnonzero(np.diff(self.group[order], prepend=-1))
        return np.add.reduceat(values[..., order], edges, axis=-1)

    @property
    def possible(self) -> int:
        """The most pieces there could be with nothing in the way at all."""
        return int(self.obtainable(self.timeline.counts(self.timeline.allowed)))

    def units(self, pieces: int) -> int:
        """Pieces in the ask's unit, never more than was asked (GPUs round up to whole nodes)."""
        return min(pieces * self.piece_units, self.spec.size)

    @property
    def least(self) -> int:
        """What must be had for the ask to fit, in its unit."""
        return self.spec.size if self.spec.min is None else self.spec.min

    def grown(self, counts: Indexes) -> "Ask":
        """The ask for as many pieces as these free counts yield, up to what is wanted."""
        return replace(self, need=min(self.wanted, int(self.obtainable(counts))))

    def nodes_missing(self, counts: Indexes, near_sets: Sequence[Indexes]) -> Indexes:
        """The fewest nodes that would have to become free for the ask to fit, per row of free counts [rows, racks].

        `near_sets` are those of `near_sets()`: the same for every row.
        """
        best = np.full(counts.shape[0], np.iinfo(np.int64).max)
        for columns in near_sets:
            np.minimum(best, self.missing_within(counts, columns), out=best)
        return best

    def missing_within(self, counts: Indexes, columns: Indexes) -> Indexes:
        """nodes_missing() when only these rack columns may be used; they must be able to hold the ask."""
        here = counts[:, columns]
        if self.per_rack:
            lacking = np.maximum(0, self.piece_nodes - here)
            if lacking.shape[1] > self.need:
                lacking = np.partition(lacking, self.need - 1, axis=1)[:, : self.need]
            missing: Indexes = lacking.sum(axis=1)
        else:
            missing = np.maximum(0, self.need - here.sum(axis=1))
        return missing

    def near_sets(self) -> list[Indexes]:
        """Sets of rack columns, each able to hold the ask if nothing were in the way, within the block limit.

        With few groups these are all sets; with very many, groups are put together by capacity, so that the
        nearest miss is a good one, not provably the nearest (whether and when an ask fits is exact in every case).
        """
        every = np.arange(len(self.group))
        room = self.per_group(self.pieces(self.timeline.counts(self.timeline.allowed)))
        if self.max_groups is None or self.max_groups >= len(room):
            return [every] if room.sum() >= self.need else []
        numbers = np.unique(self.group)
        if comb(len(numbers), self.max_groups) <= MOST_COMBINATIONS or self.max_groups == 1:
            choices: Iterable[tuple[int, ...]] = combinations(range(len(numbers)), self.max_groups)
        else:
            order = np.argsort(-room, kind="stable").tolist()
            choices = [tuple(order[at : at + self.max_groups]) for at in range(len(order) - self.max_groups + 1)]
        return [
            np.flatnonzero(np.isin(self.group, numbers[list(choice)]))
            for choice in choices
            if room[list(choice)].sum() >= self.need
        ]


def _pieces(spec: ReservationSpec, flavor: FlavorShape) -> tuple[str, int, int, int]:
    """(unit, pieces, nodes per piece, units per piece). Raises SpecError when the spares leave no working node."""
    if spec.racks is not None:
        working = spec.nodes_per_rack
        if working is None:
            working = flavor.nodes_per_rack - spec.spare_nodes
        if working < 1:
            sentence = f"a rack of {flavor.name} has {flavor.nodes_per_rack} nodes; none is left to work"
            raise SpecError("spare_nodes", sentence)
        return "racks", spec.racks, working + spec.spare_nodes, 1
    if spec.nodes is not None:
        return "nodes", spec.nodes, 1, 1
    asked = spec.gpus or 0
    return "gpus", -(-asked // max(1, flavor.gpus_per_node)), 1, flavor.gpus_per_node


def _allowed(snapshot: FleetSnapshot, spec: ReservationSpec, only: Iterable[str] | None) -> Masks:
    """Plane of the nodes the ask's own words let it use."""
    topology = snapshot.topology
    allowed = topology.full if only is None else topology.plane(topology.masks(only))
    return allowed & ~topology.plane(topology.masks(spec.avoid))


def _broken(snapshot: FleetSnapshot, spec: ReservationSpec, racks: Indexes) -> Masks:
    """Plane of nodes out for all time: unhealthy ones, and all of a rack whose NVLink is worse than the ask takes."""
    topology = snapshot.topology
    broken = snapshot.unhealthy.copy()
    for number in racks.tolist():
        if topology.racks[number].nvlink not in NVLINK_TAKEN[spec.nvlink]:
            words = slice(*topology.first_word[number : number + 2].tolist())
            broken[words] = topology.full[words]
    return broken


def _racks(
    snapshot: FleetSnapshot, spec: ReservationSpec, flavor: FlavorShape, allowed: Masks, piece_nodes: int, grouped: bool
) -> Indexes:
    """Numbers of the racks that could ever yield a piece, in topology order.

    Pseudo-racks have no place in the network: asks for racks and asks with a block limit never use them.
    """
    topology = snapshot.topology
    avoided = set(spec.avoid_racks)
    words = np.bitwise_count(allowed).astype(np.int64)
    sums = np.concatenate(([0], np.cumsum(words)))
    room = sums[topology.first_word[1:]] - sums[topology.first_word[:-1]]
    pseudo_too = spec.racks is None and not grouped
    without_gpus = spec.gpus is not None and not flavor.gpus_per_node
    return np.array(
        [
            number
            for number, rack in enumerate(topology.racks)
            if rack.flavor == flavor.name
            and room[number] >= piece_nodes
            and rack.name not in avoided
            and (pseudo_too or not rack.is_pseudo)
            and not without_gpus
        ],
        np.int64,
    )


def _group_columns(snapshot: FleetSnapshot, racks: Indexes) -> Indexes:
    """The lowest-level group of each rack column; racks with an unknown one get a number of their own."""
    topology = snapshot.topology
    known = len(topology.group_names[0]) if topology.levels else 0
    told = topology.group[racks, 0] if topology.levels else np.full(len(racks), UNKNOWN, np.int64)
    return np.where(told == UNKNOWN, known + np.arange(len(racks)), told)
