"""What went on in the demo before today, and what is coming? (asks, verdicts, an outage, told in the order of time)"""

import heapq
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from random import Random

from allocations.models import Cluster, Node
from allocations.services import health
from console.demo.people import Cast
from reservations.errors import DoesNotFit, LimitReached
from reservations.models import Reservation
from reservations.moments import minute_until
from reservations.services import approve, cancel, reject, submit, withdraw
from scheduling.spec import ReservationSpec

ASKING = ("acme/llm/pretrain", "acme/vision/pretrain", "acme/llm/post-training", "acme/speech", "acme/robotics")
PURPOSES = (
    "Pretraining run, checkpoint every two hours",
    "Scaling ladder, four sizes",
    "Ablation of the data mixture",
    "Long-context fine-tuning",
    "Evaluation sweep before the release",
    "Distillation into the small model",
    "Simulation to real transfer",
)


@dataclass(frozen=True, slots=True)
class _Ask:
    """One ask of the demo: from `start_at` on for `days`; `verdict` is what becomes of it, "" while it waits."""

    team: str
    racks: int
    start_at: datetime
    days: float
    purpose: str
    verdict: str = "approve"


@dataclass(order=True)
class _Moment:
    """Something that happens at a moment; `order` keeps what happens at once in the order in which it was planned."""

    at: datetime
    order: int
    deed: str = field(compare=False)
    ask: _Ask = field(compare=False)
    reservation: Reservation | None = field(compare=False, default=None)


def live(cluster: Cluster, flavor: str, cast: Cast, *, asks: int, now: datetime, dice: Random) -> int:
    """Play `asks` asks for racks of a flavor on a cluster, past to future; says how many became reservations.

    An ask that does not fit or is over a limit is refused, as it would be for anybody, and leaves nothing.
    """
    order = count()
    due = [_Moment(at, next(order), "submit", ask) for at, ask in _asks(asks, now, dice)]
    heapq.heapify(due)
    made = 0
    while due:
        moment = heapq.heappop(due)
        if moment.deed == "submit":
            reservation = _submit(cluster, flavor, cast, moment)
            if reservation is None:
                continue
            made += 1
            if moment.ask.verdict:
                later = min(moment.at + timedelta(minutes=dice.randrange(20, 300)), now)
                heapq.heappush(due, _Moment(later, next(order), moment.ask.verdict, moment.ask, reservation))
        else:
            _decide(cast, moment)
    return made


def ask_and_wait(
    cluster: Cluster, flavor: str, cast: Cast, *, team: str, racks: int, purpose: str, at: datetime, start_at: datetime
) -> None:
    """One ask that nobody decided yet."""
    ask = _Ask(team, racks, start_at, 3, purpose, "")
    _submit(cluster, flavor, cast, _Moment(at, 0, "submit", ask))


def plan_maintenance(cluster: Cluster, cast: Cast, *, rack: str, name: str, at: datetime, start_at: datetime) -> None:
    """A planned outage of one rack for six hours."""
    nodes = list(Node.objects.filter(cluster=cluster, rack__name=rack).values_list("name", flat=True))
    health.plan_outage(
        cluster=cluster,
        name=name,
        nodes=nodes,
        start_at=start_at,
        end_at=start_at + timedelta(hours=6),
        reason="A pump of the cooling loop is replaced.",
        actor=cast.people["operator@demo.berth"],
        at=at,
    )


def _asks(number: int, now: datetime, dice: Random) -> list[tuple[datetime, _Ask]]:
    """Asks with their moments of submission: a third over, a few running, the rest ahead."""
    made = []
    for index in range(number):
        first = -13 + 36 * index / max(1, number - 1)  # days from now
        start_at = (now + timedelta(days=first, hours=dice.randrange(0, 20))).replace(minute=0, second=0, microsecond=0)
        notice = timedelta(days=dice.randrange(2, 9), minutes=dice.randrange(0, 600))
        submitted_at = min(start_at - notice, now - timedelta(hours=dice.randrange(6, 30)))
        verdict = "approve"
        if index % 11 == 7:
            verdict = "reject"
        elif index % 13 == 9:
            verdict = "withdraw"
        elif index % 17 == 12:
            verdict = "cancel"
        days = dice.choice((1, 2, 3, 3, 5, 7))
        team, racks = ASKING[index % len(ASKING)], dice.choice((1, 1, 2, 2, 3, 4))
        made.append((submitted_at, _Ask(team, racks, start_at, days, dice.choice(PURPOSES), verdict)))
    return made


def _submit(cluster: Cluster, flavor: str, cast: Cast, moment: _Moment) -> Reservation | None:
    ask = moment.ask
    earliest = minute_until(ask.start_at)
    spec = ReservationSpec(
        flavor=flavor,
        racks=ask.racks,
        nodes_per_rack=16,
        duration_minutes=int(ask.days * 1440),
        earliest_start_minute=earliest,
        latest_end_minute=earliest + int((ask.days + 2) * 1440),
    )
    try:
        return submit.submit(
            team=cast.teams[ask.team],
            cluster=cluster,
            spec=spec,
            purpose=ask.purpose,
            actor=cast.lead_of(ask.team),
            at=moment.at,
        )
    except (DoesNotFit, LimitReached):
        return None


def _decide(cast: Cast, moment: _Moment) -> None:
    approver, reservation = cast.people["approver@demo.berth"], moment.reservation
    assert reservation is not None  # only a submitted ask is decided
    if moment.deed == "reject":
        reason = "The evaluation cluster has room for this; please ask there."
        reject.reject(reservation=reservation, actor=approver, at=moment.at, reason=reason)
    elif moment.deed == "withdraw":
        withdraw.withdraw(reservation=reservation, actor=cast.lead_of(moment.ask.team), at=moment.at)
    else:
        reservation = approve.approve(reservation=reservation, actor=approver, at=moment.at)
        if moment.deed == "cancel":
            reason = "The run was moved to next month."
            lead = cast.lead_of(moment.ask.team)
            cancel.cancel(reservation=reservation, actor=lead, at=moment.at, reason=reason)
