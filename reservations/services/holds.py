"""How are nodes taken and given back? (hold rows and masks, written together so that they always say the same)"""

from collections import defaultdict
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from allocations.models import Node
from reservations.errors import placement_gone
from reservations.models import Hold, Reservation
from reservations.moments import moment_of
from scheduling.answers import Placement
from scheduling.topology import WORD_BITS


def place(reservation: Reservation, placement: Placement, *, provisional: bool) -> None:
    """Write the placement's period, masks and score on the reservation (unsaved may be), save it, and take its nodes.

    Raises WrongState placement_gone when a node is held by somebody else: the constraint node_held_once is the last
    referee, whatever the planner thought. The caller holds the cluster's lock.
    """
    reservation.start_at, reservation.end_at = moment_of(placement.start_minute), moment_of(placement.end_minute)
    reservation.score = dict(placement.score)
    nodes = list(
        Node.objects.filter(cluster=reservation.cluster_id, name__in=placement.nodes).values_list(
            "id", "rack_id", "position", "name"
        )
    )
    if len(nodes) != len(placement.nodes):
        raise placement_gone("A node of this placement is no longer there.")
    _write_masks(reservation, [(rack, position) for _, rack, position, _ in nodes])
    spares = set(placement.spares)
    period = DateTimeTZRange(reservation.start_at, reservation.end_at)
    try:
        with transaction.atomic():
            reservation.save()
            Hold.objects.bulk_create(
                (
                    Hold(
                        reservation=reservation,
                        node_id=pk,
                        period=period,
                        is_spare=name in spares,
                        is_provisional=provisional,
                    )
                    for pk, _, _, name in nodes
                ),
                batch_size=5000,
            )
    except IntegrityError as error:
        if "node_held_once" not in str(error):
            raise
        raise placement_gone("Somebody else took nodes of this placement a moment ago.") from error


def release(reservation: Reservation, at: datetime) -> None:
    """Give back every node that the reservation still holds, from `at` on. The masks stay: released_at bounds them."""
    Hold.objects.filter(reservation=reservation, released_at=None).update(released_at=at)


def firm(reservation: Reservation) -> None:
    """Turn the provisional holds into firm ones."""
    Hold.objects.filter(reservation=reservation, released_at=None).update(is_provisional=False)


def held_nodes(reservation: Reservation) -> list[str]:
    """Names of the nodes that the reservation holds, in rack and position order."""
    return list(
        Hold.objects.filter(reservation=reservation, released_at=None)
        .order_by("node__rack__name", "node__position")
        .values_list("node__name", flat=True)
    )


def _write_masks(reservation: Reservation, places: list[tuple[int, int]]) -> None:
    """Set the three mask columns from (rack row id, position) pairs; bits as signed 64-bit integers."""
    words: dict[tuple[int, int], int] = defaultdict(int)
    for rack, position in places:
        words[rack, position // WORD_BITS] |= 1 << position % WORD_BITS
    keys = sorted(words)
    reservation.mask_racks = [rack for rack, _ in keys]
    reservation.mask_words = [word for _, word in keys]
    reservation.mask_bits = [words[key] - (1 << WORD_BITS if words[key] >> WORD_BITS - 1 else 0) for key in keys]
