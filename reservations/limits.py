"""May this much be reserved? (the rules against hoarding, each refusal with its number)"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from django.db.models import Q

from allocations.errors import Fault
from allocations.models import Allocation, Flavor, Team
from reservations.models import Reservation, ReservationPolicy
from reservations.moments import minute_until, moment_of
from reservations.snapshot import holding
from reservations.states import OPEN
from scheduling.periods import peak
from scheduling.snapshot import RESERVATION, FleetSnapshot
from scheduling.spec import ReservationSpec


class TeamHold(NamedTuple):
    """One reservation of the team that holds nodes of the flavor; [start_at, end_at) as released."""

    id: int
    decision: str
    start_at: datetime
    end_at: datetime
    racks: int


@dataclass(frozen=True)
class Window:
    """The spec as it is searched: its window cut to what lead time and horizon allow, with the faults of the cut."""

    spec: ReservationSpec
    faults: tuple[Fault, ...]


def policies_for(flavor: Flavor, allocation: Allocation | None = None) -> list[ReservationPolicy]:
    """The policies in force for the flavor and the allocation's tier; all of them bind."""
    tier = allocation.tier_id if allocation is not None else None
    return list(
        ReservationPolicy.objects.filter(retired_at=None)
        .filter(Q(flavor=None) | Q(flavor=flavor), Q(tier=None) | Q(tier=tier))
        .order_by("name")
    )


def window(spec: ReservationSpec, policies: Iterable[ReservationPolicy], at: datetime) -> Window:
    """Cut the window to the strictest lead time and horizon, and refuse what is too long for any."""
    policies = list(policies)
    faults = []
    for policy in policies:
        if policy.max_duration_minutes is not None and spec.duration_minutes > policy.max_duration_minutes:
            faults.append(_too_long(policy, spec.duration_minutes))
    now = minute_until(at)
    lead = max((policy.lead_minutes for policy in policies), default=0)
    horizon = now + min((policy.horizon_days for policy in policies), default=400) * 1440
    earliest = max(now + lead, spec.earliest_start_minute or 0)
    latest = horizon if spec.latest_end_minute is None else min(spec.latest_end_minute, horizon)
    needed = earliest + spec.duration_minutes
    asked_room = (spec.latest_end_minute or needed) - max(now, spec.earliest_start_minute or 0)
    if latest < needed and asked_room >= spec.duration_minutes:
        if latest == horizon:
            sentence = f"Reservations may end until {moment_of(horizon):%a %d %b %Y %H:%M} UTC; this would end later."
        else:
            sentence = f"A reservation is asked for {lead:,} minutes ahead; in this window only less notice is left."
        faults.append(_fault("/spec/latest_end_at", sentence, needed - latest, "minutes"))
        return Window(spec, tuple(faults))
    if latest < needed:  # too short in itself: the planner says so
        return Window(spec, tuple(faults))
    return Window(replace(spec, earliest_start_minute=earliest, latest_end_minute=latest), tuple(faults))


def period_faults(
    policies: Iterable[ReservationPolicy], start_minute: int, end_minute: int, at: datetime
) -> tuple[Fault, ...]:
    """What the policies of the allocation that pays refuse about a period: notice, horizon, length."""
    now, length = minute_until(at), end_minute - start_minute
    faults = []
    for policy in policies:
        if start_minute - now < policy.lead_minutes:
            sentence = (
                f"{policy.name} wants {policy.lead_minutes:,} minutes' notice; this starts in {start_minute - now:,}."
            )
            missing = policy.lead_minutes - (start_minute - now)
            faults.append(_fault("/spec/earliest_start_at", sentence, missing, "minutes"))
        if end_minute > (latest := now + policy.horizon_days * 1440):
            sentence = (
                f"{policy.name} lets reservations end until {moment_of(latest):%a %d %b %Y %H:%M} UTC; this ends later."
            )
            faults.append(_fault("/spec/latest_end_at", sentence, end_minute - latest, "minutes"))
        if policy.max_duration_minutes is not None and length > policy.max_duration_minutes:
            faults.append(_too_long(policy, length))
    return tuple(faults)


def _too_long(policy: ReservationPolicy, length: int) -> Fault:
    longest = policy.max_duration_minutes or 0
    sentence = f"{length:,} minutes are more than the {longest:,} that {policy.name} allows."
    return _fault("/spec/duration_minutes", sentence, length - longest, "minutes")


def limit_faults(
    *,
    team: Team,
    flavor: Flavor,
    policies: Iterable[ReservationPolicy],
    snapshot: FleetSnapshot,
    nodes: Iterable[str],
    start_minute: int,
    end_minute: int,
    at: datetime,
    without: int | None = None,
) -> tuple[Fault, ...]:
    """What the policies refuse about a placement. `snapshot` must not hold the reservation itself."""
    policies = list(policies)
    if not policies:
        return ()
    others = _holds_of(team, flavor, at, without)
    mine = frozenset(f"R-{hold.id}" for hold in others)
    racks = {rack for node in nodes if (rack := snapshot.topology.rack_of(node)) is not None}
    healthy = _healthy_racks(snapshot, flavor.name)
    everyone = _most_racks(snapshot, flavor.name, racks, start_minute, end_minute, None)
    ours = _most_racks(snapshot, flavor.name, racks, start_minute, end_minute, mine)
    faults: list[Fault] = []
    for policy in policies:
        faults += _shares(policy, team, healthy, everyone, ours)
        faults += _counts(policy, team, others, moment_of(start_minute), moment_of(end_minute), at)
        faults += _rack_hours(policy, team, others, len(racks), start_minute, end_minute, at)
    return tuple(dict.fromkeys(faults))


