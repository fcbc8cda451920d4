"""What changed on a cluster by somebody's hand? Told as events; put back by the same push."""

from datetime import datetime

from allocations.events import record as record_event
from console.models import ClusterEndpoint, ObservedObject
from console.push import closing, record
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
            before={"object": step.name, "changes": [closing.vars_of_change(each) for each in step.changes]},
            sentence=f"{step.object_class} {step.name} {happened} {endpoint.cluster.name} by hand.",
        )
