"""GET /clusters: which clusters are there, what do they hold, and how does their push stand?"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from allocations import queries
from allocations.errors import Fault, NotFound
from allocations.models import Cluster, User
from allocations.permissions import visible_to
from allocations.queries import ClusterCounts
from console.api import lists
from console.api.endpoint import Endpoint, person
from console.models import ClusterEndpoint
from reservations.moments import text_of
from reservations.queries import knows_names


class Clusters(Endpoint):
    """Every cluster that the caller may see, by name."""

    verb = "fleet.read"
    parameters = lists.PARAMETERS | {"kind"}

    def get(self, request: Request) -> Response:
        asked = lists.asked(request, orderable={"name": "name", "id": "pk"}, default="name")
        rows = visible_to(person(request), Cluster)
        kinds = lists.words(asked.filters, "kind", Cluster.Kind.values)
        if kinds is not None:
            rows = rows.filter(kind__in=kinds)
        return lists.answer(asked, rows, lambda page: shapes(person(request), page))


class OneCluster(Endpoint):
    """One cluster by name."""

    verb = "cluster.read"

    def get(self, request: Request, cluster: str) -> Response:
        return Response(shapes(person(request), [cluster_of(person(request), cluster)])[0])


def cluster_of(user: User, name: str, pointer: str | None = None) -> Cluster:
    """The cluster of that name. Raises NotFound, with the `pointer` of what named it where a body did."""
    found: Cluster | None = visible_to(user, Cluster).filter(name=name).first()
    if found is None:
        raise missing(f"There is no cluster {name[:63]!r} that you may see.", pointer)
    return found


def missing(sentence: str, pointer: str | None) -> NotFound:
    """not_found for what an address names, or for what a body names at `pointer`."""
    error = NotFound(sentence)
    error.faults = (Fault(pointer, "not_found", sentence),) if pointer is not None else ()
    return error


def shapes(user: User, rows: Sequence[Cluster]) -> list[dict[str, Any]]:
    """The JSON objects of clusters; five queries however many they are."""
    counted = {each.cluster.pk: each for each in queries.fleet(user)}
    endpoints = {each.cluster_id: each for each in ClusterEndpoint.objects.filter(cluster__in=rows)}
    return [_shape(user, row, counted[row.pk], endpoints.get(row.pk)) for row in rows]


def _shape(user: User, cluster: Cluster, counts: ClusterCounts, endpoint: ClusterEndpoint | None) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "kind": cluster.kind,
        "zone": cluster.zone,
        "lifecycle": cluster.lifecycle,
        "contract_ends_at": or_null(cluster.contract_ends_at),
        "disclosure": cluster.disclosure,
        "drift_policy": cluster.drift_policy,
        "frozen_at": or_null(cluster.frozen_at),
        "frozen_reason": cluster.frozen_reason or None,
        "observed_at": or_null(cluster.observed_at),
        "flavors": [each.flavor.name for each in counts.flavors],
        "block_count": counts.blocks,
        "rack_count": counts.racks,
        "node_count": counts.nodes,
        "healthy_node_count": counts.healthy_nodes,
        "total_gpus": counts.gpus,
        "healthy_gpus": counts.healthy_gpus,
        "push": None if endpoint is None else _push(user, cluster, endpoint),
    }


def _push(user: User, cluster: Cluster, endpoint: ClusterEndpoint) -> dict[str, Any]:
    """How the push stands: verified only while no newer generation waits."""
    is_behind = cluster.desired_generation > cluster.applied_generation
    return {
        "state": "pending" if is_behind and endpoint.state in ("verified", "idle") else endpoint.state,
        "sentence": endpoint.sentence if knows_names(user, cluster) else "",
        "desired_generation": cluster.desired_generation,
        "applied_generation": cluster.applied_generation,
        "updated_at": or_null(endpoint.read_at),
        "verified_at": or_null(endpoint.verified_at),
    }


def or_null(moment: datetime | None) -> str | None:
    """A moment in Z, or null."""
    return None if moment is None else text_of(moment)
