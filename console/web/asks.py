"""What does a deed on a reservation do, said before it is done? (approve, reject, withdraw, cancel)"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from allocations.models import User
from allocations.permissions import rights
from console.web import drawings, phrases
from console.web.layout import BlockDrawing
from console.web.signs import phase_of
from reservations import queries
from reservations.budget import hours_of, left_of, node_count
from reservations.models import Reservation
from reservations.moments import minute_from
from reservations.snapshot import snapshot
from reservations.states import OPEN
from scheduling.answers import Placement

DRAWN_RACKS = 48


def held_text(reservation: Reservation, held: queries.Held) -> str:
    """What it holds: "4 racks", or "6 nodes" where it holds no whole rack's worth by name."""
    if reservation.spec.get("racks") or not held.nodes:
        return phrases.racks(len(held.racks) or int(reservation.spec.get("racks") or 0))
    return phrases.nodes(len(held.nodes))


def own_map(reservation: Reservation, held: queries.Held, user: User, at: datetime) -> list[BlockDrawing]:
    """The racks around the reservation while it runs, its own nodes lit."""
    cluster = reservation.cluster
    view = snapshot(cluster, at)
    placement = Placement(
        cluster=cluster.name,
        racks=held.racks,
        nodes=held.nodes,
        spares=held.spares,
        start_minute=minute_from(reservation.start_at),
        end_minute=minute_from(reservation.end_at),
        score={},
    )
    start = max(placement.start_minute, view.now_minute)
    blocks = queries.map_of(
        cluster,
        view,
        start,
        max(placement.end_minute, start + 1),
        user=user,
        placement=placement,
        flavor=reservation.flavor.name,
        most_racks=DRAWN_RACKS,
    )
    drawn = drawings.map_drawing(blocks, timezone.get_current_timezone())
    return drawings.provisional(drawn, set(held.nodes) - set(held.spares)) if reservation.decision in OPEN else drawn


def gpu_hours_of(reservation: Reservation, from_at: datetime | None = None) -> str:
    """What it takes of the ledger, from a moment on: "20,736 GPU-hours"."""
    per_node = reservation.flavor.gpus_per_node
    start = reservation.start_at if from_at is None else max(from_at, reservation.start_at)
    hours = hours_of(node_count(reservation.mask_bits) * (per_node or 1), start, reservation.end_at)
    return phrases.amount(round(hours), "GPU-hour" if per_node else "node-hour")


def payer_line(reservation: Reservation, held: queries.Held) -> str:
    """What it takes and from which allocation."""
    per_node = reservation.flavor.gpus_per_node
    size = phrases.gpus(len(held.nodes) * per_node) if per_node else phrases.nodes(len(held.nodes))
    if reservation.allocation is None:
        return f"{size}, {gpu_hours_of(reservation)}"
    return f"{size}, {gpu_hours_of(reservation)} from {reservation.allocation.public_id}"


def ask_deeds(
    reservation: Reservation, held: queries.Held, user: User, at: datetime, left: Any = None
) -> dict[str, Any] | None:
    """What an approver needs to decide this ask; None for whom it does not wait. Steps must be prefetched.

    `left` is what the paying allocation has left with this ask already set aside, read here when not given.
    """
    outcome = queries.outcome_loaded(reservation)
    expires_at = reservation.hold_expires_at
    is_open = reservation.decision == "requested" and (expires_at is None or expires_at > at)
    if not is_open or outcome.role is None or not queries.may_decide(rights(user), reservation, outcome.role):
        return None
    payer = reservation.allocation
    if left is None and payer is not None:
        left = left_of([payer], at)[payer.pk]
    return {
        "deed": f"Approve {held_text(reservation, held)}",
        "effects": _approval_effects(reservation, held, outcome.missing, left),
        "reject_effects": [{"sentence": f"{_goes_back(reservation, held)} at once."}],
        "role": outcome.role,
    }


def withdraw_effects(reservation: Reservation, held: queries.Held) -> list[dict[str, Any]]:
    """What taking the ask back does."""
    return [
        {"sentence": f"{_goes_back(reservation, held)} at once.", "detail": _nodes_line(reservation, held)},
        {"sentence": "Nothing was written on the cluster, so nothing is taken away there.", "shape": "tick"},
    ]


def cancel_effects(reservation: Reservation, held: queries.Held, at: datetime) -> list[dict[str, Any]]:
    """What taking the reservation away does."""
    zone, cluster = timezone.get_current_timezone(), reservation.cluster.name
    until = phrases.moment(reservation.end_at, zone, at)
    effects = [
        {
            "sentence": f"{_goes_back(reservation, held)}.",
            "detail": f"{_nodes_line(reservation, held)}, until {until}.",
        },
        {"sentence": f"{gpu_hours_of(reservation, at)} are not charged.", "shape": "tick"},
    ]
    if phase_of(reservation, at) == "active":
        effects.append(
            {"sentence": f"Work that runs in it loses its place on {cluster} within a minute.", "shape": "triangle"}
        )
    else:
        effects.append({"sentence": f"{cluster} forgets it within a minute.", "shape": "disc"})
    return effects


def _approval_effects(reservation: Reservation, held: queries.Held, missing: int, left: Any) -> list[dict[str, Any]]:
    """Racks, GPU-hours and what the allocation has left: what a yes means."""
    effects: list[dict[str, Any]] = [
        {
            "sentence": f"{reservation.team.path} gets {held_text(reservation, held)} of {reservation.cluster.name}.",
            "detail": _nodes_line(reservation, held),
        }
    ]
    takes = gpu_hours_of(reservation)
    payer = reservation.allocation
    if payer is None:
        effects.append({"sentence": f"{takes}, with no allocation to take them from.", "shape": "triangle"})
    elif left is None:
        effects.append({"sentence": f"{takes} from {payer.public_id}, which has no limit.", "shape": "tick"})
    else:
        shape = "tick" if left >= 0 else "triangle"
        effects.append(
            {"sentence": f"{takes} from {payer.public_id}; {round(left):,} are left after it.", "shape": shape}
        )
    if missing > 1:
        effects.append({"sentence": f"It needs {missing} yes from this step; yours is one of them.", "shape": "half"})
    else:
        effects.append({"sentence": f"{reservation.cluster.name} is told within a minute.", "shape": "disc"})
    return effects


def _goes_back(reservation: Reservation, held: queries.Held) -> str:
    """ "3 racks of sol go back to the pool"."""
    what = held_text(reservation, held)
    return f"{what} of {reservation.cluster.name} {'goes' if what.startswith('1 ') else 'go'} back to the pool"


def _nodes_line(reservation: Reservation, held: queries.Held) -> str:
    """ "r22 to r25, 72 nodes, 288 GPUs"."""
    parts: Sequence[str] = (
        drawings.racks_text(held.racks) if held.racks else "",
        phrases.nodes(len(held.nodes)),
        phrases.gpus(len(held.nodes) * reservation.flavor.gpus_per_node) if reservation.flavor.gpus_per_node else "",
    )
    return ", ".join(part for part in parts if part)
