"""How is an ask refused? (with a reason; its nodes are free at once)"""

from datetime import datetime

from django.db import transaction

from allocations.models import User
from allocations.services import approvals
from allocations.services.counters import bump
from reservations.models import Reservation
from reservations.services import holds
from reservations.services.approve import check_decider
from reservations.services.deeds import check, locked, told


def reject(
    *, reservation: Reservation, actor: User, at: datetime, reason: str, version: int | None = None
) -> Reservation:
    """Record this person's no and give the nodes back. One no decides.

    Raises Invalid without a reason, NotAllowed (own_request for one's own), WrongState in any other decision.
    """
    with transaction.atomic():
        cluster, reservation = locked(reservation)
        result = check(reservation, "reject", version)
        check_decider(reservation, actor)
        assert reservation.approval_case is not None  # every request has its case
        approvals.decide(case=reservation.approval_case, approver=actor, verdict="reject", reason=reason, at=at)
        before = {"decision": str(reservation.decision)}
        holds.release(reservation, at)
        reservation.decision, reservation.hold_expires_at = result, None
        reservation.version += 1
        reservation.save(update_fields=("decision", "hold_expires_at", "version"))
        bump(cluster, snapshot=True)
        told("reservation.rejected", reservation, actor=actor, at=at, before=before, sentence=reason.strip())
    return reservation
