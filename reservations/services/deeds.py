"""What do all deeds on one reservation share? (take the locks, look at its decision, write it down)"""

from datetime import datetime
from typing import Any

from allocations.errors import WrongState
from allocations.events import record
from allocations.models import Cluster, User
from allocations.services.counters import lock_cluster
from reservations import states
from reservations.models import Reservation
from reservations.moments import text_of


def locked(reservation: Reservation) -> tuple[Cluster, Reservation]:
    """The cluster's row and then the reservation's, both locked and read fresh. Only inside a transaction."""
    cluster = lock_cluster(reservation.cluster_id)
    fresh = (
        Reservation.objects.select_for_update(of=("self",))
        .select_related("team", "flavor", "allocation", "approval_case__policy", "created_by")
        .get(pk=reservation.pk)
    )
    fresh.cluster = cluster
    return cluster, fresh


def check(reservation: Reservation, deed: states.Deed, version: int | None = None) -> str:
    """The decision after the deed. Raises WrongState: wrong_state, or subject_changed for another version."""
    result = states.after(deed, reservation.decision)
    if result is None:
        word = reservation.decision.replace("_", " ")
        raise WrongState(f"{reservation.public_id} is {word}; that cannot be done now.", decision=reservation.decision)
    if version is not None and version != reservation.version:
        raise WrongState(
            f"{reservation.public_id} changed since you looked. Read it again.",
            "subject_changed",
            version=reservation.version,
        )
    return result


def told(
    verb: str,
    reservation: Reservation,
    *,
    actor: User | None,
    at: datetime,
    before: dict[str, Any] | None = None,
    sentence: str = "",
) -> None:
    """Record the event with the reservation's facts after the deed."""
    record(
        verb,
        subject=("reservation", reservation.public_id),
        actor=actor,
        at=at,
        team=reservation.team,
        cluster=reservation.cluster,
        before=before,
        after=facts_of(reservation),
        sentence=sentence,
    )


def facts_of(reservation: Reservation) -> dict[str, Any]:
    """What a reservation says, in plain values, for events."""
    return {
        "decision": str(reservation.decision),
        "version": reservation.version,
        "team": reservation.team.path,
        "cluster": reservation.cluster.name,
        "flavor": reservation.flavor.name,
        "start_at": text_of(reservation.start_at),
        "end_at": text_of(reservation.end_at),
        "released_at": text_of(reservation.released_at) if reservation.released_at else None,
        "hold_expires_at": text_of(reservation.hold_expires_at) if reservation.hold_expires_at else None,
        "racks": len(set(reservation.mask_racks)),
        "purpose": reservation.purpose,
    }
