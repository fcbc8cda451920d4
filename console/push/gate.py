"""Which steps of a plan must wait, and for what? (modes, freezes, deletes that nobody is sure of)"""

from collections.abc import Sequence

from console.models import ClusterEndpoint, OwnedObject
from console.push.endpoints import mode_of
from scheduling.plan import Plan, Step

# What comes and goes with reservations is deleted as approved; anything else is deleted by a person.
PASSING = frozenset({"reservation", "Node"})
MANY_ENDED = 10


def judge(plan: Plan, endpoint: ClusterEndpoint) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """(steps that may be written, sentences why the plan waits). With any sentence nothing is written.

    Classes in observe mode are left out: their steps are only told. A class in propose mode waits for a person.
    """
    writable = tuple(step for step in plan.steps if mode_of(endpoint, step.object_class) != "observe")
    reasons = [
        f"{step.object_class} {step.name}: the mode for this class is propose."
        for step in writable
        if mode_of(endpoint, step.object_class) == "propose"
    ]
    reasons += _unsure_deletes(writable, endpoint)
    return writable, tuple(reasons)


def _unsure_deletes(steps: Sequence[Step], endpoint: ClusterEndpoint) -> list[str]:
    deletes = [step for step in steps if step.verb == "delete"]
    if not deletes:
        return []
    owned = set(
        OwnedObject.objects.filter(cluster=endpoint.cluster_id, deleted_at=None).values_list("object_class", "name")
    )
    made_again = {(step.object_class, step.name) for step in steps if step.verb == "create"}
    reasons = [
        f"{step.object_class} {step.name}: it carries Berth's mark but this Berth has no record of making it."
        for step in deletes
        if (step.object_class, step.name) not in owned
    ]
    reasons += [
        f"{step.object_class} {step.name}: it would be deleted, and only reservations come and go by themselves."
        for step in deletes
        if (step.object_class, step.name) in owned - made_again and not _is_passing(step)
    ]
    ended = {_ended(step) for step in deletes}
    if len(ended) > MANY_ENDED and len(deletes) * 2 > len(owned):
        reasons.append(
            f"{len(ended)} reservations would end at once, with {len(deletes)} of the {len(owned)} objects that Berth "
            "owns there."
        )
    return reasons


def _ended(step: Step) -> str:
    """The reservation that a delete ends a part of: one fence per node is still one reservation."""
    of = next((change.before for change in step.changes if change.attribute == "reservation"), None)
    return str(of or step.name)


def _is_passing(step: Step) -> bool:
    """Is it a part of a reservation? On schedulers without a calendar each part names its reservation."""
    return step.object_class in PASSING or any(change.attribute == "reservation" for change in step.changes)
