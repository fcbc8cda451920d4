"""What do pages, the API and the push read of the calendar? (each in a fixed number of queries)

Visibility, disclosure, the inbox and the drawings have files of their own; this is the one place to import them from.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from allocations.models import Cluster, Rack, User
from allocations.permissions import rights
from reservations import visibility
from reservations.board import Board, BoardBlock, BoardRack, BoardShape, FreeSpan, board
from reservations.deciding import Inbox, InboxItem, inbox, inbox_count, may_decide, outcome_loaded
from reservations.disclosure import (
    Disclosed,
    DisclosedCause,
    DisclosedReason,
    DisclosedRefusal,
    disclose,
    disclosed_refusal,
    knows_names,
)
from reservations.fleet_map import MapBlock, MapCell, MapRack, holders, map_of
from reservations.models import Hold, Reservation
from reservations.states import OPEN
from reservations.visibility import get_reservation, visible_reservations
from scheduling.hostlist import fold

__all__ = [
    "ApprovedReservation", "Board", "BoardBlock", "BoardRack", "BoardShape", "Disclosed", "DisclosedCause",
    "DisclosedReason", "DisclosedRefusal", "FreeSpan", "Held", "Inbox", "InboxItem", "MapBlock", "MapCell", "MapRack",
    "Mine",
    "approved_at", "board", "disclose", "disclosed_refusal", "get_reservation", "held_by", "holders", "inbox",
    "inbox_count", "knows_names", "map_of", "may_decide", "mine", "outcome_loaded", "racks_by_reservation",
    "visible_reservations",
]  # fmt: skip
RECENT = timedelta(days=14)


@dataclass(frozen=True)
class Mine:
    """The reservations of a person's teams: running, to come (first start on top), asked for, and lately ended."""

    active: tuple[Reservation, ...]
    scheduled: tuple[Reservation, ...]
    asks: tuple[Reservation, ...]
    recent: tuple[Reservation, ...]


@dataclass(frozen=True)
class Held:
    """Which nodes a reservation has, or had when it ended: names in rack order, and the same as host lists."""

    racks: tuple[str, ...]
    nodes: tuple[str, ...]
    spares: tuple[str, ...]

    @property
    def nodes_text(self) -> str:
        return fold(self.nodes)

    @property
    def spares_text(self) -> str:
        return fold(self.spares)


@dataclass(frozen=True)
class ApprovedReservation:
    """An approved reservation that is not over, as the push needs it. `accounts` and `team_ids`: who may use it."""

    id: str
    flavor: str
    team_path: str
    team_ids: tuple[int, ...]
    accounts: tuple[str, ...]
    nodes: tuple[str, ...]
    spares: tuple[str, ...]
    racks: tuple[str, ...]
    start_at: datetime
    end_at: datetime
    funding: str
    at_end: str
    run_over_minutes: int
    wanted_generation: int


def mine(user: User, at: datetime) -> Mine:
    """What the person's own teams have and ask for at `at`; one query, and those of the person's rights."""
    rows = (
        Reservation.objects.filter(visibility.mine(rights(user)), end_at__gt=at - RECENT)
        .select_related("team", "cluster", "flavor", "created_by")
        .order_by("start_at", "id")
    )
    active, scheduled, asks, recent = [], [], [], []
    for row in rows:
        end = row.end_at if row.released_at is None else min(row.end_at, row.released_at)
        if row.decision in OPEN:
            asks.append(row)
        elif row.decision != "approved" or end <= at:
            recent.append(row)
        elif row.start_at <= at:
            active.append(row)
        else:
            scheduled.append(row)
    newest = sorted(recent, key=lambda row: (row.end_at, row.pk), reverse=True)
    return Mine(tuple(active), tuple(scheduled), tuple(asks), tuple(newest))


def held_by(reservation: Reservation) -> Held:
    """The nodes of one reservation; after its end those that it held last. One query."""
    rows = list(
        Hold.objects.filter(reservation=reservation)
        .order_by("node__rack__name", "node__position", "-id")
        .values_list("node__name", "is_spare", "node__rack__name", "node__rack__is_pseudo", "released_at")
    )
    if reservation.decision in (*OPEN, "approved"):
        kept = [row for row in rows if row[4] is None]
    else:
        last = max((row[4] for row in rows if row[4] is not None), default=None)
        kept = [row for row in rows if row[4] is None or row[4] == last]
    return _held(kept)


def racks_by_reservation(reservations: Iterable[Reservation]) -> dict[int, tuple[str, ...]]:
    """Names of the racks of each reservation, from their masks; one query for all of them."""
    rows = list(reservations)
    wanted = {rack for row in rows for rack in row.mask_racks}
    names = dict(Rack.objects.filter(pk__in=wanted, is_pseudo=False).values_list("id", "name"))
    return {row.pk: tuple(sorted({names[rack] for rack in row.mask_racks if rack in names})) for row in rows}


def approved_at(cluster: Cluster, at: datetime) -> tuple[ApprovedReservation, ...]:
    """Approved reservations of the cluster that are not over at `at`, by id; three queries."""
    rows = list(
        Reservation.objects.filter(cluster=cluster, decision="approved", end_at__gt=at)
        .filter(Q(released_at=None) | Q(released_at__gt=at))
        .select_related("team", "flavor")
        .prefetch_related("shared_with")
        .order_by("id")
    )
    nodes: dict[int, list[tuple[str, bool, str, bool, None]]] = defaultdict(list)
    held = (
        Hold.objects.filter(reservation__in=[row.pk for row in rows], released_at=None)
        .order_by("node__rack__name", "node__position")
        .values_list("reservation_id", "node__name", "is_spare", "node__rack__name", "node__rack__is_pseudo")
    )
    for reservation, name, is_spare, rack, is_pseudo in held:
        nodes[reservation].append((name, is_spare, rack, is_pseudo, None))
    return tuple(_approved(row, _held(nodes[row.pk])) for row in rows)


def _approved(row: Reservation, held: Held) -> ApprovedReservation:
    teams = [row.team, *(team for team in row.shared_with.all() if team.archived_at is None and team.pk != row.team_id)]
    return ApprovedReservation(
        id=row.public_id,
        flavor=row.flavor.name,
        team_path=row.team.path,
        team_ids=tuple(team.pk for team in teams),
        accounts=tuple(team.account for team in teams),
        nodes=held.nodes,
        spares=held.spares,
        racks=held.racks,
        start_at=row.start_at,
        end_at=row.end_at if row.released_at is None else min(row.end_at, row.released_at),
        funding=row.funding,
        at_end=row.at_end,
        run_over_minutes=row.run_over_minutes,
        wanted_generation=row.wanted_generation,
    )


def _held(rows: Iterable[tuple[str, bool, str, bool, object]]) -> Held:
    """From (node, is_spare, rack, is_pseudo, released_at) rows, each node once."""
    seen = {name: (is_spare, rack, is_pseudo) for name, is_spare, rack, is_pseudo, _ in rows}
    return Held(
        racks=tuple(sorted({rack for _, rack, is_pseudo in seen.values() if not is_pseudo})),
        nodes=tuple(seen),
        spares=tuple(name for name, (is_spare, _, _) in seen.items() if is_spare),
    )
