"""What can this person decide now? (open asks whose open step wants a role that they hold there)"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from allocations import states
from allocations.models import User
from allocations.permissions import Rights, rights
from allocations.states import Outcome, Said, Step
from reservations.models import Reservation
from reservations.visibility import decidable, led_by


@dataclass(frozen=True)
class InboxItem:
    """One ask that waits for this person: its open step, the role it wants, and how many more yes it needs."""

    reservation: Reservation
    step: int
    role: str
    missing: int


@dataclass(frozen=True)
class Inbox:
    """Asks to decide, the one whose hold runs out first on top, and counter-offers to the person's own asks."""

    to_decide: tuple[InboxItem, ...]
    to_answer: tuple[Reservation, ...]

    def __len__(self) -> int:
        return len(self.to_decide) + len(self.to_answer)


def inbox(user: User, at: datetime) -> Inbox:
    """What waits for this person at `at`; at most four queries, and those of the person's rights."""
    held = rights(user)
    items = []
    for reservation in _open(at).filter(decidable(held)).exclude(created_by=user):
        case = outcome_loaded(reservation)
        if case.step is None or not may_decide(held, reservation, case.role) or _has_decided(reservation, user):
            continue
        items.append(InboxItem(reservation, case.step, case.role, case.missing))
    offered = Reservation.objects.filter(led_by(held), decision="counter_offered").select_related(
        "team", "cluster", "flavor"
    )
    return Inbox(tuple(items), tuple(offered.order_by("hold_expires_at", "id")))


def inbox_count(user: User, at: datetime) -> int:
    """How many things wait for this person: the number in the frame of every page."""
    return len(inbox(user, at))


def may_decide(held: Rights, reservation: Reservation, role: str) -> bool:
    """Does the person hold the role that a step wants, where the reservation lies? Never for one's own."""
    if reservation.created_by_id == held.user_id:
        return False
    if role == "lead":
        return held.leads(reservation.team)
    return held.has(role, reservation.team, reservation.cluster_id)


def outcome_loaded(reservation: Reservation) -> Outcome:
    """Where the reservation's case stands, from prefetched steps and decisions; no query."""
    case = reservation.approval_case
    if case is None:
        return Outcome("pending", None)
    steps = list(case.steps.all())
    made = sorted(
        ((step.number, one) for step in steps for one in step.decisions.all()),
        key=lambda pair: (pair[1].decided_at, pair[1].pk),
    )
    said = [Said(number, one.approver_id, one.verdict) for number, one in made]
    return states.outcome([Step(step.number, step.role, step.quorum) for step in steps], said)


def _open(at: datetime) -> QuerySet[Reservation]:
    """Asks that are open at `at`, with everything that deciding reads."""
    return (
        Reservation.objects.filter(decision="requested", end_at__gt=at)
        .exclude(hold_expires_at__lte=at)
        .select_related("team", "cluster", "flavor", "created_by", "approval_case__policy")
        .prefetch_related("approval_case__steps__decisions")
        .order_by("hold_expires_at", "id")
    )


def _has_decided(reservation: Reservation, user: User) -> bool:
    assert reservation.approval_case is not None  # it has an open step
    return any(
        one.approver_id == user.pk for step in reservation.approval_case.steps.all() for one in step.decisions.all()
    )
