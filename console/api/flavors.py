"""GET /flavors: which kinds of node are there, and how many of each are healthy?"""

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from allocations import queries
from allocations.errors import NotFound
from allocations.models import Cluster, Flavor, User
from allocations.permissions import visible_to
from console.api import lists
from console.api.clusters import cluster_of
from console.api.endpoint import Endpoint, person


class Flavors(Endpoint):
    """Flavors of all clusters, or of one."""

    verb = "fleet.read"
    parameters = lists.PARAMETERS | {"cluster"}

    def get(self, request: Request) -> Response:
        orderable = {"cluster": "cluster__name", "name": "name", "id": "pk"}
        asked = lists.asked(request, orderable=orderable, default="cluster,name")
        rows = Flavor.objects.filter(cluster__in=visible_to(person(request), Cluster)).select_related(
            "cluster", "gpu_model"
        )
        if "cluster" in asked.filters:
            rows = rows.filter(cluster__name=asked.filters["cluster"])
        return lists.answer(asked, rows, lambda page: shapes(person(request), page))


class OneFlavor(Endpoint):
    """One flavor by its name within its cluster."""

    verb = "fleet.read"

    def get(self, request: Request, cluster: str, flavor: str) -> Response:
        rows = Flavor.objects.select_related("cluster", "gpu_model")
        found = rows.filter(cluster=cluster_of(person(request), cluster), name=flavor).first()
        if found is None:
            raise NotFound()
        return Response(shapes(person(request), [found])[0])


def shapes(user: User, rows: Sequence[Flavor]) -> list[dict[str, Any]]:
    """The JSON objects of flavors; four queries however many they are."""
    counted = {each.flavor.pk: each for cluster in queries.fleet(user) for each in cluster.flavors}
    return [
        {
            "name": row.name,
            "cluster": row.cluster.name,
            "gpu_model": row.gpu_model.name if row.gpu_model else None,
            "gpus_per_node": row.gpus_per_node,
            "nodes_per_rack": row.nodes_per_rack,
            "nvlink_domain": row.nvlink_domain,
            "turnaround_minutes": row.turnaround_minutes,
            "rack_count": counted[row.pk].racks,
            "whole_rack_count": counted[row.pk].whole_racks,
            "node_count": counted[row.pk].nodes,
            "healthy_node_count": counted[row.pk].healthy_nodes,
            "drained_node_count": counted[row.pk].drained_nodes,
            "total_gpus": counted[row.pk].gpus,
            "healthy_gpus": counted[row.pk].healthy_gpus,
        }
        for row in rows
    ]
