"""GET /nodes: where is each node, and how is it?"""

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from allocations import queries
from allocations.errors import NotFound
from allocations.models import Cluster, Node
from allocations.permissions import visible_to
from console.api import lists
from console.api.clusters import cluster_of, or_null
from console.api.endpoint import Endpoint, person

_LOADED = ("cluster", "rack", "flavor")


class Nodes(Endpoint):
    """Nodes of all clusters, or of one cluster, rack, flavor or condition; those that are gone are left out."""

    verb = "fleet.read"
    parameters = lists.PARAMETERS | {"cluster", "rack", "flavor", "condition", "is_drained"}

    def get(self, request: Request) -> Response:
        orderable = {"cluster": "cluster__name", "name": "name", "id": "pk"}
        asked = lists.asked(request, orderable=orderable, default="cluster,name")
        rows = Node.objects.filter(cluster__in=visible_to(person(request), Cluster), gone_at=None)
        for name, column in (("cluster", "cluster__name"), ("rack", "rack__name"), ("flavor", "flavor__name")):
            if name in asked.filters:
                rows = rows.filter(**{column: asked.filters[name]})
        conditions = lists.words(asked.filters, "condition", Node.Condition.values)
        if conditions is not None:
            rows = rows.filter(condition__in=conditions)
        is_drained = lists.truth(asked.filters, "is_drained")
        if is_drained is not None:
            rows = rows.filter(is_drained=is_drained)
        return lists.answer(asked, rows.select_related(*_LOADED).defer("labels"), shapes)


class OneNode(Endpoint):
    """One node by its name within its cluster: /nodes/sol/gb044."""

    verb = "fleet.read"

    def get(self, request: Request, cluster: str, node: str) -> Response:
        rows = Node.objects.filter(cluster=cluster_of(person(request), cluster), name=node)
        found = rows.select_related(*_LOADED).first()
        if found is None:
            raise NotFound()
        return Response(shapes([found])[0])


def shapes(rows: Sequence[Node]) -> list[dict[str, Any]]:
    """The JSON objects of nodes; no query. `is_placeable`: work may be placed on it now."""
    return [
        {
            "name": row.name,
            "cluster": row.cluster.name,
            "rack": row.rack.name,
            "flavor": row.flavor.name,
            "position": row.position,
            "node_gpus": row.gpus,
            "cabinet": row.cabinet or None,
            "condition": row.condition,
            "condition_since_at": or_null(row.condition_since_at),
            "is_drained": row.is_drained,
            "is_placeable": queries.is_placeable(row),
            "reason": row.reason or None,
            "lifecycle": row.lifecycle,
            "expected_back_at": or_null(row.expected_back_at),
            "gone_at": or_null(row.gone_at),
        }
        for row in rows
    ]
