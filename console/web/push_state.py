"""Is a reservation on its cluster? (the third sign: from generations, the endpoint, and what was read back)

Berth never says a thing is there before it was read back: "verified" needs the cluster's applied generation to have
reached the one that carries the reservation's last change, and nothing of its own to differ since.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal

from django.db.models import Q
from django.utils import timezone

from allocations.models import Cluster
from console.models import ClusterEndpoint, ObservedObject
from console.web import phrases
from reservations import states
from reservations.models import Reservation
from reservations.states import OPEN

State = Literal[
    "not_due",
    "pending",
    "applying",
    "converging",
    "verified",
    "waiting",
    "drifted",
    "failed",
    "unreachable",
    "gone",
    "over",
]
_AT_WORK = frozenset({"pending", "applying", "converging", "waiting", "failed", "unreachable", "drifted"})
_NO_CALENDAR = frozenset({Cluster.Kind.KUEUE, Cluster.Kind.VOLCANO, Cluster.Kind.KAI, Cluster.Kind.YUNIKORN})


@dataclass(frozen=True)
class OnCluster:
    """The third sign: `state`, its shape and word, one sentence, and when it was last read back."""

    state: State
    shape: str
    word: str
    sentence: str
    verified_at: datetime | None = None

    @property
    def is_settled(self) -> bool:
        """Nothing more is expected to change by itself within seconds."""
        return self.state in ("verified", "not_due", "gone", "over")


def names_on_cluster(reservation: Reservation) -> tuple[str, str]:
    """What its objects are called: `berth-R-131` on Slurm, `rsv-r-131` on Kueue (there also NAMESPACE/rsv-r-131)."""
    return reservation.name_on_cluster, f"rsv-{reservation.public_id.lower()}"


def objects_of(reservations: Iterable[Reservation], cluster: str = "cluster") -> Q:
    """A condition on rows that name native objects of these reservations; `cluster` is the row's way to its cluster."""
    condition = Q(pk__in=())
    for each in reservations:
        plain, dns = names_on_cluster(each)
        named = Q(name__in=(plain, dns)) | Q(name__endswith=f"/{dns}")
        condition |= named & Q(**{cluster: each.cluster_id})
    return condition


def on_cluster_signs(reservations: Sequence[Reservation], at: datetime) -> Mapping[int, OnCluster]:
    """The third sign of each, by reservation id; two queries for all of them. Their clusters must be loaded."""
    endpoints = {
        each.cluster_id: each
        for each in ClusterEndpoint.objects.filter(cluster__in={each.cluster_id for each in reservations})
    }
    pushed = [each for each in reservations if each.wanted_generation > 0]
    found = ObservedObject.objects.filter(objects_of(pushed)) if pushed else ()
    seen: dict[tuple[int, str], list[ObservedObject]] = defaultdict(list)
    for row in found:
        seen[row.cluster_id, row.name.rpartition("/")[2]].append(row)
    zone = timezone.get_current_timezone()
    return {
        each.pk: on_cluster(
            each,
            endpoints.get(each.cluster_id),
            [row for name in names_on_cluster(each) for row in seen[each.cluster_id, name]],
            at,
            zone,
        )
        for each in reservations
    }


def on_cluster(
    reservation: Reservation,
    endpoint: ClusterEndpoint | None,
    objects: Sequence[ObservedObject],
    at: datetime,
    zone: tzinfo,
) -> OnCluster:
    """The third sign of one reservation, from its endpoint and the objects of its name as last read."""
    cluster = reservation.cluster
    expires_at = reservation.hold_expires_at
    is_open = reservation.decision in OPEN and (expires_at is None or expires_at > at)
    if is_open or reservation.decision == "draft":
        return OnCluster("not_due", "ring", "not yet", f"{cluster.name} hears of it when it is approved.")
    if reservation.wanted_generation == 0:
        return OnCluster("over", "ring", "never there", f"It was never on {cluster.name}.")
    if endpoint is None:
        return OnCluster(
            "waiting", "triangle", "not connected", f"{cluster.name} has no endpoint: an operator connects it."
        )
    verified_at = endpoint.verified_at
    since = f" Last verified {phrases.moment(verified_at, zone)}." if verified_at else ""
    if endpoint.state == ClusterEndpoint.State.UNREACHABLE:
        sentence = endpoint.sentence or f"{cluster.name} does not answer."
        return OnCluster(
            "unreachable", "cross", "unreachable", f"{sentence} It is pushed when it answers.{since}", verified_at
        )
    phase = states.phase(reservation.decision, reservation.start_at, reservation.end_at, reservation.released_at, at)
    is_wanted = phase in ("scheduled", "active")
    if reservation.wanted_generation > cluster.applied_generation:
        return _on_its_way(cluster, endpoint, is_wanted, verified_at)
    if not is_wanted:
        return _taken_away(reservation, cluster, objects, phase, verified_at, zone)
    return _there(reservation, cluster, objects, phase, verified_at, zone)


