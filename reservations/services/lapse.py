"""Which asks ran out undecided? (a hold that expired, or a period that is over, gives its nodes back)"""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from allocations.models import Cluster, User
from allocations.services import approvals
from allocations.services.counters import bump, lock_cluster
from reservations.models import Reservation
from reservations.services import holds
from reservations.services.deeds import check, told
from reservations.states import OPEN


def lapse_expired(*, cluster: Cluster, at: datetime, actor: User | None = None) -> list[Reservation]:
    """Lapse every open ask of the cluster whose hold or period has run out at `at`; those that were."""
    with transaction.atomic():
        return lapse_locked(cluster=lock_cluster(cluster), at=at, actor=actor)


def lapse_all(*, at: datetime) -> list[Reservation]:
    """The same on every cluster that has such an ask, one transaction each."""
    clusters = Cluster.objects.filter(pk__in=Reservation.objects.filter(_expired(at)).values("cluster"))
    return [lapsed for cluster in clusters.order_by("pk") for lapsed in lapse_expired(cluster=cluster, at=at)]


def lapse_locked(*, cluster: Cluster, at: datetime, actor: User | None) -> list[Reservation]:
    """lapse_expired() for a caller that holds the cluster's lock already, in its transaction."""
    expired = list(
        Reservation.objects.select_for_update(of=("self",))
        .filter(_expired(at), cluster=cluster)
        .select_related("team", "flavor", "approval_case")
        .order_by("pk")
    )
    for reservation in expired:
        result = check(reservation, "lapse")
        before = {"decision": str(reservation.decision)}
        holds.release(reservation, at)
        reservation.cluster = cluster
        reservation.decision, reservation.hold_expires_at = result, None
        reservation.version += 1
        reservation.save(update_fields=("decision", "hold_expires_at", "version"))
        if reservation.approval_case is not None:
            approvals.close_case(case=reservation.approval_case, at=at, actor=actor)
        sentence = "Nobody decided in time; its nodes are free."
        told("reservation.lapsed", reservation, actor=actor, at=at, before=before, sentence=sentence)
    if expired:
        bump(cluster, snapshot=True)
    return expired


def _expired(at: datetime) -> Q:
    """Open asks whose hold or period has run out."""
    return Q(decision__in=OPEN) & (Q(hold_expires_at__lte=at) | Q(end_at__lte=at))
