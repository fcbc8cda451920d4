"""Is a reservation on its cluster? (one word, from generations, the endpoint, and what was read back)

Nothing is called verified before it was read back: the cluster's applied generation must have reached the one that
carries the reservation's last change, and nothing of its own may differ since.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
DIFFERING = frozenset({"drifted", "missing", "unwanted"})
_ON_ITS_WAY: Mapping[str, State] = {
    "applying": "applying",
    "converging": "converging",
    "waiting": "waiting",
    "failed": "failed",
    "drifted": "waiting",  # the cluster is only observed: somebody must let Berth write
}


@dataclass(frozen=True)
class Standing:
    """How the push of one reservation stands. `verified_at` only while verified; `updated_at`: the last look.

    With what it was judged from: the reservation's phase, its cluster's endpoint, and the objects of its name.
    """

    state: State
    verified_at: datetime | None
    updated_at: datetime | None
    phase: states.Phase | None = None
    endpoint: ClusterEndpoint | None = None
    objects: tuple[ObservedObject, ...] = ()
    is_on_its_way: bool = False

    @property
    def is_wanted(self) -> bool:
        """Should the cluster hold it now?"""
        return self.phase in ("scheduled", "active")

    @property
    def differing(self) -> tuple[ObservedObject, ...]:
        """Its objects that were not as they should be when last read."""
        return tuple(each for each in self.objects if each.state in DIFFERING)


def name_on_cluster(reservation: Reservation) -> str:
    """`berth-R-131` on Slurm, `rsv-r-131` on Kubernetes."""
    if reservation.cluster.kind in NO_CALENDAR:
        return names_on_cluster(reservation)[1]
    return names_on_cluster(reservation)[0]


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


def names_on_cluster(reservation: Reservation) -> tuple[str, str]:
    """What its objects are called: `berth-R-131` on Slurm, `rsv-r-131` on Kueue (there also NAMESPACE/rsv-r-131)."""
    return reservation.name_on_cluster, f"rsv-{reservation.public_id.lower()}"


def objects_of(reservations: Iterable[Reservation], cluster: str = "cluster") -> Q:
    """A condition on rows that name native objects of these reservations; `cluster` is the row's way to its cluster."""
    condition = Q(pk__in=())
    for each in reservations:
        plain, dns = names_on_cluster(each)
        named = Q(name__in=(plain, dns)) | Q(name__endswith=f"/{dns}")
        condition |= named & Q(**{cluster: each.cluster_id})
    return condition


def _seen(pushed: Sequence[Reservation]) -> dict[int, list[ObservedObject]]:
    """What was last read of the objects that carry each reservation's name; Kubernetes puts a namespace before it."""
    owner = {(each.cluster_id, name): each.pk for each in pushed for name in names_on_cluster(each)}
    seen = defaultdict(list)
    for row in ObservedObject.objects.filter(objects_of(pushed)) if pushed else ():
        if pk := owner.get((row.cluster_id, row.name.rpartition("/")[2])):
            seen[pk].append(row)
    return seen


def _standing(
    reservation: Reservation, endpoint: ClusterEndpoint | None, objects: Sequence[ObservedObject], at: datetime
) -> Standing:
    phase = states.phase(reservation.decision, reservation.start_at, reservation.end_at, reservation.released_at, at)
    moving = endpoint is not None and _is_on_its_way(reservation, endpoint, phase)
    state = _state(reservation, endpoint, objects, phase, moving)
    verified_at = None
    if state == "verified" and endpoint is not None:
        verified_at = max((each.observed_at for each in objects), default=endpoint.verified_at)
    read_at = endpoint.read_at if endpoint else None
    return Standing(state, verified_at, read_at, phase, endpoint, tuple(objects), moving)


def _is_on_its_way(reservation: Reservation, endpoint: ClusterEndpoint, phase: states.Phase | None) -> bool:
    """Is the last change not there yet? Without a calendar a start is a change that only a later look proves."""
    if reservation.wanted_generation > reservation.cluster.applied_generation:
        return True
    verified_at = endpoint.verified_at
    has_begun = phase == "active" and reservation.cluster.kind in NO_CALENDAR
    return has_begun and (verified_at is None or verified_at < reservation.start_at)


def _state(
    reservation: Reservation,
    endpoint: ClusterEndpoint | None,
    objects: Sequence[ObservedObject],
    phase: states.Phase | None,
    is_on_its_way: bool,
) -> State:
    cluster = reservation.cluster
    if reservation.wanted_generation == 0:
        return "not_due"
    if endpoint is None:
        return "waiting"
    if endpoint.state == ClusterEndpoint.State.UNREACHABLE:
        return "unreachable"
    if is_on_its_way:
        return _ON_ITS_WAY.get(endpoint.state) or ("waiting" if cluster.frozen_at is not None else "pending")
    if phase not in ("scheduled", "active"):
        return "pending" if objects else "verified"
    if any(each.state in DIFFERING for each in objects):
        return "drifted"
    if phase == "scheduled" and cluster.kind in NO_CALENDAR and not objects:
        return "not_due"
    return "verified"
