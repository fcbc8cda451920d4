"""Which reservations may this person see? (conditions that say in SQL what permissions.can says of one)"""

from django.db.models import Q, QuerySet

from allocations.errors import NotFound
from allocations.models import User
from allocations.permissions import Rights, below, rights
from allocations.public_ids import number_of
from reservations.models import Reservation

EVERY = ~Q(pk__in=())  # not Q(): an empty condition vanishes when it is joined by "or"


def visible_reservations(user: User) -> QuerySet[Reservation]:
    """Reservations that the person may open, newest first, with team, cluster, flavor and author loaded."""
    rows = Reservation.objects.select_related(
        "team", "cluster", "flavor", "created_by", "allocation", "approval_case__policy"
    )
    if not user.is_active:
        return rows.none()
    held = rights(user)
    if held.reads_everything:
        return rows
    return rows.filter(mine(held) | _in_scope(held, "operator") | _in_scope(held, "approver"))


def get_reservation(user: User, public_id: str) -> Reservation:
    """The reservation R-n. Raises NotFound when there is none or the person may not see it."""
    found = visible_reservations(user).filter(pk=number_of(public_id, "R")).first()
    if found is None:
        raise NotFound()
    return found


def mine(held: Rights) -> Q:
    """Reservations of teams the person belongs to, and of all teams below them."""
    return below(held.member_paths | held.lead_paths, "team__path")


def led_by(held: Rights) -> Q:
    """Reservations of teams in whose name the person may answer."""
    return below(held.lead_paths, "team__path")


def decidable(held: Rights) -> Q:
    """Reservations on which the person might have a say: a role where they lie, or the lead of their team."""
    return _in_scope(held, "approver") | _in_scope(held, "operator") | led_by(held)


def _in_scope(held: Rights, role: str) -> Q:
    """Reservations within the scopes on which the role was granted."""
    condition = Q(pk__in=())
    for granted, path, cluster in held.grants:
        if granted != role:
            continue
        if path is None and cluster is None:
            return EVERY
        condition |= below({path}, "team__path") if path is not None else Q(cluster=cluster)
    return condition
