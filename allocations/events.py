"""How is a past fact written down? record(), and the registry of verbs that may be recorded."""

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from allocations.models import Cluster, Event, Team, User

VERBS: frozenset[str] = frozenset(
    {
        "allocation.granted",
        "allocation.revoked",
        "approval_policy.set",
        "cluster.connected",
        "cluster.frozen",
        "cluster.unfrozen",
        "cluster.mode_set",
        "fleet.imported",
        "node.condition_changed",
        "person.added",
        "person.invited",
        "person.signed_in",
        "person.signed_out",
        "person.sign_in_failed",
        "person.password_changed",
        "deed.refused",
        "push.applied",
        "push.drift_found",
        "push.failed",
        "push.verified",
        "push.waiting",
        "reservation.approved",
        "reservation.cancelled",
        "reservation.decided",
        "reservation.lapsed",
        "reservation.rejected",
        "reservation.requested",
        "reservation.withdrawn",
        "reservation_policy.set",
        "role.granted",
        "role.ended",
        "team.added",
        "team.changed",
        "team.member_added",
        "team.member_ended",
        "tier.set",
    }
)

request_id: ContextVar[str] = ContextVar("request_id", default="")


def record(
    verb: str,
    *,
    subject: tuple[str, str],
    actor: User | None,
    at: datetime,
    team: Team | None = None,
    cluster: Cluster | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    sentence: str = "",
) -> Event:
    """Append one event in the caller's transaction. `subject` is (kind, public id): ("reservation", "R-131").

    `actor` is None only for what time or a cluster did. Raises LookupError for a verb that is not in VERBS.
    """
    if verb not in VERBS:
        raise LookupError(f"no such event verb: {verb}")
    return Event.objects.create(
        verb=verb,
        subject_kind=subject[0],
        subject_id=subject[1],
        actor=actor,
        at=at,
        team=team,
        cluster=cluster,
        before=dict(before) if before is not None else None,
        after=dict(after) if after is not None else None,
        sentence=sentence[:1000],
        request_id=request_id.get()[:64],
    )
