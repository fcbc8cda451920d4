"""How is it said whether a reservation is on its cluster? (the third sign: shapes, words and sentences)

The decision is console.push.standing's; Berth never says a thing is there before it was read back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal

from django.utils import timezone

from allocations.models import Cluster
from console.push import standing
from console.push.standing import Standing
from console.web import phrases
from reservations.models import Reservation
from reservations.states import OPEN

State = Literal[standing.State, "gone", "over"]
_AT_WORK = frozenset({"pending", "applying", "converging", "waiting", "failed", "unreachable", "drifted"})

_SOON_SECONDS, _ASKED_SECONDS, _LONGEST_SECONDS = 3, 15, 300


@dataclass(frozen=True)
class OnCluster:
    """The third sign: `state`, its shape and word, one sentence, and when it was last read back."""

    state: State
    shape: str
    word: str
    sentence: str
    verified_at: datetime | None = None


def on_cluster_signs(reservations: Sequence[Reservation], at: datetime) -> Mapping[int, OnCluster]:
    """The third sign of each, by reservation id; two queries for all of them. Their clusters must be loaded."""
    zone = timezone.get_current_timezone()
    found = standing.standings(reservations, at)
    return {each.pk: on_cluster(each, found[each.pk], at, zone) for each in reservations}


def needs_look(sign: OnCluster) -> bool:
    """May this change within seconds, so that the page should look again by itself?"""
    return sign.state in _AT_WORK


def next_look_seconds(sign: OnCluster, reservation: Reservation, at: datetime) -> int:
    """After how many seconds should the page look again? 0: nothing is expected to change by itself.

    While something moves it looks every few seconds; an open ask may be decided by others; a cluster without a
    calendar changes at the start that is waited for; what ends is looked for until it is proved gone.
    """
    if needs_look(sign):
        return _SOON_SECONDS
    if reservation.decision in OPEN:
        return _ASKED_SECONDS
    until_start = (reservation.start_at - at).total_seconds()
    if sign.state == "not_due" and until_start >= 0:
        return min(int(until_start) + 1, _LONGEST_SECONDS)
    ended_at = reservation.released_at or reservation.end_at
    since_end = (at - ended_at).total_seconds()
    if -_LONGEST_SECONDS <= since_end < 0:
        return int(-since_end) + 1
    if since_end < _LONGEST_SECONDS and sign.verified_at is not None and sign.verified_at < ended_at <= at:
        return _SOON_SECONDS
    return 0


def on_cluster(reservation: Reservation, stands: Standing, at: datetime, zone: tzinfo) -> OnCluster:
    """The third sign of one reservation."""
    cluster, endpoint = reservation.cluster, stands.endpoint
    expires_at = reservation.hold_expires_at
    is_open = reservation.decision in OPEN and (expires_at is None or expires_at > at)
    if is_open or reservation.decision == "draft":
        return OnCluster("not_due", "ring", "not yet", f"{cluster.name} hears of it when it is approved.")
    if reservation.wanted_generation == 0:
        return OnCluster("over", "ring", "never there", f"It was never on {cluster.name}.")
    if endpoint is None:
        sentence = f"{cluster.name} has no endpoint: an operator connects it."
        return OnCluster("waiting", "triangle", "not connected", sentence)
    verified_at = endpoint.verified_at
    if stands.state == "unreachable":
        since = f" Last verified {phrases.moment(verified_at, zone)}." if verified_at else ""
        sentence = f"{endpoint.sentence or f'{cluster.name} does not answer.'} It is pushed when it answers.{since}"
        return OnCluster("unreachable", "cross", "unreachable", sentence, verified_at)
    if stands.is_on_its_way:
        return _on_its_way(cluster, stands, verified_at)
    if not stands.is_wanted:
        return _taken_away(reservation, cluster, stands, verified_at, zone)
    return _there(reservation, cluster, stands, verified_at, zone)


def _on_its_way(cluster: Cluster, stands: Standing, verified_at: datetime | None) -> OnCluster:
    """The last change is not on the cluster yet: what the push is doing about it."""
    endpoint_state = stands.endpoint.state if stands.endpoint else ""
    kinds: Mapping[str, tuple[str, str]] = {
        "applying": ("disc", "applying"),
        "converging": ("disc", "converging"),
        "waiting": ("triangle", "plan waits"),
        "failed": ("cross", "failed"),
        "drifted": ("triangle", "only observed"),
    }
    shown = kinds.get(endpoint_state)
    if shown is None and stands.state == "waiting":
        sentence = f"{cluster.name} is frozen: nothing is written there."
        return OnCluster("waiting", "triangle", "frozen", sentence, verified_at)
    if shown is None:
        deed = "show it" if stands.is_wanted else "let it go"
        return OnCluster("pending", "half", "pending", f"{cluster.name} will {deed} within a minute.", verified_at)
    told = stands.endpoint.sentence if stands.endpoint else ""
    if cluster.disclosure == Cluster.Disclosure.BARE:
        told = ""  # what the push says may name what belongs to others
    return OnCluster(stands.state, *shown, told or f"{cluster.name} is being written to.", verified_at)


def _there(
    reservation: Reservation, cluster: Cluster, stands: Standing, verified_at: datetime | None, zone: tzinfo
) -> OnCluster:
    """It should be there: did the last look find it so?"""
    if stands.state == "drifted":
        differing = stands.differing
        what = ", ".join(f"{each.object_class} {each.name} {each.state.replace('_', ' ')}" for each in differing[:3])
        count = phrases.amount(len(differing), "object")
        sentence = f"Differs on {cluster.name} since {phrases.moment(differing[0].since_at, zone)}: {what}."
        return OnCluster("drifted", "triangle", f"drift, {count}", sentence, verified_at)
    if stands.state == "not_due":
        start = phrases.moment(reservation.start_at, zone)
        sentence = (
            f"{cluster.name} has no calendar: it gets this at the start, and until then Berth keeps the nodes free."
        )
        return OnCluster("not_due", "half", f"not due until {start}", sentence, verified_at)
    read_at = stands.verified_at
    word = f"verified {_clock(read_at, zone)}" if read_at else "verified"
    return OnCluster("verified", "tick", word, f"On {cluster.name}, read back and equal.", read_at)


def _taken_away(
    reservation: Reservation, cluster: Cluster, stands: Standing, verified_at: datetime | None, zone: tzinfo
) -> OnCluster:
    """It should be gone: is it?"""
    if stands.objects:
        sentence = f"{cluster.name} still shows it; it goes within a minute."
        return OnCluster("pending", "half", "going", sentence, verified_at)
    ended_at = reservation.released_at or reservation.end_at
    if verified_at is None or verified_at < ended_at:
        return OnCluster("over", "ring", "over", f"It ended on {phrases.moment(ended_at, zone)}.", verified_at)
    if stands.phase == "over":
        return OnCluster("over", "ring", "gone", f"Gone from {cluster.name}.", verified_at)
    word = f"gone, verified {_clock(verified_at, zone)}"
    return OnCluster("gone", "tick", word, f"Gone from {cluster.name}, read back.", verified_at)


def _clock(at: datetime, zone: tzinfo) -> str:
    """ "12:03" for the sign; its full moment stands in the sentence beside it."""
    return f"{at.astimezone(zone):%H:%M}"
