"""What do the rows say in the planner's words? (rows -> Topology, who is unhealthy, what keeps nodes busy)

A node's position is its bit in the masks that reservations store, so a rack's tuple of nodes keeps every position
ever given: one that a moved node left holds a name that no node can have, and is never placeable.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from allocations.models import Block, Cluster, Flavor, Level, Node, Outage, Rack, RunningJob
from allocations.models.fleet import Lifecycle
from scheduling.snapshot import Busy
from scheduling.topology import FlavorShape, RackShape, Topology

_KEPT = 64
_known: OrderedDict[str, "Inventory"] = OrderedDict()


@dataclass(frozen=True, slots=True, eq=False)
class Inventory:
    """A cluster's topology beside the ids of its rows: `rack_ids[i]` is the row of topology rack i.

    `rack_index` is the inverse; `node_ids` by node name; `vacant` are the names that stand at positions nobody has.
    """

    topology: Topology
    rack_ids: tuple[int, ...]
    rack_index: Mapping[int, int]
    node_ids: Mapping[str, int]
    vacant: frozenset[str]


def inventory(cluster: Cluster) -> Inventory:
    """What the cluster consists of: five queries, none when this process has seen this inventory_mark before.

    Racks come in name order, pseudo-racks with the name "" last. Gone racks and nodes are in it, so that masks keep
    their meaning; unhealthy() names them.
    """
    mark = cluster.inventory_mark
    if mark and (found := _known.get(mark)) is not None:
        return found
    made = _read(cluster)
    if mark:
        _known[mark] = made
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return made


def topology(cluster: Cluster) -> Topology:
    """The tree of the cluster as arrays."""
    return inventory(cluster).topology


def unhealthy(cluster: Cluster) -> frozenset[str]:
    """Names that no placement may use now: gone, drained, unhealthy, not in production, or nobody. One query."""
    out = (
        ~Q(condition=Node.Condition.HEALTHY)
        | Q(is_drained=True)
        | Q(gone_at__isnull=False)
        | ~Q(lifecycle=Lifecycle.PRODUCTION)
        | Q(rack__gone_at__isnull=False)
        | ~Q(rack__lifecycle=Lifecycle.PRODUCTION)
    )
    names = Node.objects.filter(out, cluster=cluster).values_list("name", flat=True)
    return frozenset(names) | inventory(cluster).vacant


def busy(cluster: Cluster, at: datetime) -> list[Busy]:
    """Outages that are not over and jobs that run, as the planner's intervals. Two queries; no reservations in it."""
    found: dict[int, list[str]] = defaultdict(list)
    outages = {}
    rows = Outage.objects.filter(cluster=cluster, cancelled_at=None, period__endswith__gt=at)
    for pk, period, node in rows.order_by("pk").values_list("pk", "period", "nodes__name"):
        outages[pk] = period
        if node is not None:
            found[pk].append(node)
    made = [
        Busy("outage", f"M-{pk}", tuple(found[pk]), minute(period.lower), _minute_after(period.upper))
        for pk, period in outages.items()
    ]
    jobs = RunningJob.objects.filter(cluster=cluster).order_by("pk")
    for job_id, nodes, started_at, ends_at, tier in jobs.values_list(
        "job_id", "nodes", "started_at", "ends_at", "tier"
    ):
        end = None if ends_at is None else _minute_after(ends_at)
        made.append(Busy("job", job_id, tuple(nodes), minute(started_at or at), end, tier=tier or None))
    return made


def minute(moment: datetime) -> int:
    """The whole minute since the epoch in which the moment lies."""
    return int(moment.timestamp() // 60)


def _minute_after(moment: datetime) -> int:
    """The first whole minute not before the moment: what ends inside a minute takes the whole minute."""
    return int(-(-moment.timestamp() // 60))


def _read(cluster: Cluster) -> Inventory:
    levels = list(Level.objects.filter(cluster=cluster).order_by("position"))
    flavors = {flavor.pk: flavor for flavor in Flavor.objects.filter(cluster=cluster).order_by("name")}
    chains = _chains(cluster, levels)
    racks = list(Rack.objects.filter(cluster=cluster).order_by("is_pseudo", "name"))
    names: dict[int, dict[int, str]] = defaultdict(dict)
    node_ids: dict[str, int] = {}
    for pk, name, rack_id, position in Node.objects.filter(cluster=cluster).values_list(
        "pk", "name", "rack_id", "position"
    ):
        node_ids[name] = pk
        names[rack_id][position] = name
    shapes: list[RackShape] = []
    vacant: set[str] = set()
    for rack in racks:
        held = names[rack.pk]
        size = max(rack.positions_given, max(held, default=-1) + 1)
        nodes = tuple(held.get(position) or f"-{rack.pk}-{position}" for position in range(size))
        vacant.update(node for node in nodes if node not in node_ids)
        shapes.append(
            RackShape(
                name="" if rack.is_pseudo else rack.name,
                flavor=flavors[rack.flavor_id].name,
                nodes=nodes,
                levels=chains.get(rack.block_id, ()) if rack.block_id else (),
                nvlink=rack.nvlink,
                from_minute=None if rack.in_service_at is None else _minute_after(rack.in_service_at),
                until_minute=None if rack.out_of_service_at is None else minute(rack.out_of_service_at),
            )
        )
    tree = Topology.build(
        [level.name for level in levels] or ["block"],
        [FlavorShape(f.name, f.gpus_per_node, f.nodes_per_rack, f.turnaround_minutes) for f in flavors.values()],
        shapes,
    )
    rack_ids = tuple(rack.pk for rack in racks)
    rack_index = {pk: number for number, pk in enumerate(rack_ids)}
    return Inventory(tree, rack_ids, rack_index, node_ids, frozenset(vacant))


def _chains(cluster: Cluster, levels: list[Level]) -> dict[int, tuple[str | None, ...]]:
    """By block id, its name at its own level and those of the places above it; None where nobody told."""
    position = {level.pk: level.position for level in levels}
    rows = Block.objects.filter(cluster=cluster).values_list("pk", "level_id", "name", "parent_id")
    blocks = {pk: (level_id, name, parent_id) for pk, level_id, name, parent_id in rows}
    chains = {}
    for pk in blocks:
        chain: list[str | None] = [None] * len(levels)
        above: int | None = pk
        while above is not None:
            level_id, name, above = blocks[above]
            chain[position[level_id]] = name
        chains[pk] = tuple(chain)
    return chains
