"""How does an ask become firm? (the verdict is recorded, the place looked at again under the lock, then pushed)"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import transaction

from allocations.errors import NotAllowed, WrongState
from allocations.models import Cluster, User
from allocations.permissions import rights
from allocations.services import approvals
from allocations.services.counters import bump
from reservations.answers_json import refusal_to
from reservations.budget import cost_of, own_guarantee_fault
from reservations.deciding import may_decide
from reservations.disclosure import disclosed_refusal
from reservations.errors import LimitReached, placement_gone
from reservations.limits import limit_faults, policies_for
from reservations.models import Reservation
from reservations.moments import minute_from, moment_of, text_of
from reservations.placing import again, stands
from reservations.services import holds, lapse
from reservations.services.deeds import check, locked, told
from reservations.snapshot import snapshot
from reservations.spec_json import spec_from
from scheduling.answers import Placement, Refusal
from scheduling.hostlist import fold
from scheduling.snapshot import FleetSnapshot


def approve(
    *, reservation: Reservation, actor: User, at: datetime, reason: str = "", version: int | None = None
) -> Reservation:
    """Record this person's yes; with the last one needed the holds become firm and the cluster is pushed.

    The place is looked at again: where a held node failed or the start has passed, the same ask is planned anew and
    the event says what changed. Raises NotAllowed (own_request for one's own), WrongState in any other decision,
    subject_changed for another version, placement_gone with the refusal when the ask has no place any more.
    """
    with transaction.atomic():
        cluster, reservation = locked(reservation)
        check(reservation, "approve", version)
        check_decider(reservation, actor)
        _check_still_open(reservation, at)
        assert reservation.approval_case is not None  # every request has its case
        outcome = approvals.decide(
            case=reservation.approval_case, approver=actor, verdict="approve", reason=reason, at=at
        )
        if outcome.standing == "approved":
            take_effect(reservation, cluster, actor=actor, at=at, reason=reason)
        else:
            told(
                "reservation.decided",
                reservation,
                actor=actor,
                at=at,
                sentence=f"{actor.name} says yes; {outcome.missing} more needed from: {outcome.role}.",
            )
    return reservation


def check_decider(reservation: Reservation, actor: User) -> None:
    """Raises NotAllowed: own_request for one's own, not_allowed for whom the open step does not ask."""
    if reservation.created_by_id == actor.pk:
        raise NotAllowed("Nobody decides their own request.", code="own_request")
    assert reservation.approval_case is not None
    outcome = approvals.outcome_of(reservation.approval_case)
    if not may_decide(rights(actor), reservation, outcome.role or "approver"):
        raise NotAllowed(f"Deciding this needs the role {outcome.role or 'approver'} for {reservation.team.path}.")


def take_effect(
    reservation: Reservation, cluster: Cluster, *, actor: User | None, at: datetime, reason: str = ""
) -> None:
    """Make a requested reservation firm under its cluster's lock. Actor None: a policy approved by itself."""
    before = {"decision": str(reservation.decision)}
    changed = _settle_place(reservation, cluster, actor or reservation.created_by, at)
    _check_payer(reservation, at)
    holds.firm(reservation)
    reservation.decision = Reservation.Decision.APPROVED
    reservation.hold_expires_at = None
    bump(cluster, desired=True, snapshot=True)
    reservation.wanted_generation = cluster.desired_generation
    reservation.version += 1
    reservation.save()
    sentence = " ".join(part for part in (changed.get("sentence", ""), reason) if part)
    told("reservation.approved", reservation, actor=actor, at=at, before={**before, **changed}, sentence=sentence)


def held_placement(reservation: Reservation) -> Placement:
    """What the reservation holds now, as the planner's value."""
    rows = list(
        reservation.holds.filter(released_at=None)
        .order_by("node__rack__name", "node__position")
        .values_list("node__name", "is_spare", "node__rack__name", "node__rack__is_pseudo")
    )
    return Placement(
        cluster=reservation.cluster.name,
        racks=tuple(sorted({rack for _, _, rack, is_pseudo in rows if not is_pseudo})),
        nodes=tuple(name for name, *_ in rows),
        spares=tuple(name for name, is_spare, *_ in rows if is_spare),
        start_minute=minute_from(reservation.start_at),
        end_minute=minute_from(reservation.end_at),
        score=reservation.score,
    )


def _check_still_open(reservation: Reservation, at: datetime) -> None:
    """An ask whose hold ran out, or whose period is over, has lapsed even if no clock has said so yet."""
    if reservation.end_at <= at:
        raise WrongState(f"{reservation.public_id} would have ended at {text_of(reservation.end_at)}; it has lapsed.")
    if reservation.hold_expires_at is not None and reservation.hold_expires_at <= at:
        raise WrongState(
            f"The hold of {reservation.public_id} ran out at {text_of(reservation.hold_expires_at)}; it has lapsed."
        )


def _settle_place(reservation: Reservation, cluster: Cluster, reader: User, at: datetime) -> dict[str, Any]:
    """Keep the held nodes where they still stand, else plan the same ask anew; what changed, for the event."""
    spec = spec_from(reservation.spec)
    held = held_placement(reservation)
    view = snapshot(cluster, at, without=reservation.public_id, fresh=True)
    is_late = held.start_minute < view.now_minute
    refusal = stands(view, spec, held)
    if refusal is None and not is_late:
        return {}
    lapse.lapse_locked(cluster=cluster, at=at, actor=None)  # the plan may use what expired holds still cover
    found = again(view, spec, held.racks)
    why = "its start has passed" if is_late else " ".join(one.sentence for one in refusal.reasons) if refusal else ""
    if isinstance(found, Refusal):
        shown = refusal_to(disclosed_refusal(reader, cluster, found))
        raise placement_gone(f"{reservation.public_id} has no place any more: {why.rstrip('.')}.", refusal=shown)
    _check_limits(reservation, view, found, at)
    holds.release(reservation, at)
    holds.place(reservation, found, provisional=True)
    return {
        "nodes": fold(held.nodes),
        "start_at": text_of(moment_of(held.start_minute)),
        "sentence": f"Placed anew, because {why.rstrip('.')}: {', '.join(_moved(held, found)) or 'where it was'}.",
    }


def _moved(held: Placement, found: Placement) -> Iterator[str]:
    """What is different at the new place, old after new."""
    if found.nodes != held.nodes:
        yield f"{fold(found.nodes)} instead of {fold(held.nodes)}"
    if found.start_minute != held.start_minute:
        starts, started = text_of(moment_of(found.start_minute)), text_of(moment_of(held.start_minute))
        yield f"from {starts} instead of {started}"


def _check_limits(reservation: Reservation, view: FleetSnapshot, found: Placement, at: datetime) -> None:
    """At another time or place the rules against hoarding are asked anew. Raises LimitReached."""
    faults = limit_faults(
        team=reservation.team,
        flavor=reservation.flavor,
        policies=policies_for(reservation.flavor, reservation.allocation),
        snapshot=view,
        nodes=found.nodes,
        start_minute=found.start_minute,
        end_minute=found.end_minute,
        at=at,
        without=reservation.pk,
    )
    if faults:
        raise LimitReached(faults)


def _check_payer(reservation: Reservation, at: datetime) -> None:
    """The allocation must still cover the period, with GPU-hours enough, and so must an own guarantee that funds it.

    Raises LimitReached.
    """
    held = held_placement(reservation)
    cost, faults = cost_of(
        team=reservation.team,
        flavor=reservation.flavor,
        held_nodes=len(held.nodes),
        working_nodes=len(held.working_nodes),
        start_at=reservation.start_at,
        end_at=reservation.end_at,
        at=at,
        allocation=reservation.allocation,
        without=reservation.pk,
    )
    if not faults and reservation.funding == Reservation.Funding.OWN:
        period = (reservation.start_at, reservation.end_at)
        lacking = own_guarantee_fault(
            reservation.team, reservation.flavor, cost.held_gpus, *period, at, without=reservation.pk
        )
        faults = (lacking,) if lacking else ()
    if faults:
        raise LimitReached(faults)
