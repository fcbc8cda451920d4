"""How does an ask become a reservation that holds its nodes? (lock, look, hold, open its approval case)"""

from datetime import datetime, timedelta

from django.db import transaction

from allocations.errors import Fault, Invalid, NotAllowed, WrongState
from allocations.models import Allocation, ApprovalPolicy, Cluster, Flavor, Team, User
from allocations.permissions import can
from allocations.services import approvals
from allocations.services.counters import bump, lock_cluster
from reservations.answers_json import refusal_to
from reservations.budget import lock_payers, own_guarantee_fault
from reservations.disclosure import disclosed_refusal
from reservations.errors import DoesNotFit, LimitReached
from reservations.models import Reservation
from reservations.moments import moment_of
from reservations.placing import Judgement, flavor_of, judge
from reservations.services import approve, holds, lapse
from reservations.services.deeds import told
from reservations.snapshot import snapshot
from reservations.spec_json import spec_to
from scheduling.answers import Placement, Refusal
from scheduling.spec import ReservationSpec

DEFAULT_HOLD_MINUTES = 1440


def submit(
    *,
    team: Team,
    cluster: Cluster,
    spec: ReservationSpec,
    purpose: str,
    actor: User,
    at: datetime,
    funding: str = "pool",
    at_end: str = "stop",
    run_over_minutes: int = 0,
    spares: str = "held",
    allocation: Allocation | None = None,
    external_id: str = "",
) -> Reservation:
    """Ask for racks in a team's name: the earliest placement in the window is held provisionally until it is decided.

    A policy that approves by itself makes it firm at once. Raises Invalid for what is wrong in itself, NotAllowed for
    anybody but a lead, DoesNotFit with the planner's refusal, LimitReached (no_allocation, budget_short, policy_limit)
    with the numbers, WrongState for an archived team or placement_gone.
    """
    purpose = purpose.strip()
    _check_words(purpose, funding, at_end, run_over_minutes, spares, external_id)
    if not can(actor, "reservation.request", team):
        raise NotAllowed(f"Only a lead of {team.path} may ask for racks in its name.")
    if team.archived_at is not None:
        raise WrongState(f"{team.path} is archived.")
    with transaction.atomic():
        cluster = lock_cluster(cluster)
        lapse.lapse_locked(cluster=cluster, at=at, actor=None)
        flavor = flavor_of(cluster, spec)
        lock_payers(team, flavor)
        view = snapshot(cluster, at, fresh=True)
        judged = judge(team=team, flavor=flavor, spec=spec, snapshot=view, at=at, allocation=allocation)
        placement = _accepted(judged, cluster, actor)
        policy = approvals.policy_for(kind="reservation", facts=case_facts(team, flavor, placement))
        _check_funding(funding, team, flavor, judged, policy, at)
        assert judged.cost is not None  # a placement always has its cost
        reservation = Reservation(
            cluster=cluster,
            team=team,
            flavor=flavor,
            allocation=judged.cost.allocation,
            decision=Reservation.Decision.REQUESTED,
            purpose=purpose,
            spec=spec_to(spec),
            hold_expires_at=at + timedelta(minutes=policy.hold_minutes if policy else DEFAULT_HOLD_MINUTES),
            funding=funding,
            at_end=at_end,
            run_over_minutes=run_over_minutes,
            spares=spares,
            external_id=external_id,
            created_by=actor,
        )
        return _hold_and_open(reservation, placement, cluster, actor, at)


def case_facts(team: Team, flavor: Flavor, placement: Placement) -> dict[str, str | int]:
    """What approval policies may look at."""
    return {
        "duration_minutes": placement.end_minute - placement.start_minute,
        "racks": len(placement.racks),
        "gpus": len(placement.nodes) * flavor.gpus_per_node,
        "flavor": flavor.name,
        "cluster": flavor.cluster.name,
        "team": team.path,
    }


