"""What do pages and the API read of the ledger room? (fleet, racks, teams, allocations: fixed numbers of queries)"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from allocations.models import Allocation, Cluster, Event, Flavor, Membership, Node, Outage, Rack, Team, User
from allocations.models.fleet import Lifecycle
from allocations.permissions import visible_to

_PLACEABLE: dict[str, Any] = {
    "condition": Node.Condition.HEALTHY,
    "is_drained": False,
    "gone_at": None,
    "lifecycle": Lifecycle.PRODUCTION,
}
PLACEABLE = Q(**_PLACEABLE)


@dataclass(frozen=True, slots=True)
class FlavorCounts:
    """One flavor of a cluster in numbers. `racks` are known domains; `whole_racks` those with every node healthy."""

    flavor: Flavor
    racks: int
    whole_racks: int
    nodes: int
    healthy_nodes: int
    drained_nodes: int
    gpus: int
    healthy_gpus: int


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """One cluster with its flavors in numbers; the sums are properties."""

    cluster: Cluster
    flavors: tuple[FlavorCounts, ...]
    blocks: int

    @property
    def racks(self) -> int:
        return sum(one.racks for one in self.flavors)

    @property
    def nodes(self) -> int:
        return sum(one.nodes for one in self.flavors)

    @property
    def healthy_nodes(self) -> int:
        return sum(one.healthy_nodes for one in self.flavors)

    @property
    def gpus(self) -> int:
        return sum(one.gpus for one in self.flavors)

    @property
    def healthy_gpus(self) -> int:
        return sum(one.healthy_gpus for one in self.flavors)


@dataclass(frozen=True, slots=True)
class RackContents:
    """One rack with its nodes in position order; gone nodes are left out. `levels` are place names, block first."""

    rack: Rack
    levels: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def healthy_nodes(self) -> int:
        return sum(is_placeable(node) for node in self.nodes)


@dataclass(frozen=True, slots=True)
class TeamPage:
    """A team with what stands on its page."""

    team: Team
    ancestors: tuple[Team, ...]
    children: tuple[Team, ...]
    members: tuple[Membership, ...]
    allocations: tuple[Allocation, ...]
    inherited: tuple[Allocation, ...] = field(default=())


def fleet(user: User) -> list[ClusterCounts]:
    """Every cluster the person may see, in numbers, by name. Four queries whatever the size."""
    clusters = list(
        visible_to(user, Cluster)
        .annotate(
            block_count=Count(
                "blocks", filter=Q(blocks__racks__gone_at=None) & Q(blocks__racks__isnull=False), distinct=True
            )
        )
        .order_by("name")
    )
    nodes = {row["flavor_id"]: row for row in _node_counts(clusters)}
    racks = {row["flavor_id"]: row for row in _rack_counts(clusters)}
    of_cluster: dict[int, list[FlavorCounts]] = defaultdict(list)
    for flavor in Flavor.objects.filter(cluster__in=clusters).select_related("gpu_model").order_by("name"):
        counted, domains = nodes.get(flavor.pk, {}), racks.get(flavor.pk, {})
        of_cluster[flavor.cluster_id].append(
            FlavorCounts(
                flavor=flavor,
                racks=domains.get("racks", 0),
                whole_racks=domains.get("whole", 0),
                nodes=counted.get("nodes", 0),
                healthy_nodes=counted.get("healthy", 0),
                drained_nodes=counted.get("drained", 0),
                gpus=counted.get("all_gpus", 0),
                healthy_gpus=counted.get("healthy_gpus", 0),
            )
        )
    return [ClusterCounts(cluster, tuple(of_cluster[cluster.pk]), cluster.block_count) for cluster in clusters]


def racks(cluster: Cluster, flavor: Flavor | None = None) -> list[RackContents]:
    """The cluster's racks with their nodes: by block, then name; pseudo-racks last. Three queries."""
    wanted = Rack.objects.filter(cluster=cluster, gone_at=None).select_related("flavor", "block__level")
    if flavor is not None:
        wanted = wanted.filter(flavor=flavor)
    above = {block.pk: block for block in cluster.blocks.all()}
    inside: dict[int, list[Node]] = defaultdict(list)
    nodes = Node.objects.filter(rack__in=wanted.values("pk"), gone_at=None).order_by("position")
    for node in nodes.defer("labels"):
        inside[node.rack_id].append(node)
    found = []
    for rack in wanted.order_by("is_pseudo", "block__name", "name"):
        levels, block_id = [], rack.block_id
        while block_id is not None:
            levels.append(above[block_id].name)
            block_id = above[block_id].parent_id
        found.append(RackContents(rack, tuple(levels), tuple(inside[rack.pk])))
    return found


def rack(cluster: Cluster, name: str) -> RackContents | None:
    """One rack with its nodes; None when the cluster has none of that name."""
    row = Rack.objects.filter(cluster=cluster, name=name).select_related("flavor", "block__parent", "cluster").first()
    if row is None:
        return None
    levels, block = [], row.block
    while block is not None:
        levels.append(block.name)
        block = block.parent
    nodes = Node.objects.filter(rack=row, gone_at=None).order_by("position")
    return RackContents(row, tuple(levels), tuple(nodes))


