"""What was written on a cluster for a reservation, and how does its team use it? (exact commands, copyable lines)"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.models import PushPlan, PushStep
from console.push import desired
from console.push.standing import objects_of
from reservations.models import Reservation
from scheduling.dialects import DialectError, UsageText, dialect

_SHAPES = {
    "planned": "half",
    "applying": "disc",
    "applied": "disc",
    "verified": "tick",
    "failed": "cross",
    "skipped": "ring",
}
MOST_STEPS = 20


@dataclass(frozen=True)
class Pushed:
    """The steps of the newest plan that concern the reservation, what it could not say, and the plan itself."""

    plan: PushPlan | None
    steps: tuple[dict[str, Any], ...]
    compromises: tuple[str, ...]


def pushed(reservation: Reservation) -> Pushed:
    """What the newest plan with a step for it wrote or would write; at most two queries."""
    steps = PushStep.objects.filter(objects_of([reservation], "plan__cluster")).select_related("plan")
    rows = list(steps.order_by("-plan", "number")[:MOST_STEPS])
    if not rows:
        return Pushed(None, (), ())
    plan = rows[0].plan
    told = [
        each for each in plan.compromises if each.get("subject") in (reservation.public_id, reservation.name_on_cluster)
    ]
    return Pushed(
        plan,
        tuple(_step(row) for row in rows if row.plan_id == plan.pk),
        tuple(str(each["sentence"]) for each in told),
    )


def usage(reservation: Reservation, at: datetime) -> tuple[UsageText, ...]:
    """Lines for the team to copy, in the words of the cluster's scheduler; none where there is nothing to use."""
    try:
        words = dialect(reservation.cluster.kind)
        state = desired.gather(cluster_id=reservation.cluster_id, at=at)
        wanted = next((each for each in state.reservations if each.id == reservation.public_id), None)
        return words.usage(state, wanted, reservation.team.account) if wanted is not None else ()
    except DialectError:
        return ()


def _step(row: PushStep) -> dict[str, Any]:
    """One step as components/plan_step.html takes it."""
    changes = [f"{each['attribute']} {_value(each['before'])} → {_value(each['after'])}" for each in row.changes]
    return {
        "number": str(row.number),
        "deed": row.verb,
        "subject": f"{row.object_class} {row.name}",
        "change": "; ".join(changes) if row.verb == "update" else "",
        "command": "\n".join(_command(each) for each in row.commands),
        "state": row.state,
        "shape": _SHAPES[row.state],
    }


def _command(command: Any) -> str:
    """A command as it is pasted: text as it stands, words joined."""
    return command if isinstance(command, str) else " ".join(map(str, command))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "none" if value in (None, "") else str(value)
