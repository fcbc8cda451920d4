"""What state is each node in during a period? (block > rack > cells: the drawing of request and fleet pages)"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from allocations.models import Cluster, Node, User
from allocations.services.fleet_rows import pseudo_rack
from reservations.disclosure import Disclosed, disclose
from reservations.models import Hold, Reservation
from reservations.moments import moment_of
from reservations.snapshot import NO_NODE, snapshot
from scheduling.answers import Placement
from scheduling.snapshot import FOREVER, FleetSnapshot
from scheduling.topology import WORD_BITS, Masks, NodeMasks, RackShape

NO_RACK = "no rack"  # gathers the pseudo-racks; no scheduler's block has spaces in its name

CellState = Literal["yours", "spare", "held", "free", "outage", "bad", "mine_provisional", "drained"]


@dataclass(frozen=True)
class MapCell:
    """One node. `until_at` is when what is on it ends; `id` and `team` name the holder where that is disclosed."""

    node: str
    state: CellState
    until_at: datetime | None = None
    id: str | None = None
    team: str | None = None


@dataclass(frozen=True)
class MapRack:
    """One rack: its cells in node order. `is_picked`: the placement uses it."""

    name: str
    flavor: str
    nvlink: str
    cells: tuple[MapCell, ...]
    is_picked: bool = False


@dataclass(frozen=True)
class MapBlock:
    """One block of racks, in name order; "" gathers racks whose block is not known, NO_RACK nodes without a rack."""

    name: str
    racks: tuple[MapRack, ...]


@dataclass(frozen=True)
class _Layer:
    """One state over a set of nodes (a plane); later layers lie on top of earlier ones."""

    state: CellState
    plane: Masks
    until_at: datetime | None = None
    shown: Disclosed | None = None


def holders(cluster: Cluster, at: datetime, user: User | None = None) -> tuple[MapBlock, ...]:
    """The whole cluster at one moment; jobs do not count. Without a person nothing is "yours" and nobody is named."""
    view = snapshot(cluster, at)
    return map_of(cluster, view, view.now_minute, view.now_minute + 1, user=user, with_jobs=False)


def map_of(
    cluster: Cluster,
    view: FleetSnapshot,
    start_minute: int,
    end_minute: int,
    *,
    user: User | None = None,
    placement: Placement | None = None,
    flavor: str | None = None,
    most_racks: int | None = None,
    with_jobs: bool = True,
) -> tuple[MapBlock, ...]:
    """Every node's state during [start, end), the worst that touches it; three queries beside the person's rights.

    `flavor` leaves other racks out; with `most_racks` the blocks of the placement come first and whole, and others
    follow while they fit.
    """
    layers = _layers(cluster, view, start_minute, end_minute, user, placement, with_jobs)
    topology = view.topology
    by_block: dict[str, list[int]] = defaultdict(list)
    for number, rack in enumerate(topology.racks):
        if flavor is None or rack.flavor == flavor:
            by_block[_block_of(rack)].append(number)
    picked = set(placement.racks) if placement is not None else set()
    drawn = []
    for name in _chosen(view, by_block, picked, most_racks):
        numbers = sorted(by_block[name], key=lambda number: natural(_name_of(topology.racks[number])))
        racks = tuple(_rack(view, number, layers, topology.racks[number].name in picked) for number in numbers)
        drawn.append(MapBlock(name, racks))
    return tuple(drawn)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which r2 comes before r10."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def _block_of(rack: RackShape) -> str:
    return NO_RACK if rack.is_pseudo else (rack.levels[0] if rack.levels else None) or ""


def _name_of(rack: RackShape) -> str:
    """The name that its row has: the planner knows a pseudo-rack by none."""
    return pseudo_rack(rack.flavor) if rack.is_pseudo else rack.name


def _order(block: str) -> tuple[bool, bool, tuple[tuple[int, int, str], ...]]:
    """Blocks by name, then racks without a block, then nodes without a rack."""
    return block == NO_RACK, block == "", natural(block)


def _chosen(view: FleetSnapshot, by_block: dict[str, list[int]], picked: set[str], most: int | None) -> list[str]:
    """Names of the blocks to draw, in name order."""
    names = sorted(by_block, key=_order)
    if most is None:
        return names
    used = [name for name in names if any(view.topology.racks[number].name in picked for number in by_block[name])]
    chosen, drawn = list(used), sum(len(by_block[name]) for name in used)
    for name in names:
        if name not in used and (drawn + len(by_block[name]) <= most or not chosen):
            chosen.append(name)
            drawn += len(by_block[name])
    return sorted(chosen, key=_order)


def _layers(
    cluster: Cluster,
    view: FleetSnapshot,
    start: int,
    end: int,
    user: User | None,
    placement: Placement | None,
    with_jobs: bool,
) -> list[_Layer]:
    """Everything that touches the period, from the bottom up."""
    topology = view.topology
    rows = np.flatnonzero((view.start < end) & (view.end > start)).tolist()
    subjects = [view.subjects[int(view.subject[row])] for row in rows]
    shown = _shown(cluster, user, [busy.id for busy in subjects if busy.kind == "reservation"])
    below: list[_Layer] = []
    above: list[_Layer] = []
    for row, busy in zip(rows, subjects, strict=True):
        plane = topology.plane(busy.nodes if isinstance(busy.nodes, NodeMasks) else topology.masks(busy.nodes))
        until_at = None if int(view.end[row]) >= FOREVER else moment_of(int(view.end[row]))
        if busy.kind in ("outage", "repair"):
            above.append(_Layer("outage" if busy.kind == "outage" else "bad", plane, until_at))
        elif busy.kind == "reservation":
            who = shown.get(busy.id)
            state: CellState = "held"
            if who is not None and who.is_mine:
                state = "mine_provisional" if busy.provisional else "yours"
            below.append(_Layer(state, plane, until_at, who))
        elif with_jobs:
            below.insert(0, _Layer("held", plane, until_at))
    spares = _spares([name for name, who in shown.items() if who.is_mine])
    below.append(_Layer("spare", topology.plane(topology.masks(spares))))
    drained = Node.objects.filter(cluster=cluster, is_drained=True, gone_at=None).values_list("name", flat=True)
    above.append(_Layer("bad", view.unhealthy))
    above.append(_Layer("drained", topology.plane(topology.masks(drained))))
    if placement is not None:
        above.append(_Layer("yours", topology.plane(topology.masks(placement.working_nodes))))
        above.append(_Layer("spare", topology.plane(topology.masks(placement.spares))))
    return [*below, *above]


def _shown(cluster: Cluster, user: User | None, names: Iterable[str]) -> dict[str, Disclosed]:
    """What the person may know of the reservations of these ids."""
    if user is None:
        return {}
    rows = Reservation.objects.filter(pk__in={int(name.removeprefix("R-")) for name in names})
    shown = {}
    for row in rows.select_related("team", "created_by"):
        row.cluster = cluster
        shown[row.public_id] = disclose(user, row)
    return shown


def _spares(names: Iterable[str]) -> list[str]:
    """Names of the spare nodes of the person's own reservations."""
    ids = [int(name.removeprefix("R-")) for name in names]
    return list(
        Hold.objects.filter(reservation__in=ids, is_spare=True, released_at=None).values_list("node__name", flat=True)
    )


