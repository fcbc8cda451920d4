"""What was written on a cluster for a reservation, and how does its team use it? (exact commands, copyable lines)"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.models import PushPlan, PushStep
from console.push import desired
from console.push.standing import objects_of
from console.web.plan_steps import plan_step
from reservations.models import Reservation
from scheduling.dialects import DialectError, UsageText, dialect

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
        tuple(plan_step(row) for row in rows if row.plan_id == plan.pk),
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
