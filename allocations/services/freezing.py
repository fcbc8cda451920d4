"""Stop and start writing to a cluster in one click; approvals go on, changes wait."""

from datetime import datetime

from django.db import transaction

from allocations import wake
from allocations.errors import Invalid, NotAllowed
from allocations.events import record
from allocations.models import Cluster, User
from allocations.permissions import can
from allocations.services.counters import lock_cluster


@transaction.atomic
def freeze(*, cluster: Cluster, reason: str, actor: User, at: datetime) -> Cluster:
    """From now on nothing is written to the cluster. Freezing a frozen one changes nothing."""
    _check(cluster, actor)
    if not reason.strip():
        raise Invalid("Say why: everyone reads it while the cluster is frozen.")
    locked = lock_cluster(cluster)
    if locked.frozen_at is None:
        locked.frozen_at, locked.frozen_reason = at, reason.strip()[:500]
        locked.save(update_fields=("frozen_at", "frozen_reason"))
        record(
            "cluster.frozen",
            subject=("cluster", locked.name),
            actor=actor,
            at=at,
            cluster=locked,
            sentence=locked.frozen_reason,
        )
    return locked


@transaction.atomic
def unfreeze(*, cluster: Cluster, actor: User, at: datetime) -> Cluster:
    """Write again, beginning with whatever waited meanwhile."""
    _check(cluster, actor)
    locked = lock_cluster(cluster)
    if locked.frozen_at is not None:
        locked.frozen_at, locked.frozen_reason = None, ""
        locked.save(update_fields=("frozen_at", "frozen_reason"))
        record("cluster.unfrozen", subject=("cluster", locked.name), actor=actor, at=at, cluster=locked)
        wake.poke(locked.pk)
    return locked


def _check(cluster: Cluster, actor: User) -> None:
    if not can(actor, "cluster.operate", cluster):
        raise NotAllowed(f"This needs the operator role on {cluster.name}.")