def _rack(view: FleetSnapshot, number: int, layers: list[_Layer], is_picked: bool) -> MapRack:
    shape: RackShape = view.topology.racks[number]
    first = int(view.topology.first_word[number])
    last = int(view.topology.first_word[number + 1])
    here = [(layer, [int(word) for word in layer.plane[first:last]]) for layer in layers]
    here = [(layer, words) for layer, words in here if any(words)]
    cells = []
    for position, node in enumerate(shape.nodes):
        if node.startswith(NO_NODE):
            continue
        word, bit = divmod(position, WORD_BITS)
        cells.append(_cell(node, [layer for layer, words in here if words[word] >> bit & 1]))
    return MapRack(_name_of(shape), shape.flavor, shape.nvlink, tuple(cells), is_picked)


def _cell(node: str, layers: list[_Layer]) -> MapCell:
    """The node under the layers that lie on it: the topmost says the state, the topmost holder its name."""
    if not layers:
        return MapCell(node, "free")
    top = layers[-1]
    holder = next((layer for layer in reversed(layers) if layer.shown is not None), None)
    who = holder.shown if holder is not None else None
    until_at = top.until_at if top.until_at is not None or holder is None or top.state != "spare" else holder.until_at
    return MapCell(node, top.state, until_at, who.id if who else None, who.team if who else None)
