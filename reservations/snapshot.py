"""What does the planner see of a cluster at one moment? (rows -> FleetSnapshot in a fixed number of queries)

Reservations are read from their masks, not from hold rows. Only production nodes that are healthy and not drained
can be placed. A process keeps the last snapshots by (cluster, snapshot_version, minute); services read afresh,
because what a transaction has not committed must not be remembered.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from django.db.models import BigIntegerField, F, Q
from django.db.models.functions import Cast, Extract, Least

from allocations.models import Block, Cluster, Flavor, Level, Node, Outage, Rack, RunningJob
from reservations.models import Reservation
from reservations.moments import minute_from, minute_until
from reservations.states import HOLDING, OPEN
from scheduling.snapshot import FOREVER, Busy, FleetSnapshot
from scheduling.topology import FlavorShape, NodeMasks, RackShape, Topology

QUERIES = 10
_KEPT = 8
NO_NODE = "?"  # begins the name of a position without a node
_snapshots: dict[tuple[int, int, int], FleetSnapshot] = {}
_names: dict[tuple[int, str], dict[int, list[str]]] = {}
_cache_lock = Lock()
Value = TypeVar("Value")


def snapshot(cluster: Cluster, at: datetime, *, without: str | None = None, fresh: bool = False) -> FleetSnapshot:
    """The cluster as it stands at `at`; starts count from the next whole minute.

    At most QUERIES queries, one less when the node names are known, one when the snapshot is. `without` is the public
    id of a reservation to leave out. `fresh` neither reads nor fills the cache of snapshots: for deeds, inside the
    transaction that holds the cluster's row lock.
    """
    row = Cluster.objects.only("snapshot_version", "contract_ends_at", "lifecycle", "inventory_mark", "name").get(
        pk=cluster.pk
    )
    key = (row.pk, row.snapshot_version, minute_until(at))
    found = None if fresh else _snapshots.get(key)
    if found is None:
        found = _read(row, at)
        if not fresh:
            _remember(_snapshots, key, found)
    return found if without is None else found.without("reservation", without)


def holding(cluster: Cluster, at: datetime) -> Q:
    """The condition for reservations of the cluster that hold nodes at or after `at`: an expired hold is none."""
    return (
        Q(cluster=cluster, decision__in=HOLDING, end_at__gt=at)
        & (Q(released_at=None) | Q(released_at__gt=at))
        & ~Q(decision__in=OPEN, hold_expires_at__lte=at)
    )


def _remember(cache: dict[Any, Value], key: Hashable, value: Value) -> None:
    with _cache_lock:
        while len(cache) >= _KEPT:
            cache.pop(next(iter(cache)))
        cache[key] = value


def _read(cluster: Cluster, at: datetime) -> FleetSnapshot:
    now = minute_until(at)
    topology, rack_index, unhealthy, returns = _topology(cluster, at)
    busy = [*_holds(cluster, at, rack_index), *_outages(cluster, at), *_jobs(cluster)]
    for minute, names in returns.items():
        busy += [Busy("repair", name, (name,), now, minute) for name in names]
    contract = None if cluster.contract_ends_at is None else minute_from(cluster.contract_ends_at)
    return FleetSnapshot.build(cluster.name, now, topology, unhealthy, busy, contract)


def _topology(cluster: Cluster, at: datetime) -> tuple[Topology, dict[int, int], list[str], dict[int, list[str]]]:
    """The tree, rack index by row id, names that nothing may be placed on, and names by the minute they come back."""
    levels = list(Level.objects.filter(cluster=cluster).order_by("position").values_list("id", "name"))
    blocks = {
        pk: (level, name, parent)
        for pk, level, name, parent in Block.objects.filter(cluster=cluster).values_list(
            "id", "level_id", "name", "parent_id"
        )
    }
    flavors = {
        pk: FlavorShape(name, gpus, nodes, turnaround)
        for pk, name, gpus, nodes, turnaround in Flavor.objects.filter(cluster=cluster)
        .order_by("name")
        .values_list("id", "name", "gpus_per_node", "nodes_per_rack", "turnaround_minutes")
    }
    rows = list(Rack.objects.filter(cluster=cluster).order_by("is_pseudo", "name"))
    alive = {
        rack.pk
        for rack in rows
        if cluster.lifecycle == "production" and not rack.gone_at and rack.lifecycle not in ("repair", "retired")
    }
    nodes = _node_names(cluster)
    unhealthy = [
        name for rack, names in nodes.items() for name in names if rack not in alive or name.startswith(NO_NODE)
    ]
    bad, returns = _unplaceable(cluster, at)
    unhealthy += bad
    shapes = [
        RackShape(
            name="" if rack.is_pseudo else rack.name,
            flavor=flavors[rack.flavor_id].name,
            nodes=tuple(nodes.get(rack.pk, ())),
            levels=_levels_of(rack.block_id, blocks, [pk for pk, _ in levels]),
            nvlink=rack.nvlink,
            from_minute=_in_service(rack),
            until_minute=None if rack.out_of_service_at is None else minute_from(rack.out_of_service_at),
        )
        for rack in rows
    ]
    topology = Topology.build([name for _, name in levels], flavors.values(), shapes)
    return topology, {rack.pk: number for number, rack in enumerate(rows)}, unhealthy, returns


def _in_service(rack: Rack) -> int | None:
    """The first minute the rack exists for the planner; a rack that is not delivered and has no date never does."""
    if rack.in_service_at is not None:
        return minute_until(rack.in_service_at)
    return FOREVER if rack.lifecycle in ("ordered", "burn_in") else None


def _node_names(cluster: Cluster) -> dict[int, list[str]]:
    """Node names by rack row id, at their positions. A node keeps its position for ever, so gone nodes are among them.

    A position that no node has gets a name that no host can have. Kept by the cluster's inventory mark.
    """
    key = (cluster.pk, cluster.inventory_mark)
    if cluster.inventory_mark and (known := _names.get(key)) is not None:
        return known
    names: dict[int, list[str]] = defaultdict(list)
    rows = (
        Node.objects.filter(cluster=cluster).order_by("rack_id", "position").values_list("rack_id", "position", "name")
    )
    for rack, position, name in rows:
        inside = names[rack]
        while len(inside) < position:
            inside.append(f"{NO_NODE}{rack}/{len(inside)}")
        inside.append(name)
    if cluster.inventory_mark:
        _remember(_names, key, names)
    return names


def _unplaceable(cluster: Cluster, at: datetime) -> tuple[list[str], dict[int, list[str]]]:
    """Names of nodes that nothing may be placed on, and those of them that come back, by the minute they do."""
    unhealthy: list[str] = []
    returns: dict[int, list[str]] = defaultdict(list)
    rows = (
        Node.objects.filter(cluster=cluster)
        .exclude(condition="healthy", is_drained=False, lifecycle="production", gone_at=None)
        .order_by("name")
        .values_list("name", "lifecycle", "expected_back_at", "gone_at")
    )
    for name, lifecycle, back_at, gone_at in rows:
        if back_at is not None and back_at > at and gone_at is None and lifecycle != "retired":
            returns[minute_until(back_at)].append(name)
        else:
            unhealthy.append(name)
    return unhealthy, returns


def _levels_of(
    block: int | None, blocks: Mapping[int, tuple[int, str, int | None]], levels: list[int]
) -> tuple[str | None, ...]:
    """The names above a rack, lowest level first; None where nobody told."""
    named: dict[int, str] = {}
    while block is not None and block in blocks:
        level, name, block = blocks[block]
        named[level] = name
    return tuple(named.get(level) for level in levels)


def _holds(cluster: Cluster, at: datetime, rack_index: dict[int, int]) -> list[Busy]:
    """Every reservation that holds nodes. Moments come as seconds and masks as one array: rows are many."""
    rows = list(
        Reservation.objects.filter(holding(cluster, at))
        .order_by("id")
        .values_list(
            "id", "decision", _seconds("start_at"), _seconds(Least("end_at", "released_at")),
            "mask_racks", "mask_words", "mask_bits",
        )
    )  # fmt: skip
    lookup = np.zeros(max(rack_index, default=0) + 1, np.int64)
    lookup[list(rack_index)] = list(rack_index.values())
    racks, words, bits = (np.array([one for row in rows for one in row[column]], np.int64) for column in (4, 5, 6))
    every = NodeMasks(lookup[racks], words, bits.view(np.uint64))
    holds, first = [], 0
    for pk, decision, start, end, mask_racks, *_ in rows:
        part = slice(first, first + len(mask_racks))
        first = part.stop
        nodes = NodeMasks(every.rack[part], every.word[part], every.mask[part])
        holds.append(
            Busy("reservation", f"R-{pk}", nodes, start // 60, -(-end // 60), provisional=decision != "approved")
        )
    return holds


def _seconds(moment: str | Least) -> Cast:
    """A moment as whole seconds since the epoch, computed by the database."""
    return Cast(Extract(moment, "epoch"), BigIntegerField())


def _outages(cluster: Cluster, at: datetime) -> Iterator[Busy]:
    rows = (
        Outage.objects.filter(cluster=cluster, cancelled_at=None)
        .filter(Q(period__endswith=None) | Q(period__endswith__gt=at))
        .annotate(node=F("nodes__name"))
        .order_by("id")
        .values_list("id", "period", "node")
    )
    nodes: dict[int, list[str]] = defaultdict(list)
    periods = {}
    for pk, period, node in rows:
        periods[pk] = period
        if node is not None:
            nodes[pk].append(node)
    for pk, period in periods.items():
        start = minute_from(period.lower) if period.lower is not None else 0
        end = None if period.upper is None else minute_until(period.upper)
        yield Busy("outage", f"M-{pk}", nodes[pk], start, end)


def _jobs(cluster: Cluster) -> Iterator[Busy]:
    rows = (
        RunningJob.objects.filter(cluster=cluster)
        .order_by("job_id")
        .values_list("job_id", "nodes", "started_at", "ends_at", "tier")
    )
    for job, nodes, started_at, ends_at, tier in rows:
        start = 0 if started_at is None else minute_from(started_at)
        end = None if ends_at is None else minute_until(ends_at)
        yield Busy("job", job, nodes, start, end, tier=tier or None)
