"""How does a team come to have an allocation, and a tier its rules? (writes grants; never decides capacity)

reservations/services/grants.py asks the ledgers under the clusters' locks and then calls these in its transaction.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction

from allocations.errors import Fault, Invalid, WrongState
from allocations.events import record
from allocations.models import Allocation, Flavor, Team, Tier, User
from allocations.permissions import require
from allocations.services.counters import bump, lock_all_clusters, lock_cluster


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
) -> Allocation:
    """Write one grant for [start_at, end_at); a limit of None is no limit.

    Raises Invalid for a reversed period or a negative amount, WrongState for an archived team.
    """
    require(actor, "allocation.grant", team)
    amounts: dict[str, Any] = {
        "guaranteed_gpus": guaranteed_gpus,
        "borrowing_limit_gpus": borrowing_limit_gpus,
        "lending_limit_gpus": lending_limit_gpus,
        "gpu_hours": None if gpu_hours is None else Decimal(str(gpu_hours)),
        "max_walltime_minutes": max_walltime_minutes,
        "max_gpus_per_job": max_gpus_per_job,
    }
    _check_grant(team, start_at, end_at, amounts)
    with transaction.atomic():
        cluster = lock_cluster(flavor.cluster_id)
        allocation = Allocation.objects.create(
            team=team, flavor=flavor, start_at=start_at, end_at=end_at, tier=tier, created_by=actor, **amounts
        )
        bump(cluster, desired=True, snapshot=True)
        record(
            "allocation.granted",
            subject=("allocation", allocation.public_id),
            actor=actor,
            at=at,
            team=team,
            cluster=cluster,
            after=facts_of(allocation),
            sentence=f"{team.path} may use {guaranteed_gpus} GPUs of {flavor.name} on {cluster.name}, guaranteed.",
        )
    return allocation


def revoke(*, allocation: Allocation, actor: User | None, at: datetime, reason: str = "") -> Allocation:
    """End a grant at once. Running work ends by the grace policy of its cluster; the row stays.

    Raises WrongState when it was revoked or is over.
    """
    require(actor, "allocation.grant", allocation.team)
    with transaction.atomic():
        if allocation.flavor is not None:
            clusters = [lock_cluster(allocation.flavor.cluster_id)]
        else:
            clusters = [lock_cluster(pk) for pk in allocation.clusters.order_by("pk").values_list("pk", flat=True)]
        allocation = (
            Allocation.objects.select_for_update(of=("self",), no_key=True).select_related("team").get(pk=allocation.pk)
        )
        if allocation.revoked_at is not None or allocation.end_at <= at:
            raise WrongState("This allocation has ended already.")
        allocation.revoked_at = at
        allocation.version += 1
        allocation.save(update_fields=("revoked_at", "version"))
        for cluster in clusters:
            bump(cluster, desired=True, snapshot=True)
        record(
            "allocation.revoked",
            subject=("allocation", allocation.public_id),
            actor=actor,
            at=at,
            team=allocation.team,
            cluster=clusters[0] if clusters else None,
            before={"revoked_at": None},
            after={"revoked_at": at.isoformat(), "reason": reason},
            sentence=reason,
        )
    return allocation


def set_tier(
    *,
    name: str,
    priority: int = 0,
    preempts: Sequence[str] = (),
    preemptible: bool = False,
    mode: str = Tier.Mode.REQUEUE,
    notice_minutes: int = 0,
    protected_minutes: int = 0,
    max_walltime_minutes: int | None = None,
    max_gpus_per_job: int | None = None,
    actor: User | None,
    at: datetime,
) -> Tier:
    """Make or change a tier on every cluster. The same again changes nothing.

    Raises Invalid for an unknown mode or a tier that preempts itself, NotAllowed for anybody but an admin.
    """
    require(actor, "policy.set")
    if mode not in Tier.Mode.values:
        raise Invalid(
            f"A tier's mode is one of {', '.join(Tier.Mode.values)}.", Fault("/mode", "invalid", "Unknown mode.")
        )
    if not all(isinstance(each, str) for each in preempts):
        raise Invalid("A tier preempts tiers by their names.", Fault("/preempts", "invalid", "Names of tiers."))
    if name in preempts:
        raise Invalid("A tier cannot preempt itself.", Fault("/preempts", "invalid", name))
    wanted: dict[str, Any] = {
        "priority": priority,
        "preempts": sorted(preempts),
        "preemptible": preemptible,
        "mode": str(mode),
        "notice_minutes": notice_minutes,
        "protected_minutes": protected_minutes,
        "max_walltime_minutes": max_walltime_minutes,
        "max_gpus_per_job": max_gpus_per_job,
    }
    with transaction.atomic():
        clusters = lock_all_clusters()  # every cluster carries every tier
        tier = Tier.objects.select_for_update(no_key=True).filter(name=name).first()
        before = {key: getattr(tier, key) for key in wanted} if tier else None
        if tier is not None and before == wanted:
            return tier
        tier = tier or Tier(name=name)
        for key, value in wanted.items():
            setattr(tier, key, value)
        tier.save()
        for cluster in clusters:
            bump(cluster, desired=True, snapshot=True)
        record("tier.set", subject=("tier", name), actor=actor, at=at, before=before, after=wanted)
    return tier


def facts_of(allocation: Allocation) -> dict[str, Any]:
    """What an allocation says, in the API's words and plain values."""
    return {
        "team": allocation.team.path,
        "flavor": allocation.flavor.name if allocation.flavor else None,
        "start_at": allocation.start_at.isoformat(),
        "end_at": allocation.end_at.isoformat(),
        "guaranteed_gpus": allocation.guaranteed_gpus,
        "borrowing_limit_gpus": allocation.borrowing_limit_gpus,
        "lending_limit_gpus": allocation.lending_limit_gpus,
        "gpu_hours": None if allocation.gpu_hours is None else str(allocation.gpu_hours),
        "max_walltime_minutes": allocation.max_walltime_minutes,
        "max_gpus_per_job": allocation.max_gpus_per_job,
        "tier": allocation.tier.name if allocation.tier else None,
    }


def _check_grant(team: Team, start_at: datetime, end_at: datetime, amounts: dict[str, Any]) -> None:
    if team.archived_at is not None:
        raise WrongState(f"{team.path} is archived.")
    if start_at.tzinfo is None or end_at.tzinfo is None:
        raise Invalid(
            "Moments carry their offset.", Fault("/start_at", "offset_needed", "No offset."), code="offset_needed"
        )
    if end_at <= start_at:
        raise Invalid(
            "It ends before it starts.", Fault("/end_at", "invalid", "After start_at."), code="period_reversed"
        )
    for key, value in amounts.items():
        if value is not None and value < 0:
            raise Invalid(f"{key} must not be negative.", Fault(f"/{key}", "invalid", "0 or more."))
    if amounts["guaranteed_gpus"] is None:
        raise Invalid("guaranteed_gpus is needed; 0 is none.", Fault("/guaranteed_gpus", "required", "A number."))
