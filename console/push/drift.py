"""What changed on a cluster by somebody's hand? Told as events; put back by the same push."""

from datetime import datetime

from allocations.events import record as record_event
from console.models import ClusterEndpoint, ObservedObject, PushPlan
from console.push import record
from console.push.look import Look
from scheduling.plan import Step


def found(endpoint: ClusterEndpoint, seen: Look) -> list[Step]:
    """Steps that undo somebody's hand: their object was in step when last read and has changed or gone since."""
    before = {
        (row.object_class, row.name): row.attributes
        for row in ObservedObject.objects.filter(cluster=endpoint.cluster_id, state=ObservedObject.State.IN_STEP)
    }
    now = {each.key: record.plain(each.attributes) for each in seen.observed.objects}
    return [
        step
        for step in seen.plan.steps
        if (step.object_class, step.name) in before
        and now.get((step.object_class, step.name)) != before[(step.object_class, step.name)]
    ]


def is_known(endpoint: ClusterEndpoint, seen: Look) -> bool:
    """Does the plan still undo what an earlier pass found changed by hand, and nobody has put back?

    A cluster that asks before it puts back goes on asking, although the change is no news any more.
    """
    last = PushPlan.objects.filter(cluster=endpoint.cluster_id).first()
    if last is None or not last.is_drift or last.state not in (PushPlan.State.WAITING, PushPlan.State.DISCARDED):
        return False
    undone = set(last.steps.values_list("object_class", "name"))
    return any((step.object_class, step.name) in undone for step in seen.plan.steps)


def tell(endpoint: ClusterEndpoint, drifted: list[Step], at: datetime) -> None:
    """One event for each object that somebody changed or removed."""
    for step in drifted:
        happened = "is gone from" if step.verb == "create" else "was changed on"
        record_event(
            "push.drift_found",
            subject=("cluster", endpoint.cluster.name),
            actor=None,
            at=at,
            cluster=endpoint.cluster,
            before={"object": step.name, "changes": record.changes_of(step)},
            sentence=f"{step.object_class} {step.name} {happened} {endpoint.cluster.name} by hand.",
        )