def refused_by(policy: ApprovalPolicy | None) -> tuple[Fault, ...]:
    """The fault of a policy that refuses by itself."""
    if policy is None or policy.automatic != "refuse":
        return ()
    return (Fault("/spec", "policy_limit", policy.reason or f"The policy {policy.name} refuses asks like this."),)


def _hold_and_open(
    reservation: Reservation, placement: Placement, cluster: Cluster, actor: User, at: datetime
) -> Reservation:
    """Take the nodes, open the case, tell; a case without steps is approved at once."""
    holds.place(reservation, placement, provisional=True)
    facts = case_facts(reservation.team, reservation.flavor, placement)
    reservation.approval_case = approvals.open_case(requester=actor, kind="reservation", facts=facts, at=at)
    reservation.save(update_fields=("approval_case",))
    bump(cluster, snapshot=True)
    start = f"{reservation.start_at:%a %d %b %H:%M}"
    racks = f"{len(placement.racks)} rack{'s' if len(placement.racks) != 1 else ''}"
    told(
        "reservation.requested",
        reservation,
        actor=actor,
        at=at,
        sentence=f"{reservation.team.path} asks for {racks} on {cluster.name} from {start} UTC.",
    )
    if approvals.outcome_of(reservation.approval_case).standing == "approved":
        approve.take_effect(reservation, cluster, actor=None, at=at)
    return reservation


def _accepted(judged: Judgement, cluster: Cluster, actor: User) -> Placement:
    """The placement, or why not, raised; a limit that holds anyway comes before a place that is not there."""
    if judged.faults:
        raise LimitReached(judged.faults)
    if isinstance(judged.outcome, Refusal):
        shown = disclosed_refusal(actor, cluster, judged.outcome)
        raise DoesNotFit(judged.outcome, {"refusal": refusal_to(shown)})
    return judged.outcome


def _check_funding(
    funding: str, team: Team, flavor: Flavor, judged: Judgement, policy: ApprovalPolicy | None, at: datetime
) -> None:
    """Refuse what a policy refuses by itself, and an own funding that the guarantee does not hold."""
    if faults := refused_by(policy):
        raise LimitReached(faults)
    assert isinstance(judged.outcome, Placement) and judged.cost is not None
    if funding == "own":
        start_at, end_at = moment_of(judged.outcome.start_minute), moment_of(judged.outcome.end_minute)
        if fault := own_guarantee_fault(team, flavor, judged.cost.held_gpus, start_at, end_at, at):
            raise LimitReached((fault,))


def _check_words(purpose: str, funding: str, at_end: str, run_over_minutes: int, spares: str, external_id: str) -> None:
    """Refuse words that are wrong whatever the cluster looks like, all of them at once."""
    faults = []
    if not purpose:
        faults.append(Fault("/purpose", "invalid", "Say what it is for: the approver reads it."))
    if len(purpose) > 500:
        faults.append(Fault("/purpose", "invalid", "At most 500 characters."))
    if funding not in ("pool", "own"):
        faults.append(
            Fault("/funding", "invalid", "Funding is pool or own; a loan or an overcommit needs a lender's yes first.")
        )
    if at_end not in Reservation.AtEnd.values:
        faults.append(Fault("/at_end", "invalid", f"At the end: {', '.join(Reservation.AtEnd.values)}."))
    if spares not in Reservation.Spares.values:
        faults.append(Fault("/spares", "invalid", f"Spares are {', '.join(Reservation.Spares.values)}."))
    if not 0 <= run_over_minutes <= 10_080 or (run_over_minutes > 0) != (at_end == "run_over"):
        faults.append(Fault("/run_over_minutes", "invalid", "1 to 10,080 minutes, with run_over only."))
    if len(external_id) > 255:
        faults.append(Fault("/external_id", "invalid", "At most 255 characters."))
    if faults:
        sentence = faults[0].sentence if len(faults) == 1 else f"{len(faults)} things are wrong in what is asked."
        raise Invalid(sentence, *faults)
