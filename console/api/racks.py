"""GET /racks: where does each rack lie, and what is in it?"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from allocations import queries
from allocations.errors import NotFound
from allocations.models import Block, Cluster, Node, Rack
from allocations.permissions import visible_to
from console.api import lists
from console.api.clusters import cluster_of, or_null
from console.api.endpoint import Endpoint, person
from scheduling.hostlist import fold

_LOADED = ("cluster", "flavor", "block")


class Racks(Endpoint):
    """Racks of all clusters, or of one cluster, flavor or block; those that are gone are left out."""

    verb = "fleet.read"
    parameters = lists.PARAMETERS | {"cluster", "flavor", "block"}

    def get(self, request: Request) -> Response:
        orderable = {"cluster": "cluster__name", "name": "name", "id": "pk"}
        asked = lists.asked(request, orderable=orderable, default="cluster,name")
        rows = Rack.objects.filter(cluster__in=visible_to(person(request), Cluster), gone_at=None)
        columns = {"cluster": "cluster__name", "flavor": "flavor__name", "block": "block__name"}
        named = {columns[name]: value for name, value in asked.filters.items()}
        return lists.answer(asked, rows.filter(**named).select_related(*_LOADED), shapes)


class OneRack(Endpoint):
    """One rack by its name within its cluster."""

    verb = "fleet.read"

    def get(self, request: Request, cluster: str, rack: str) -> Response:
        rows = Rack.objects.filter(cluster=cluster_of(person(request), cluster), name=rack)
        found = rows.select_related(*_LOADED).first()
        if found is None:
            raise NotFound()
        return Response(shapes([found])[0])


def shapes(rows: Sequence[Rack]) -> list[dict[str, Any]]:
    """The JSON objects of racks; two queries however many they are. `levels` names the places above, block first."""
    nodes: dict[int, list[Node]] = defaultdict(list)
    for node in Node.objects.filter(rack__in=rows, gone_at=None).order_by("rack", "position").defer("labels"):
        nodes[node.rack_id].append(node)
    above = {block.pk: block for block in Block.objects.filter(cluster__in={row.cluster_id for row in rows})}
    return [_shape(row, nodes[row.pk], above) for row in rows]


def _shape(row: Rack, nodes: Sequence[Node], above: dict[int, Block]) -> dict[str, Any]:
    levels, block_id = [], row.block_id
    while block_id is not None:
        levels.append(above[block_id].name)
        block_id = above[block_id].parent_id
    return {
        "name": row.name,
        "cluster": row.cluster.name,
        "flavor": row.flavor.name,
        "block": row.block.name if row.block else None,
        "levels": levels,
        "cabinet": row.cabinet or None,
        "is_pseudo": row.is_pseudo,
        "nvlink": row.nvlink,
        "lifecycle": row.lifecycle,
        "in_service_at": or_null(row.in_service_at),
        "out_of_service_at": or_null(row.out_of_service_at),
        "gone_at": or_null(row.gone_at),
        "nodes": fold([node.name for node in nodes]),
        "node_count": len(nodes),
        "healthy_node_count": sum(queries.is_placeable(node) for node in nodes),
    }
