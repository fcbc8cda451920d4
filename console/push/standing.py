"""Is a reservation on its cluster? (one word, from generations, the endpoint, and what was read back)

Nothing is called verified before it was read back: the cluster's applied generation must have reached the one that
carries the reservation's last change, and nothing of its own may differ since.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import Q

from allocations.models import Cluster
from console.models import ClusterEndpoint, ObservedObject
from reservations import states
from reservations.models import Reservation

State = Literal[
    "not_due", "pending", "applying", "converging", "verified", "waiting", "drifted", "failed", "unreachable"
]
# Clusters whose scheduler has no calendar: they get a reservation at its start.
NO_CALENDAR = frozenset({Cluster.Kind.KUEUE, Cluster.Kind.VOLCANO, Cluster.Kind.KAI, Cluster.Kind.YUNIKORN})
_ON_ITS_WAY: Mapping[str, State] = {
    "applying": "applying",
    "converging": "converging",
    "waiting": "waiting",
    "failed": "failed",
    "drifted": "waiting",  # the cluster is only observed: somebody must let Berth write
}


@dataclass(frozen=True)
class Standing:
    """How the push of one reservation stands. `verified_at` only while verified; `updated_at`: the last look."""

    state: State
    verified_at: datetime | None
    updated_at: datetime | None


def name_on_cluster(reservation: Reservation) -> str:
    """`berth-R-131` on Slurm, `rsv-r-131` on Kubernetes."""
    if reservation.cluster.kind in NO_CALENDAR:
        return f"rsv-{reservation.public_id.lower()}"
    return reservation.name_on_cluster


def standings(reservations: Sequence[Reservation], at: datetime) -> dict[int, Standing]:
    """The standing of each, by reservation id; two queries for all of them. Their clusters must be loaded."""
    endpoints = {
        each.cluster_id: each
        for each in ClusterEndpoint.objects.filter(cluster__in={each.cluster_id for each in reservations})
    }
    seen = _seen([each for each in reservations if each.wanted_generation > 0])
    return {
        each.pk: _standing(each, endpoints.get(each.cluster_id), seen.get(each.pk, []), at) for each in reservations
    }


def _seen(pushed: Sequence[Reservation]) -> dict[int, list[ObservedObject]]:
    """What was last read of the objects that carry each reservation's name; Kubernetes puts a namespace before it."""
    if not pushed:
        return {}
    owner = {(each.cluster_id, name): each.pk for each in pushed for name in (_dns(each), each.name_on_cluster)}
    names = sorted({name for _, name in owner})
    in_namespace = Q(name__regex=rf"/({'|'.join(re.escape(name) for name in names)})$")
    found = ObservedObject.objects.filter(
        Q(name__in=names) | in_namespace, cluster__in={each.cluster_id for each in pushed}
    )
    seen = defaultdict(list)
    for row in found:
        if pk := owner.get((row.cluster_id, row.name.rpartition("/")[2])):
            seen[pk].append(row)
    return seen


def _dns(reservation: Reservation) -> str:
    return f"rsv-{reservation.public_id.lower()}"


def _standing(
    reservation: Reservation, endpoint: ClusterEndpoint | None, objects: Sequence[ObservedObject], at: datetime
) -> Standing:
    state = _state(reservation, endpoint, objects, at)
    read_at = endpoint.read_at if endpoint else None
    verified_at = None
    if state == "verified" and endpoint is not None:
        verified_at = max((each.observed_at for each in objects), default=endpoint.verified_at)
    return Standing(state, verified_at, read_at)


def _state(
    reservation: Reservation, endpoint: ClusterEndpoint | None, objects: Sequence[ObservedObject], at: datetime
) -> State:
    cluster = reservation.cluster
    if reservation.wanted_generation == 0:
        return "not_due"
    if endpoint is None:
        return "waiting"
    if endpoint.state == ClusterEndpoint.State.UNREACHABLE:
        return "unreachable"
    if reservation.wanted_generation > cluster.applied_generation:
        return _ON_ITS_WAY.get(endpoint.state) or ("waiting" if cluster.frozen_at is not None else "pending")
    phase = states.phase(reservation.decision, reservation.start_at, reservation.end_at, reservation.released_at, at)
    if phase not in ("scheduled", "active"):
        return "pending" if objects else "verified"
    if any(each.state in ("drifted", "missing", "unwanted") for each in objects):
        return "drifted"
    if phase == "scheduled" and cluster.kind in NO_CALENDAR and not objects:
        return "not_due"
    return "verified"
