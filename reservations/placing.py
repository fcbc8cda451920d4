"""What would happen to this ask? (the one judgement that preview, submit and approve share; writes nothing)"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from allocations.errors import Fault, Invalid
from allocations.models import Allocation, Cluster, Flavor, Team
from reservations.budget import Cost, allocations_for, cost_of
from reservations.limits import limit_faults, period_faults, policies_for, window
from reservations.moments import MINUTE, moment_of
from scheduling import feasibility
from scheduling.answers import Placement, Refusal
from scheduling.snapshot import FleetSnapshot
from scheduling.spec import ReservationSpec, SpecError


@dataclass(frozen=True)
class Judgement:
    """Yes or no, what it takes, and which rules speak against it.

    `searched` is the spec with its window cut by policy.
    """

    searched: ReservationSpec
    outcome: Placement | Refusal
    cost: Cost | None
    faults: tuple[Fault, ...]


def flavor_of(cluster: Cluster, spec: ReservationSpec) -> Flavor:
    """The flavor row that the spec names. Raises Invalid unknown_flavor."""
    flavors = {
        flavor.name: flavor for flavor in Flavor.objects.filter(cluster=cluster).select_related("cluster", "gpu_model")
    }
    if spec.flavor in flavors:
        return flavors[spec.flavor]
    sentence = f"{cluster.name} has no flavor {spec.flavor!r}; it has {', '.join(sorted(flavors)) or 'none'}."
    raise Invalid(sentence, Fault("/spec/flavor", "unknown_flavor", sentence), code="unknown_flavor")


def judge(
    *,
    team: Team,
    flavor: Flavor,
    spec: ReservationSpec,
    snapshot: FleetSnapshot,
    at: datetime,
    allocation: Allocation | None = None,
) -> Judgement:
    """Search the spec's window on the snapshot, then ask who pays and what the policies say.

    Raises Invalid for a spec that is wrong in itself.
    """
    guess = allocation or next(iter(allocations_for(team, flavor, at, at + MINUTE)), None)
    cut = window(spec, policies_for(flavor, guess), at)
    outcome = find(snapshot, cut.spec)
    if isinstance(outcome, Refusal):
        return Judgement(cut.spec, outcome, None, cut.faults)
    start_at, end_at = moment_of(outcome.start_minute), moment_of(outcome.end_minute)
    cost, faults = cost_of(
        team=team,
        flavor=flavor,
        held_nodes=len(outcome.nodes),
        working_nodes=len(outcome.working_nodes),
        start_at=start_at,
        end_at=end_at,
        at=at,
        allocation=allocation,
    )
    policies = policies_for(flavor, cost.allocation or guess)
    limits = limit_faults(
        team=team,
        flavor=flavor,
        policies=policies,
        snapshot=snapshot,
        nodes=outcome.nodes,
        start_minute=outcome.start_minute,
        end_minute=outcome.end_minute,
        at=at,
    )
    periods = period_faults(policies, outcome.start_minute, outcome.end_minute, at)
    return Judgement(cut.spec, outcome, cost, tuple(dict.fromkeys((*faults, *cut.faults, *periods, *limits))))


def find(snapshot: FleetSnapshot, spec: ReservationSpec) -> Placement | Refusal:
    """The planner's answer; a spec that it finds wrong in itself is Invalid, pointing at its key."""
    try:
        return feasibility.find(snapshot, spec)
    except SpecError as error:
        sentence = f"{error.sentence[:1].upper()}{error.sentence[1:]}."
        raise Invalid(sentence, Fault(f"/spec/{error.path}", "invalid", sentence)) from error


def again(snapshot: FleetSnapshot, spec: ReservationSpec, racks: Sequence[str]) -> Placement | Refusal:
    """The same ask from now on, on the same racks where they are still good. `snapshot` must not hold it."""
    return find(snapshot, replace(spec, prefer_racks=tuple(dict.fromkeys((*racks, *spec.prefer_racks)))))


def stands(snapshot: FleetSnapshot, spec: ReservationSpec, held: Placement) -> Refusal | None:
    """None when exactly these nodes can still carry the reservation, else what came in their way.

    Running jobs do not count: they end before, or leave at the start. `snapshot` must not hold the reservation itself.
    """
    return feasibility.check(snapshot, replace(spec, ignore_jobs=True, avoid=(), avoid_racks=()), held)
