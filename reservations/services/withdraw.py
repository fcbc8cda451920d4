"""How does a team take an ask back before it is decided?"""

from datetime import datetime

from django.db import transaction

from allocations.errors import NotAllowed
from allocations.models import User
from allocations.permissions import can
from allocations.services import approvals
from allocations.services.counters import bump
from reservations.models import Reservation
from reservations.services import holds
from reservations.services.deeds import check, locked, told


def withdraw(
    *, reservation: Reservation, actor: User, at: datetime, reason: str = "", version: int | None = None
) -> Reservation:
    """Take the ask back; its nodes are free at once. Raises NotAllowed for all but leads, WrongState once decided."""
    with transaction.atomic():
        cluster, reservation = locked(reservation)
        if not can(actor, "reservation.withdraw", reservation):
            raise NotAllowed(f"Only a lead of {reservation.team.path} may withdraw this.")
        result = check(reservation, "withdraw", version)
        before = {"decision": str(reservation.decision)}
        holds.release(reservation, at)
        reservation.decision, reservation.hold_expires_at = result, None
        reservation.version += 1
        reservation.save(update_fields=("decision", "hold_expires_at", "version"))
        if reservation.approval_case is not None:
            approvals.close_case(case=reservation.approval_case, at=at, actor=actor)
        bump(cluster, snapshot=True)
        told("reservation.withdrawn", reservation, actor=actor, at=at, before=before, sentence=reason.strip())
    return reservation
