"""How does a rule against hoarding come into force? (versioned: the one before is retired and kept)"""

from datetime import datetime
from typing import Any

from django.db import transaction

from allocations.errors import Fault, Invalid
from allocations.events import record
from allocations.models import Flavor, Tier, User
from allocations.permissions import require
from allocations.services.counters import bump, lock_all_clusters, lock_cluster
from reservations.models import ReservationPolicy


def set_reservation_policy(
    *,
    name: str,
    flavor: Flavor | None = None,
    tier: Tier | None = None,
    reservable_share_percent: int = 30,
    team_share_percent: int | None = None,
    active_count: int | None = None,
    future_count: int | None = None,
    rack_hours_ahead: int | None = None,
    lead_minutes: int = 0,
    horizon_days: int = 400,
    max_duration_minutes: int | None = None,
    open_asks_per_team: int = 1,
    cool_down_minutes: int = 0,
    actor: User | None,
    at: datetime,
) -> ReservationPolicy:
    """Put a version of the policy in force for a flavor and tier (None: all). The same again changes nothing.

    Reservations that stand are not judged anew. Raises Invalid for shares beyond 100 and negative numbers.
    """
    require(actor, "policy.set")
    limits: dict[str, int | None] = {
        "reservable_share_percent": reservable_share_percent,
        "team_share_percent": team_share_percent,
        "active_count": active_count,
        "future_count": future_count,
        "rack_hours_ahead": rack_hours_ahead,
        "lead_minutes": lead_minutes,
        "horizon_days": horizon_days,
        "max_duration_minutes": max_duration_minutes,
        "open_asks_per_team": open_asks_per_team,
        "cool_down_minutes": cool_down_minutes,
    }
    _check(limits)
    wanted: dict[str, Any] = {"flavor": flavor, "tier": tier, **limits}
    with transaction.atomic():
        # What a preview may answer changed on every cluster that the policy speaks of.
        clusters = lock_all_clusters() if flavor is None else [lock_cluster(flavor.cluster_id)]
        versions = ReservationPolicy.objects.filter(name=name).order_by("-number")
        last = versions.first()
        before = last if last is not None and last.retired_at is None else None
        if before is not None and all(getattr(before, key) == value for key, value in wanted.items()):
            return before
        ReservationPolicy.objects.filter(name=name, retired_at=None).update(retired_at=at)
        policy = ReservationPolicy.objects.create(name=name, number=last.number + 1 if last else 1, **wanted)
        for cluster in clusters:
            bump(cluster, snapshot=True)
        scope = {"flavor": str(flavor) if flavor else None, "tier": str(tier) if tier else None}
        record(
            "reservation_policy.set",
            subject=("reservation_policy", name),
            actor=actor,
            at=at,
            before={key: getattr(before, key) for key in limits} if before else None,
            after={**scope, **limits},
        )
    return policy


def _check(limits: dict[str, int | None]) -> None:
    """Refuse numbers that mean nothing."""
    for key, value in limits.items():
        if value is not None and (value < 0 or (key.endswith("_percent") and value > 100)):
            bound = "0 to 100" if key.endswith("_percent") else "0 or more"
            raise Invalid(f"{key} is {bound}, not {value}.", Fault(f"/{key}", "invalid", f"{bound}."))
