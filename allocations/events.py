"""How is a past fact written down? record(), and the registry of verbs that may be recorded."""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from allocations.models import Cluster, Event, Team, User

VERBS: frozenset[str] = frozenset(
    {
        "allocation.granted",
        "allocation.revoked",
        "approval.decided",
        "approval_case.opened",
        "approval_policy.set",
        "cluster.changed",
        "cluster.connected",
        "cluster.frozen",
        "cluster.unfrozen",
        "cluster.mode_set",
        "events.sealed",
        "fleet.imported",
        "jobs.observed",
        "node.condition_changed",
        "outage.cancelled",
        "outage.planned",
        "person.added",
        "person.changed",
        "person.joined",
        "person.invited",
        "person.signed_in",
        "person.signed_out",
        "person.sign_in_failed",
        "person.password_changed",
        "person.session_ended",
        "person.zone_set",
        "deed.refused",
        "push.agreed",
        "push.applied",
        "push.discarded",
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
        "token.created",
        "token.revoked",
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


def record_many(
    verb: str, *, actor: User | None, at: datetime, cluster: Cluster, rows: Iterable[tuple[str, str, dict[str, Any]]]
) -> int:
    """Append one event per row in one statement: (subject kind, subject id, {before, after, sentence}). Says how many.

    For what one reading of a cluster found about many nodes. Raises LookupError for a verb that is not in VERBS.
    """
    if verb not in VERBS:
        raise LookupError(f"no such event verb: {verb}")
    origin = request_id.get()[:64]
    events = [
        Event(
            verb=verb,
            subject_kind=kind,
            subject_id=name,
            actor=actor,
            at=at,
            cluster=cluster,
            request_id=origin,
            before=told.get("before"),
            after=told.get("after"),
            sentence=str(told.get("sentence", ""))[:1000],
        )
        for kind, name, told in rows
    ]
    Event.objects.bulk_create(events, batch_size=2000)
    return len(events)
