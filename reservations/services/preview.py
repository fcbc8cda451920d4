"""What would happen if this were asked for? (the steps of submit without its lock and without a write)"""

from dataclasses import dataclass
from datetime import datetime

from allocations.errors import Fault, NotAllowed
from allocations.models import Allocation, ApprovalPolicy, Cluster, Flavor, Team, User
from allocations.permissions import can
from allocations.services import approvals
from reservations.budget import Cost
from reservations.disclosure import DisclosedRefusal, disclosed_refusal
from reservations.fleet_map import MapBlock, map_of
from reservations.placing import flavor_of, judge
from reservations.services.submit import DEFAULT_HOLD_MINUTES, case_facts, refused_by
from reservations.snapshot import snapshot
from scheduling import feasibility
from scheduling.answers import Placement, StripBar
from scheduling.snapshot import FleetSnapshot
from scheduling.spec import ReservationSpec

STRIP_DAYS = 21
DRAWN_RACKS = 48


@dataclass(frozen=True)
class ApprovalPreview:
    """Who would have to say yes: (role, quorum) per step, and how long the nodes would be held meanwhile."""

    policy: str | None
    policy_version: int | None
    steps: tuple[tuple[str, int], ...]
    hold_minutes: int
    is_automatic: bool


@dataclass(frozen=True)
class AsOf:
    """What the answer was computed from."""

    at: datetime
    generation: int
    snapshot_version: int
    observed_at: datetime | None


@dataclass(frozen=True)
class Preview:
    """The whole answer: exactly one of placement and refusal; faults are rules that refuse the ask all the same."""

    spec: ReservationSpec
    flavor: str
    placement: Placement | None
    refusal: DisclosedRefusal | None
    strip: tuple[StripBar, ...]
    map: tuple[MapBlock, ...]
    cost: Cost | None
    approval: ApprovalPreview | None
    faults: tuple[Fault, ...]
    as_of: AsOf

    @property
    def fits(self) -> bool:
        return self.placement is not None

    @property
    def can_be_asked(self) -> bool:
        """Would submit take it?"""
        return self.placement is not None and not self.faults


def preview(
    *,
    team: Team,
    cluster: Cluster,
    spec: ReservationSpec,
    user: User,
    at: datetime,
    allocation: Allocation | None = None,
    with_drawings: bool = True,
) -> Preview:
    """Search, count and ask the rules, and say it all; nothing is written or locked.

    `with_drawings=False` leaves strip and map empty. Raises Invalid for a spec that is wrong in itself, NotAllowed
    for who is not in the team.
    """
    if not can(user, "reservation.preview", team):
        raise NotAllowed(f"Only people of {team.path} may look for racks in its name.")
    cluster = Cluster.objects.get(pk=cluster.pk)
    flavor = flavor_of(cluster, spec)
    view = snapshot(cluster, at)
    judged = judge(team=team, flavor=flavor, spec=spec, snapshot=view, at=at, allocation=allocation)
    placement = judged.outcome if isinstance(judged.outcome, Placement) else None
    refusal = None if isinstance(judged.outcome, Placement) else judged.outcome
    policy = None
    faults = judged.faults
    if placement is not None:
        policy = approvals.policy_for(kind="reservation", facts=case_facts(team, flavor, placement))
        faults += refused_by(policy)
    if not can(user, "reservation.request", team):
        faults += (Fault("/team", "not_allowed", f"Only a lead of {team.path} may ask for racks in its name."),)
    strip = feasibility.strip(view, judged.searched, STRIP_DAYS) if with_drawings else ()
    return Preview(
        spec=judged.searched,
        flavor=flavor.name,
        placement=placement,
        refusal=None if refusal is None else disclosed_refusal(user, cluster, refusal),
        strip=strip,
        map=_map(cluster, view, judged.searched, placement, strip, flavor, user) if with_drawings else (),
        cost=judged.cost,
        approval=None if placement is None else _approval(policy),
        faults=faults,
        as_of=AsOf(at, cluster.desired_generation, cluster.snapshot_version, cluster.observed_at),
    )


def _approval(policy: ApprovalPolicy | None) -> ApprovalPreview:
    """The steps that the policy in force would copy into the case."""
    if policy is None:
        return ApprovalPreview(None, None, (("approver", 1),), DEFAULT_HOLD_MINUTES, False)
    steps = () if policy.automatic else tuple((step["role"], int(step.get("quorum", 1))) for step in policy.steps)
    return ApprovalPreview(policy.name, policy.number, steps, policy.hold_minutes, policy.automatic == "approve")


def _map(
    cluster: Cluster,
    view: FleetSnapshot,
    spec: ReservationSpec,
    placement: Placement | None,
    strip: tuple[StripBar, ...],
    flavor: Flavor,
    user: User,
) -> tuple[MapBlock, ...]:
    """The racks of the flavor during the placement, or where the most could be had when there is none."""
    if placement is not None:
        start, end = placement.start_minute, placement.end_minute
    else:
        start = (
            max(strip, key=lambda bar: (bar.size, -bar.best_start_minute)).best_start_minute
            if strip
            else view.now_minute
        )
        end = start + spec.duration_minutes
    return map_of(cluster, view, start, end, user=user, placement=placement, flavor=flavor.name, most_racks=DRAWN_RACKS)
