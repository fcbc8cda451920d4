"""How is an approved reservation taken away? (the past stays; from now on its nodes are free)"""

from datetime import datetime

from django.db import transaction

from allocations.errors import NotAllowed, WrongState
from allocations.models import User
from allocations.permissions import can
from allocations.services.counters import bump
from reservations import states
from reservations.models import Reservation
from reservations.moments import minute_until, moment_of
from reservations.services import holds
from reservations.services.deeds import check, locked, told


def cancel(
    *, reservation: Reservation, actor: User, at: datetime, reason: str = "", version: int | None = None
) -> Reservation:
    """Give back an approved reservation: whole before its start, else from the next whole minute on; then push.

    Raises NotAllowed for anybody but a lead of the team or an operator of the cluster, WrongState when it was never
    approved or is over.
    """
    with transaction.atomic():
        cluster, reservation = locked(reservation)
        if not can(actor, "reservation.cancel", reservation):
            raise NotAllowed(
                f"Only a lead of {reservation.team.path} or an operator of {cluster.name} may cancel this."
            )
        result = check(reservation, "cancel", version)
        phase = states.phase(
            reservation.decision, reservation.start_at, reservation.end_at, reservation.released_at, at
        )
        if phase == "over":
            raise WrongState(f"{reservation.public_id} is over; there is nothing to cancel.", phase="over")
        released_at = at if phase == "scheduled" else min(moment_of(minute_until(at)), reservation.end_at)
        before = {"decision": str(reservation.decision), "phase": phase}
        holds.release(reservation, released_at)
        reservation.decision, reservation.released_at = result, released_at
        bump(cluster, desired=True, snapshot=True)
        reservation.wanted_generation = cluster.desired_generation
        reservation.version += 1
        reservation.save(update_fields=("decision", "released_at", "wanted_generation", "version"))
        told("reservation.cancelled", reservation, actor=actor, at=at, before=before, sentence=reason.strip())
    return reservation
