"""Who has what, when? (blocks of rack rows, and one shape per reservation or outage on neighbouring rows)"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal

import numpy as np
from django.db.models import Count, F, Q

from allocations.models import Cluster, Node, Outage, Rack, User
from reservations.budget import node_count
from reservations.disclosure import Disclosed, disclose
from reservations.fleet_map import natural
from reservations.models import Reservation
from reservations.states import HOLDING, OPEN


@dataclass(frozen=True)
class BoardRack:
    """One row of the board."""

    name: str
    flavor: str
    nvlink: str
    nodes: int
    bad_nodes: int


@dataclass(frozen=True)
class BoardShape:
    """One drawing: rows [first_row, first_row + rows) of its block during [start_at, end_at), cut to the window.

    A reservation has `shown` (what the reader may know of it) and how many nodes it holds on these rows; an outage
    has its `name` and id.
    """

    kind: Literal["reservation", "outage"]
    first_row: int
    rows: int
    start_at: datetime
    end_at: datetime
    is_provisional: bool = False
    is_mine: bool = False
    nodes: int = 0
    shown: Disclosed | None = None
    id: str | None = None
    name: str = ""


@dataclass(frozen=True)
class FreeSpan:
    """How many of a block's racks have nothing on them during [start_at, end_at)."""

    start_at: datetime
    end_at: datetime
    free_racks: int


@dataclass(frozen=True)
class BoardBlock:
    """One block: its rows, the shapes on them, and the free racks over time for when it is folded."""

    name: str
    racks: tuple[BoardRack, ...]
    shapes: tuple[BoardShape, ...]
    free: tuple[FreeSpan, ...]


@dataclass(frozen=True)
class Board:
    """One cluster over [start_at, end_at)."""

    cluster: str
    start_at: datetime
    end_at: datetime
    blocks: tuple[BoardBlock, ...]

    def free_racks_at(self, moment: datetime) -> int:
        """Racks with nothing on them at a moment of the window."""
        return sum(
            span.free_racks for block in self.blocks for span in block.free if span.start_at <= moment < span.end_at
        )

    @property
    def racks(self) -> int:
        return sum(len(block.racks) for block in self.blocks)


@dataclass(frozen=True)
class _Touch:
    """Something on some racks: a shape without rows, and nodes by rack row id."""

    shape: BoardShape
    racks: dict[int, int]


def board(user: User, cluster: Cluster, start: datetime, end: datetime, at: datetime | None = None) -> Board:
    """The cluster's racks over [start, end) as this person may see them; six queries beside the person's rights.

    Asks whose hold has run out at `at` (default: `start`) are left out.
    """
    rows = _racks(cluster)
    touches = [*_reservations(user, cluster, start, end, at or start), *_outages(cluster, start, end)]
    by_block: dict[str, list[tuple[int, BoardRack]]] = defaultdict(list)
    for pk, block, rack in rows:
        by_block[block].append((pk, rack))
    on_rack: dict[int, list[_Touch]] = defaultdict(list)
    for touch in touches:
        for rack_id in touch.racks:
            on_rack[rack_id].append(touch)
    blocks = []
    for name in sorted(by_block, key=lambda name: (name == "", natural(name))):
        inside = sorted(by_block[name], key=lambda pair: natural(pair[1].name))
        ids = [pk for pk, _ in inside]
        here = list({id(touch): touch for pk in ids for touch in on_rack[pk]}.values())
        shapes = tuple(shape for touch in here for shape in _shapes(touch, ids))
        blocks.append(BoardBlock(name, tuple(rack for _, rack in inside), shapes, _free(shapes, len(ids), start, end)))
    return Board(cluster.name, start, end, tuple(blocks))