def healthy_gpus(flavors: Iterable[Flavor], without: Iterable[int] = ()) -> dict[int, int]:
    """GPUs (nodes where the flavor has none) that can be given out, by flavor id; nodes with ids in `without` left out.

    The one law for grants and for what is pushed: placeable nodes of racks in production. One query.
    """
    wanted = list(flavors)
    rows = (
        Node.objects.filter(PLACEABLE, flavor__in=wanted, rack__gone_at=None, rack__lifecycle=Lifecycle.PRODUCTION)
        .exclude(pk__in=without)
        .values("flavor_id")
        .annotate(nodes=Count("pk"), gpus_there=Sum("gpus"))
        .order_by()
    )
    found = {row["flavor_id"]: row for row in rows}
    return {
        each.pk: (found[each.pk]["gpus_there" if each.gpus_per_node else "nodes"] if each.pk in found else 0)
        for each in wanted
    }


def is_placeable(node: Node) -> bool:
    """May work be placed on this node now? The same law as PLACEABLE, for a row in hand."""
    is_healthy = node.condition == Node.Condition.HEALTHY and not node.is_drained
    return is_healthy and node.gone_at is None and node.lifecycle == Lifecycle.PRODUCTION


def outages(cluster: Cluster, at: datetime) -> QuerySet[Outage]:
    """Outages of the cluster that are planned or under way, by start, each with `node_count`."""
    return (
        Outage.objects.filter(cluster=cluster, cancelled_at=None, period__endswith__gt=at)
        .annotate(node_count=Count("nodes"))
        .order_by("period", "pk")
    )


def in_force(at: datetime) -> Q:
    """A condition on allocations: counted at this moment."""
    return Q(start_at__lte=at, end_at__gt=at) & (Q(revoked_at=None) | Q(revoked_at__gt=at))


def allocations_in_force(teams: Sequence[Team], at: datetime) -> QuerySet[Allocation]:
    """Allocations of exactly these teams that count now, by flavor, with team, flavor, cluster and tier read along."""
    rows = Allocation.objects.filter(in_force(at), team__in=teams)
    return rows.select_related("team", "flavor__cluster", "flavor__gpu_model", "gpu_model", "tier").order_by(
        "flavor__cluster__name", "flavor__name", "start_at", "pk"
    )


def ancestors(team: Team) -> list[Team]:
    """The teams above this one, topmost first. One query."""
    parts = team.path.split("/")
    paths = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    return list(Team.objects.filter(path__in=paths).order_by("path"))


def usable_allocations(team: Team, at: datetime) -> list[Allocation]:
    """What the team may use now: its own allocations and those of every team above it."""
    return list(allocations_in_force([team, *ancestors(team)], at))


def team_page(team: Team, at: datetime) -> TeamPage:
    """Everything on a team's page in four queries."""
    above = ancestors(team)
    usable = list(allocations_in_force([team, *above], at))
    members = Membership.objects.filter(team=team, ended_at=None).select_related("user").order_by("role", "user__name")
    return TeamPage(
        team=team,
        ancestors=tuple(above),
        children=tuple(Team.objects.filter(parent=team, archived_at=None).order_by("name")),
        members=tuple(members),
        allocations=tuple(one for one in usable if one.team_id == team.pk),
        inherited=tuple(one for one in usable if one.team_id != team.pk),
    )


def events_of(kind: str, public_id: str) -> QuerySet[Event]:
    """The past of one thing, newest first, with the people who acted."""
    return Event.objects.filter(subject_kind=kind, subject_id=public_id).select_related("actor").order_by("-at", "-id")


def _node_counts(clusters: Sequence[Cluster]) -> list[dict[str, Any]]:
    present = Node.objects.filter(cluster__in=clusters, gone_at=None)
    counted = present.values("flavor_id").annotate(
        nodes=Count("pk"),
        healthy=Count("pk", filter=PLACEABLE),
        drained=Count("pk", filter=Q(is_drained=True)),
        all_gpus=Coalesce(Sum("gpus"), 0),
        healthy_gpus=Coalesce(Sum("gpus", filter=PLACEABLE), 0),
    )
    return [dict(row.items()) for row in counted]


def _rack_counts(clusters: Sequence[Cluster]) -> list[dict[str, int]]:
    known = Rack.objects.filter(cluster__in=clusters, gone_at=None, is_pseudo=False)
    healthy = Q(**{f"nodes__{key}": value for key, value in _PLACEABLE.items()})
    counted = known.annotate(healthy=Count("nodes", filter=healthy)).values_list(
        "flavor_id", "flavor__nodes_per_rack", "healthy"
    )
    sums: dict[int, dict[str, int]] = {}
    for flavor_id, whole, found in counted:
        row = sums.setdefault(flavor_id, {"flavor_id": flavor_id, "racks": 0, "whole": 0})
        row["racks"] += 1
        row["whole"] += found >= whole
    return list(sums.values())
