"""Which nodes does each of many reservations have? (what queries.held_by says of one, in one query for all)"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from reservations.models import Hold, Reservation
from reservations.states import HOLDING


@dataclass(frozen=True, slots=True)
class HeldNode:
    """One node of a reservation; `rack` is None for a node without topology."""

    name: str
    rack: str | None
    is_spare: bool


def holdings(reservations: Sequence[Reservation]) -> dict[int, tuple[HeldNode, ...]]:
    """Nodes by reservation id, in rack and position order; after its end those that it held last. One query."""
    rows = (
        Hold.objects.filter(reservation__in=[each.pk for each in reservations])
        .order_by("node__rack__name", "node__position", "-id")
        .values_list(
            "reservation_id", "node__name", "node__rack__name", "node__rack__is_pseudo", "is_spare", "released_at"
        )
    )
    held = defaultdict(list)
    for pk, name, rack, is_pseudo, is_spare, released_at in rows:
        held[pk].append((HeldNode(name, None if is_pseudo else rack, is_spare), released_at))
    kept = {}
    for each in reservations:
        mine = held[each.pk]
        last = max((at for _, at in mine if at is not None), default=None)
        ends = (None,) if each.decision in HOLDING else (None, last)
        kept[each.pk] = tuple(dict.fromkeys(node for node, at in mine if at in ends))
    return kept