def _racks(cluster: Cluster) -> list[tuple[int, str, BoardRack]]:
    bad = ~Q(condition="healthy") | Q(is_drained=True) | ~Q(lifecycle="production")
    counts = {
        rack: (nodes, bad_nodes)
        for rack, nodes, bad_nodes in Node.objects.filter(cluster=cluster, gone_at=None)
        .order_by()
        .values("rack")
        .annotate(nodes=Count("pk"), bad_nodes=Count("pk", filter=bad))
        .values_list("rack", "nodes", "bad_nodes")
    }
    rows = Rack.objects.filter(cluster=cluster, gone_at=None).values_list(
        "id", "block__name", "name", "flavor__name", "nvlink"
    )
    return [
        (pk, block or "", BoardRack(name, flavor, nvlink, *counts.get(pk, (0, 0))))
        for pk, block, name, flavor, nvlink in rows
    ]


def _reservations(user: User, cluster: Cluster, start: datetime, end: datetime, at: datetime) -> Iterator[_Touch]:
    rows = (
        Reservation.objects.filter(cluster=cluster, decision__in=HOLDING, start_at__lt=end, end_at__gt=start)
        .filter(Q(released_at=None) | Q(released_at__gt=start))
        .exclude(decision__in=OPEN, hold_expires_at__lte=at)
        .defer("spec", "score")
        .prefetch_related("team", "created_by")  # few teams and people, many rows: each is made once
        .order_by("start_at", "id")
    )
    for row in rows:
        row.cluster = cluster
        shown = disclose(user, row)
        racks: dict[int, int] = defaultdict(int)
        for rack, bits in zip(row.mask_racks, row.mask_bits, strict=True):
            racks[rack] += node_count((bits,))
        shape = BoardShape(
            kind="reservation",
            first_row=0,
            rows=0,
            start_at=max(start, shown.start_at),
            end_at=min(end, shown.end_at),
            is_provisional=row.decision != "approved",
            is_mine=shown.is_mine,
            shown=shown,
            id=shown.id,
        )
        yield _Touch(shape, racks)


def _outages(cluster: Cluster, start: datetime, end: datetime) -> Iterator[_Touch]:
    rows = (
        Outage.objects.filter(cluster=cluster, cancelled_at=None, period__overlap=(start, end))
        .annotate(rack=F("nodes__rack"), count=Count("nodes"))
        .order_by("id", "rack")
        .values_list("id", "name", "period", "rack", "count")
    )
    racks: dict[int, dict[int, int]] = defaultdict(dict)
    known = {}
    for pk, name, period, rack, count in rows:
        known[pk] = (name, period)
        if rack is not None:
            racks[pk][rack] = count
    for pk, (name, period) in known.items():
        first = start if period.lower is None else max(start, period.lower)
        last = end if period.upper is None else min(end, period.upper)
        yield _Touch(BoardShape("outage", 0, 0, first, last, id=f"M-{pk}", name=name), racks[pk])


def _shapes(touch: _Touch, ids: list[int]) -> Iterator[BoardShape]:
    """One shape for each run of neighbouring rows."""
    first = None
    for row, pk in enumerate([*ids, -1]):
        if pk in touch.racks:
            first = row if first is None else first
        elif first is not None:
            nodes = sum(touch.racks[each] for each in ids[first:row])
            yield replace(touch.shape, first_row=first, rows=row - first, nodes=nodes)
            first = None


def _free(shapes: Iterable[BoardShape], racks: int, start: datetime, end: datetime) -> tuple[FreeSpan, ...]:
    """Free racks of a block between the moments at which something changes."""
    drawn = list(shapes)
    moments = sorted({start, end, *(shape.start_at for shape in drawn), *(shape.end_at for shape in drawn)})
    column = {moment: number for number, moment in enumerate(moments)}
    change = np.zeros((racks, len(moments)), np.int32)
    for shape in drawn:
        rows = slice(shape.first_row, shape.first_row + shape.rows)
        change[rows, column[shape.start_at]] += 1
        change[rows, column[shape.end_at]] -= 1
    free = racks - (change.cumsum(axis=1) > 0).sum(axis=0)
    spans: list[FreeSpan] = []
    for (first, last), count in zip(pairwise(moments), free.tolist(), strict=False):
        if spans and spans[-1].free_racks == count:
            spans[-1] = FreeSpan(spans[-1].start_at, last, count)
        else:
            spans.append(FreeSpan(first, last, count))
    return tuple(spans)
