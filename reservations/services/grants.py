"""May this much be guaranteed? (asked of the healthy fleet under the cluster's lock, then granted at once)"""

from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Q

from allocations import queries
from allocations.errors import Fault, Invalid, WrongState
from allocations.models import Allocation, Flavor, Team, Tier, User
from allocations.services import grants
from allocations.services.counters import lock_cluster
from scheduling.periods import peak


def grant(
    *,
    team: Team,
    flavor: Flavor,
    start_at: datetime,
    end_at: datetime,
    guaranteed_gpus: int,
    borrowing_limit_gpus: int | None = None,
    lending_limit_gpus: int | None = None,
    gpu_hours: Decimal | float | int | None = None,
    max_walltime_minutes: int | None = None,
    max_gpus_per_job: int | None = None,
    tier: Tier | None = None,
    actor: User | None,
    at: datetime,
    overcommit: bool = False,
    reason: str = "",
) -> Allocation:
    """Grant [start_at, end_at) when all guarantees of the flavor, at every instant of it, are within its healthy GPUs.

    With `overcommit` and a reason more may be granted; the effective guarantees then say what is uncovered. Raises
    WrongState overcommit with the number that is missing; the rest as allocations.services.grants.grant.
    """
    if overcommit and not reason.strip():
        raise Invalid(
            "An overcommit needs its reason.", Fault("/reason", "invalid", "Say why more is granted than there is.")
        )
    with transaction.atomic():
        lock_cluster(flavor.cluster_id)
        if not overcommit and end_at > start_at:
            _check_capacity(flavor, start_at, end_at, guaranteed_gpus)
        return grants.grant(
            team=team,
            flavor=flavor,
            start_at=start_at,
            end_at=end_at,
            guaranteed_gpus=guaranteed_gpus,
            borrowing_limit_gpus=borrowing_limit_gpus,
            lending_limit_gpus=lending_limit_gpus,
            gpu_hours=gpu_hours,
            max_walltime_minutes=max_walltime_minutes,
            max_gpus_per_job=max_gpus_per_job,
            tier=tier,
            actor=actor,
            at=at,
        )


def revoke(*, allocation: Allocation, actor: User | None, at: datetime, reason: str = "") -> Allocation:
    """End a grant at once; reservations that were approved on it stay, new ones find no allocation."""
    with transaction.atomic():
        for cluster in _clusters_of(allocation):
            lock_cluster(cluster)
        return grants.revoke(allocation=allocation, actor=actor, at=at, reason=reason)


def _check_capacity(flavor: Flavor, start_at: datetime, end_at: datetime, guaranteed_gpus: int) -> None:
    """Raises WrongState overcommit where the guarantees would be more than there is, with the worst instant."""
    most, worst = peak(_overlapping(flavor, start_at, end_at), start_at, end_at)
    healthy = queries.healthy_gpus([flavor])[flavor.pk]
    missing = most + guaranteed_gpus - healthy
    if guaranteed_gpus > 0 and missing > 0:
        unit = "GPUs" if flavor.gpus_per_node else "nodes"
        raise WrongState(
            f"{flavor.name} on {flavor.cluster.name} has {healthy:,} healthy {unit} and {most:,} are guaranteed at "
            f"{worst:%a %d %b %Y}; {guaranteed_gpus:,} more are {missing:,} too many.",
            "overcommit",
            missing=missing,
            unit="gpus" if flavor.gpus_per_node else "nodes",
            healthy_gpus=healthy,
            guaranteed_gpus=most,
        )


def _overlapping(flavor: Flavor, start_at: datetime, end_at: datetime) -> list[tuple[datetime, datetime, int]]:
    """(start, end, GPUs) of the guarantees that count somewhere in [start_at, end_at)."""
    rows = Allocation.objects.filter(
        flavor=flavor, guaranteed_gpus__gt=0, start_at__lt=end_at, end_at__gt=start_at
    ).filter(Q(revoked_at=None) | Q(revoked_at__gt=start_at))
    return [
        (start, end if revoked is None else min(end, revoked), gpus)
        for start, end, revoked, gpus in rows.values_list("start_at", "end_at", "revoked_at", "guaranteed_gpus")
    ]


def _clusters_of(allocation: Allocation) -> list[int]:
    """Ids of the clusters an allocation speaks of, in the order in which they are locked."""
    if allocation.flavor is not None:
        return [allocation.flavor.cluster_id]
    return list(allocation.clusters.order_by("pk").values_list("pk", flat=True))