def _fault(pointer: str, sentence: str, missing: float, unit: str) -> Fault:
    return Fault(pointer, "policy_limit", sentence, missing=missing, unit=unit)


def _holds_of(team: Team, flavor: Flavor, at: datetime, without: int | None) -> list[TeamHold]:
    """What the team holds of the flavor from `at` on."""
    rows = Reservation.objects.filter(holding(flavor.cluster, at), team=team, flavor=flavor).values_list(
        "id", "decision", "start_at", "end_at", "released_at", "mask_racks"
    )
    return [
        TeamHold(pk, decision, start, end if released is None else min(end, released), len(set(racks)))
        for pk, decision, start, end, released, racks in rows
        if pk != without
    ]


def _shares(policy: ReservationPolicy, team: Team, healthy: int, everyone: int, ours: int) -> Iterator[Fault]:
    """The reservable share of healthy racks at any instant, for all and for one team; at least one rack."""
    for percent, used, whose in (
        (policy.reservable_share_percent, everyone, "reserved"),
        (policy.team_share_percent, ours, f"reserved by {team.path}"),
    ):
        if percent is None:
            continue
        most = max(1, healthy * percent // 100) if percent else 0
        if used > most:
            sentence = (
                f"At most {most} of {healthy} healthy racks ({percent} %) may be {whose} at any moment; "
                f"with this it would be {used}."
            )
            yield _fault("/spec/racks", sentence, used - most, "racks")


def _counts(
    policy: ReservationPolicy, team: Team, others: list[TeamHold], start_at: datetime, end_at: datetime, at: datetime
) -> Iterator[Fault]:
    """Open asks, reservations that have not started, and reservations active at one time."""
    waiting = sum(hold.decision in OPEN for hold in others)
    future = sum(hold.start_at > at for hold in others)
    together, _ = peak(((hold.start_at, hold.end_at, 1) for hold in others), start_at, end_at)
    for limit, count, word in (
        (policy.open_asks_per_team, waiting, "open ask"),
        (policy.future_count, future if start_at > at else None, "reservation ahead"),
        (policy.active_count, together, "reservation at one time"),
    ):
        if limit is not None and count is not None and count >= limit:
            plural = word if limit == 1 else word.replace("ask", "asks").replace("reservation", "reservations")
            sentence = f"{team.path} may have {limit} {plural}; it has {count}."
            yield _fault("/team", sentence, count + 1 - limit, "reservations")


def _rack_hours(
    policy: ReservationPolicy, team: Team, others: list[TeamHold], racks: int, start: int, end: int, at: datetime
) -> Iterator[Fault]:
    """Rack-hours that the team holds from now on."""
    if policy.rack_hours_ahead is None:
        return
    hour = timedelta(hours=1)
    held = sum(hold.racks * ((hold.end_at - max(hold.start_at, at)) / hour) for hold in others)
    asked = racks * (end - start) / 60
    most = policy.rack_hours_ahead
    if held + asked > most:
        sentence = f"{team.path} may hold {most:,} rack-hours ahead; it holds {held:,.0f} and this takes {asked:,.0f}."
        yield _fault("/spec/racks", sentence, round(held + asked - most, 2), "rack_hours")


def _healthy_racks(snapshot: FleetSnapshot, flavor: str) -> int:
    """Racks of the flavor that are here now, with NVLink not broken and at least one node that can be placed."""
    topology, now = snapshot.topology, snapshot.now_minute
    free = topology.full & ~snapshot.unhealthy
    alive = set(topology.word_rack[np.flatnonzero(free)].tolist())
    return sum(
        number in alive
        and rack.flavor == flavor
        and rack.nvlink != "broken"
        and (rack.from_minute is None or rack.from_minute <= now)
        and (rack.until_minute is None or rack.until_minute > now)
        for number, rack in enumerate(topology.racks)
    )


def _most_racks(
    snapshot: FleetSnapshot, flavor: str, asked: set[int], start: int, end: int, only: frozenset[str] | None
) -> int:
    """The most racks of the flavor that are reserved at one instant of [start, end), the asked ones included.

    `only` counts the reservations of those ids and no others. Reservations change at starts alone for the worse.
    """
    topology = snapshot.topology
    spans: list[tuple[int, int, set[int]]] = []
    rows = np.flatnonzero((snapshot.kind == RESERVATION) & (snapshot.start < end) & (snapshot.end > start))
    for row in rows.tolist():
        busy = snapshot.subjects[int(snapshot.subject[row])]
        if only is not None and busy.id not in only:
            continue
        words = snapshot.entry_word[int(snapshot.first_entry[row]) : int(snapshot.first_entry[row + 1])]
        racks = {rack for rack in topology.word_rack[words].tolist() if topology.racks[rack].flavor == flavor}
        spans.append((int(snapshot.start[row]), int(snapshot.end[row]), racks))
    instants = {start} | {begin for begin, _, _ in spans if begin > start}
    return max(
        len(asked.union(*(racks for begin, finish, racks in spans if begin <= instant < finish)))
        for instant in instants
    )