def _on_its_way(
    cluster: Cluster, endpoint: ClusterEndpoint, is_wanted: bool, verified_at: datetime | None
) -> OnCluster:
    """The last change is not on the cluster yet: what the push is doing about it."""
    kinds: Mapping[str, tuple[State, str, str]] = {
        "applying": ("applying", "disc", "applying"),
        "converging": ("converging", "disc", "converging"),
        "waiting": ("waiting", "triangle", "plan waits"),
        "failed": ("failed", "cross", "failed"),
        "drifted": ("waiting", "triangle", "only observed"),
    }
    shown = kinds.get(endpoint.state)
    if cluster.frozen_at is not None and shown is None:
        return OnCluster(
            "waiting", "triangle", "frozen", f"{cluster.name} is frozen: nothing is written there.", verified_at
        )
    if shown is None:
        deed = "show it" if is_wanted else "let it go"
        return OnCluster("pending", "half", "pending", f"{cluster.name} will {deed} within a minute.", verified_at)
    sentence = endpoint.sentence or f"{cluster.name} is being written to."
    return OnCluster(*shown, sentence, verified_at)


def _there(
    reservation: Reservation,
    cluster: Cluster,
    objects: Sequence[ObservedObject],
    phase: states.Phase | None,
    verified_at: datetime | None,
    zone: tzinfo,
) -> OnCluster:
    """It should be there: did the last look find it so?"""
    differing = [each for each in objects if each.state in ("drifted", "missing", "unwanted")]
    if differing:
        what = ", ".join(f"{each.object_class} {each.name} {each.state.replace('_', ' ')}" for each in differing[:3])
        count = phrases.amount(len(differing), "object")
        sentence = f"Differs on {cluster.name} since {phrases.moment(differing[0].since_at, zone)}: {what}."
        return OnCluster("drifted", "triangle", f"drift, {count}", sentence, verified_at)
    if phase == "scheduled" and cluster.kind in _NO_CALENDAR and not objects:
        start = phrases.moment(reservation.start_at, zone)
        sentence = (
            f"{cluster.name} has no calendar: it gets this at the start, and until then Berth keeps the nodes free."
        )
        return OnCluster("not_due", "half", f"not due until {start}", sentence, verified_at)
    read_at = max((each.observed_at for each in objects), default=verified_at)
    word = f"verified {_clock(read_at, zone)}" if read_at else "verified"
    sentence = f"On {cluster.name}, read back and equal."
    return OnCluster("verified", "tick", word, sentence, read_at)


def _taken_away(
    reservation: Reservation,
    cluster: Cluster,
    objects: Sequence[ObservedObject],
    phase: states.Phase | None,
    verified_at: datetime | None,
    zone: tzinfo,
) -> OnCluster:
    """It should be gone: is it?"""
    if objects:
        return OnCluster(
            "pending", "half", "going", f"{cluster.name} still shows it; it goes within a minute.", verified_at
        )
    ended_at = reservation.released_at or reservation.end_at
    if verified_at is None or verified_at < ended_at:
        return OnCluster("over", "ring", "over", f"It ended on {phrases.moment(ended_at, zone)}.", verified_at)
    if phase == "over":
        return OnCluster("over", "ring", "gone", f"Gone from {cluster.name}.", verified_at)
    return OnCluster(
        "gone",
        "tick",
        f"gone, verified {_clock(verified_at, zone)}",
        f"Gone from {cluster.name}, read back.",
        verified_at,
    )


def _clock(at: datetime, zone: tzinfo) -> str:
    """ "12:03" for the sign; its full moment stands in the sentence beside it."""
    return f"{at.astimezone(zone):%H:%M}"


def needs_look(sign: OnCluster) -> bool:
    """May this change within seconds, so that the page should look again by itself?"""
    return sign.state in _AT_WORK
