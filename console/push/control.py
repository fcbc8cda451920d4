"""What may an operator say to the push? Agree to a waiting plan, discard it, set a mode, look again now."""

from datetime import datetime

from django.db import transaction

from allocations import wake
from allocations.errors import Invalid, NotAllowed, WrongState
from allocations.events import record
from allocations.models import Cluster, User
from allocations.permissions import can
from allocations.services import freezing
from console.models import ClusterEndpoint, PushPlan
from console.push.endpoints import MODES
from scheduling.dialects import KINDS, dialect


@transaction.atomic
def agree(*, plan: PushPlan, actor: User, at: datetime) -> PushPlan:
    """Yes to exactly the steps of a waiting plan: the next pass writes them if they are still what differs."""
    locked = _waiting(plan, actor)
    locked.state, locked.approved_by = PushPlan.State.APPROVED, actor
    locked.save(update_fields=("state", "approved_by"))
    record("push.agreed", subject=("plan", locked.public_id), actor=actor, at=at, cluster=locked.cluster)
    look_again(cluster=locked.cluster, actor=actor, at=at)
    return locked


@transaction.atomic
def discard(*, plan: PushPlan, actor: User, at: datetime) -> PushPlan:
    """No to a waiting plan. What differs goes on differing and is shown; the next pass asks again."""
    locked = _waiting(plan, actor)
    locked.state, locked.finished_at = PushPlan.State.DISCARDED, at
    locked.save(update_fields=("state", "finished_at"))
    record("push.discarded", subject=("plan", locked.public_id), actor=actor, at=at, cluster=locked.cluster)
    return locked


@transaction.atomic
def set_mode(*, cluster: Cluster, object_class: str, mode: str, actor: User, at: datetime) -> ClusterEndpoint:
    """observe, propose or enforce for one object class ("*": all that are not named)."""
    _check(cluster, actor)
    if mode not in MODES:
        raise Invalid(f"There is no mode {mode}: use {', '.join(MODES)}.")
    if object_class != "*" and (cluster.kind not in KINDS or object_class not in dialect(cluster.kind).classes):
        raise Invalid(f"{cluster.kind} has no objects of class {object_class}.")
    endpoint = ClusterEndpoint.objects.select_for_update().filter(cluster=cluster).first()
    if endpoint is None:
        raise WrongState(f"{cluster.name} is not connected: it has no modes yet.")
    if endpoint.modes.get(object_class) == mode:
        return endpoint
    before = dict(endpoint.modes)
    endpoint.modes = {**before, object_class: mode}
    endpoint.next_push_at = at
    endpoint.save(update_fields=("modes", "next_push_at"))
    record(
        "cluster.mode_set",
        subject=("cluster", cluster.name),
        actor=actor,
        at=at,
        cluster=cluster,
        before=before,
        after=endpoint.modes,
    )
    wake.poke(cluster.pk)
    return endpoint


@transaction.atomic
def unfreeze(*, cluster: Cluster, actor: User, at: datetime) -> Cluster:
    """Write to the cluster again, beginning now with whatever waited meanwhile."""
    freed = freezing.unfreeze(cluster=cluster, actor=actor, at=at)
    look_again(cluster=freed, actor=actor, at=at)
    return freed


@transaction.atomic
def look_again(*, cluster: Cluster, actor: User, at: datetime) -> None:
    """Have the cluster looked at now instead of at its next time."""
    _check(cluster, actor)
    ClusterEndpoint.objects.filter(cluster=cluster).update(next_push_at=at)
    wake.poke(cluster.pk)


def _waiting(plan: PushPlan, actor: User) -> PushPlan:
    locked = PushPlan.objects.select_for_update(of=("self",)).select_related("cluster").get(pk=plan.pk)
    _check(locked.cluster, actor)
    if locked.state != PushPlan.State.WAITING:
        raise WrongState(f"{locked.public_id} is {locked.state}, it does not wait for a yes any more.")
    return locked


def _check(cluster: Cluster, actor: User) -> None:
    if not can(actor, "cluster.operate", cluster):
        raise NotAllowed(f"This needs the operator role on {cluster.name}.")
