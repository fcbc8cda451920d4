"""How would a slow and obvious planner decide? (the independent referee: sets of names, minute by minute)

It shares no code with the planner beyond the plain value types, and looks at every minute and every set of blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from scheduling.snapshot import Busy
from scheduling.spec import ReservationSpec
from scheduling.topology import FlavorShape, NodeMasks, RackShape

HORIZON = 400 * 24 * 60
TAKEN = {"full": {"ok"}, "degraded_ok": {"ok", "degraded"}, "not_needed": {"ok", "degraded", "broken"}}


@dataclass(frozen=True)
class PlainFleet:
    """Everything a snapshot is built from, as plain values."""

    now: int
    flavors: tuple[FlavorShape, ...]
    racks: tuple[RackShape, ...]
    unhealthy: frozenset[str] = frozenset()
    busy: tuple[Busy, ...] = ()
    contract_ends: int | None = None

    def without(self, code: str, kind: str, id: str) -> "PlainFleet":
        """The fleet with one named thing out of the way; the code tells in which way a rack was in it."""
        if kind == "node":
            return replace(self, unhealthy=self.unhealthy - {id})
        if kind == "rack":
            mends: dict[str, dict[str, Any]] = {
                "nvlink_unhealthy": {"nvlink": "ok"},
                "not_yet_delivered": {"from_minute": None},
                "contract_ends": {"until_minute": None},
            }
            mended = mends[code]
            return replace(self, racks=tuple(replace(r, **mended) if r.name == id else r for r in self.racks))
        return replace(self, busy=tuple(busy for busy in self.busy if (busy.kind, busy.id) != (kind, id)))


def free_nodes(fleet: PlainFleet, spec: ReservationSpec, start: int) -> dict[RackShape, set[str]]:
    """Nodes per rack that the spec may use throughout [start, start + duration)."""
    end = start + spec.duration_minutes
    turnaround = next(flavor for flavor in fleet.flavors if flavor.name == spec.flavor).turnaround_minutes
    taken: set[str] = set(fleet.unhealthy) | set(spec.avoid)
    for busy in fleet.busy:
        begin, finish = busy.start_minute, busy.end_minute
        if busy.kind == "job":
            if spec.ignore_jobs:
                continue
            finish = None if finish is None else max(finish, fleet.now + 1)
        if finish is not None and finish <= fleet.now:
            continue
        pad = turnaround if busy.kind == "reservation" else 0
        if begin - pad < end and (finish is None or finish + pad > start):
            assert not isinstance(busy.nodes, NodeMasks)
            taken |= set(busy.nodes)
    free = {}
    for rack in fleet.racks:
        there = (rack.from_minute is None or rack.from_minute <= start) and (
            rack.until_minute is None or end <= rack.until_minute
        )
        if rack.flavor != spec.flavor or rack.name in spec.avoid_racks:
            continue
        usable = there and rack.nvlink in TAKEN[spec.nvlink]
        usable = usable and (fleet.contract_ends is None or end <= fleet.contract_ends)
        free[rack] = set(rack.nodes) - taken if usable else set()
    return free


def size(fleet: PlainFleet, spec: ReservationSpec) -> tuple[int, int]:
    """(pieces needed, nodes per piece)."""
    flavor = next(flavor for flavor in fleet.flavors if flavor.name == spec.flavor)
    least = spec.size if spec.min is None else spec.min
    if spec.racks is not None:
        working = flavor.nodes_per_rack - spec.spare_nodes if spec.nodes_per_rack is None else spec.nodes_per_rack
        return least, working + spec.spare_nodes
    return (least, 1) if spec.nodes is not None else (-(-least // flavor.gpus_per_node), 1)


def wanted(fleet: PlainFleet, spec: ReservationSpec) -> int:
    """Pieces of the full size."""
    return size(fleet, replace(spec, min=None))[0]


def block_sets(fleet: PlainFleet, spec: ReservationSpec) -> list[list[RackShape]]:
    """Every set of racks the block limit lets an ask lie in."""
    limit = 1 if spec.same_block else spec.max_blocks
    racks = [rack for rack in fleet.racks if spec.nodes or spec.gpus or rack.name]
    if limit is None:
        return [racks]
    racks = [rack for rack in racks if rack.name]
    blocks: dict[str, list[RackShape]] = {}
    for number, rack in enumerate(racks):
        block = rack.levels[0] if rack.levels and rack.levels[0] else f"alone {number}"
        blocks.setdefault(block, []).append(rack)
    chosen = combinations(blocks.values(), min(limit, len(blocks)))
    return [[rack for block in some for rack in block] for some in chosen]


def pieces(fleet: PlainFleet, spec: ReservationSpec, start: int) -> int:
    """The most pieces obtainable at exactly `start`."""
    _, each = size(fleet, spec)
    free = free_nodes(fleet, spec, start)
    best = 0
    for racks in block_sets(fleet, spec):
        nodes = [len(free.get(rack, ())) for rack in racks]
        best = max(best, sum(count >= each for count in nodes) if spec.racks is not None else sum(nodes))
    return best


def fits(fleet: PlainFleet, spec: ReservationSpec, start: int) -> bool:
    return pieces(fleet, spec, start) >= size(fleet, spec)[0]


def starts(fleet: PlainFleet, spec: ReservationSpec) -> range:
    """Every start the window allows."""
    first = max(fleet.now, spec.earliest_start_minute if spec.earliest_start_minute is not None else fleet.now)
    end = spec.latest_end_minute if spec.latest_end_minute is not None else fleet.now + HORIZON
    return range(first, end - spec.duration_minutes + 1)


def earliest(fleet: PlainFleet, spec: ReservationSpec) -> int | None:
    """The first start that fits, found by trying them all."""
    return next((start for start in starts(fleet, spec) if fits(fleet, spec, start)), None)


def nodes_missing(fleet: PlainFleet, spec: ReservationSpec, start: int) -> int | None:
    """Fewest nodes that would have to become free for a fit at `start`; None when nothing could make it fit."""
    need, each = size(fleet, spec)
    free = free_nodes(fleet, spec, start)
    best: int | None = None
    for racks in block_sets(fleet, spec):
        racks = [rack for rack in racks if rack in free]
        room = {rack: len(set(rack.nodes) - set(spec.avoid)) for rack in racks}
        if spec.racks is not None:
            lacking = sorted(max(0, each - len(free[rack])) for rack in racks if room[rack] >= each)
            missing = sum(lacking[:need]) if len(lacking) >= need else None
        else:
            enough = sum(room.values()) >= need
            missing = max(0, need - sum(len(free[rack]) for rack in racks)) if enough else None
        if missing is not None and (best is None or missing < best):
            best = missing
    return best


def without_all(fleet: PlainFleet, things: Iterable[tuple[str, str, str]]) -> PlainFleet:
    """The fleet with several named things (code, kind, id) out of the way."""
    for thing in things:
        fleet = fleet.without(*thing)
    return fleet
