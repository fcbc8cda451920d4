"""The first page: what needs me, what is coming, and what do we have?"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.views.decorators.http import require_safe

from allocations.models import Allocation, Cluster, Team, User
from allocations.permissions import can, rights
from allocations.queries import allocations_in_force
from console.models import ClusterEndpoint
from console.web import phrases
from console.web.access import page
from console.web.layout import sign
from console.web.push_state import OnCluster, on_cluster_signs
from console.web.request import PersonRequest
from console.web.signs import decision_sign, phase_sign
from reservations import queries
from reservations.budget import left_of, lineage, node_count
from reservations.models import Reservation
from reservations.states import HOLDING

MOST_ROWS = 8
_ENDPOINT_SIGNS = {
    "verified": ("tick", "in step"),
    "idle": ("ring", "not read yet"),
    "pending": ("half", "pending"),
    "applying": ("disc", "applying"),
    "converging": ("disc", "converging"),
    "waiting": ("triangle", "plan waits"),
    "drifted": ("triangle", "drift"),
    "failed": ("cross", "failed"),
    "unreachable": ("cross", "unreachable"),
}


@page("account.use")
@require_safe
def home(request: PersonRequest) -> HttpResponse:
    """The first page of whoever is signed in."""
    user, at = request.user, timezone.now()
    held = rights(user)
    belongs = bool(held.member_paths | held.lead_paths)
    mine = queries.mine(user, at)
    signs = on_cluster_signs([*mine.active, *mine.scheduled, *mine.asks, *mine.recent[:MOST_ROWS]], at)
    needs = [*_to_decide(user, at), *_own_troubles(mine, signs, user, at)]
    coming = [*mine.active, *mine.scheduled]
    operates = held.has_anywhere("operator") or held.reads_everything
    context = {
        "now": at,
        "greeting": f"{_greeting(at)}, {user.get_short_name()}",
        "sentence": _sentence(needs, coming, belongs),
        "needs": needs,
        "belongs": belongs,
        "coming": _rows(coming[:MOST_ROWS], signs, at),
        "more_coming": max(0, len(coming) - MOST_ROWS),
        "columns": [{"label": label} for label in ("Reservation", "Where", "When", "State", "On the cluster")],
        "requests": _rows([*mine.asks, *mine.recent][:MOST_ROWS], signs, at),
        "gauges": _gauges(user, at) if belongs else [],
        "clusters": _clusters(user) if operates or not belongs else [],
        "team_names": ", ".join(sorted(held.lead_paths | held.member_paths)),
    }
    return render(request, "home.html", context)


def _greeting(at: datetime) -> str:
    hour = timezone.localtime(at).hour
    return "Good morning" if 4 <= hour < 12 else "Good afternoon" if hour < 18 and hour >= 12 else "Good evening"


def _sentence(needs: Sequence[Any], coming: Sequence[Reservation], belongs: bool) -> str:
    """The sentence that answers the page: what needs me, and what is there."""
    first = (
        f"{phrases.amount(len(needs), 'thing')} need{'s' if len(needs) == 1 else ''} you"
        if needs
        else "Nothing needs you"
    )
    if not belongs:
        return f"{first}."
    return f"{first}; {phrases.amount(len(coming), 'reservation')} of your teams run or come up."


def _to_decide(user: User, at: datetime) -> list[dict[str, Any]]:
    """Asks that wait for this person's decision."""
    if not can(user, "inbox.read"):
        return []
    found = queries.inbox(user, at)
    racks = queries.racks_by_reservation([item.reservation for item in found.to_decide])
    return [
        {
            "shape": "triangle",
            "word": "asks",
            "reservation": item.reservation,
            "sentence": f"{item.reservation.created_by.name} asks {phrases.racks(len(racks[item.reservation.pk]))} of "
            f"{item.reservation.cluster.name} for {item.reservation.team.path}.",
            "until_at": item.reservation.hold_expires_at,
            "url": reverse("inbox"),
            "label": "Decide",
        }
        for item in found.to_decide
    ]


def _own_troubles(mine: queries.Mine, signs: Mapping[int, OnCluster], user: User, at: datetime) -> list[dict[str, Any]]:
    """What a lead must look at: counter-offers, and reservations that are not on their cluster as approved."""
    troubles = []
    for each in mine.asks:
        if each.decision == "counter_offered" and rights(user).leads(each.team):
            sentence = "The approver offers something else. Answer it, or the racks go back."
            troubles.append(_trouble(each, "triangle", "counter-offer", sentence, each.hold_expires_at))
    for each in (*mine.active, *mine.scheduled):
        standing = signs[each.pk]
        if standing.state in ("drifted", "failed", "unreachable", "waiting"):
            troubles.append(_trouble(each, standing.shape, standing.word, standing.sentence, None))
    return troubles


def _trouble(
    reservation: Reservation, shape: str, word: str, sentence: str, until_at: datetime | None
) -> dict[str, Any]:
    return {
        "shape": shape,
        "word": word,
        "reservation": reservation,
        "sentence": sentence,
        "until_at": until_at,
        "url": reverse("reservation", args=[reservation.public_id]),
        "label": "See",
    }


def _rows(rows: Sequence[Reservation], signs: Mapping[int, OnCluster], at: datetime) -> list[dict[str, Any]]:
    """Rows for components/data_table.html: what, where, when and the three signs in short."""
    zone, racks = timezone.get_current_timezone(), queries.racks_by_reservation(rows)
    made = []
    for row in rows:
        decision, phase, standing = decision_sign(row, at), phase_sign(row, at), signs[row.pk]
        length = phrases.duration_words(row.end_at - row.start_at)
        when = (
            f"now, {phrases.duration_words(row.end_at - at)} left"
            if phase.word == "active"
            else f"{phrases.moment(row.start_at, zone, at)}, {length}"
        )
        size = phrases.racks(len(racks[row.pk])) if racks[row.pk] else "nodes"
        state = phase if row.decision == "approved" else decision
        made.append(
            {
                "url": reverse("reservation", args=[row.public_id]),
                "cells": [
                    f"{row.public_id} {Truncator(row.purpose).chars(34)}",
                    _whole(f"{row.cluster.name}, {size}"),
                    _whole(when),
                    sign(state.shape, state.word),
                    sign(standing.shape, standing.word, standing.sentence),
                ],
            }
        )
    return made


def _whole(words: str) -> SafeString:
    """Words that stay on one line."""
    return format_html('<span class="nowrap">{}</span>', words)


def _gauges(user: User, at: datetime) -> list[dict[str, Any]]:
    """What the person's teams may use: GPUs reserved now and GPU-hours gone, per allocation."""
    held = rights(user)
    paths = held.member_paths | held.lead_paths
    teams = list(Team.objects.filter(path__in={path for own in paths for path in lineage(Team(path=own))}))
    rows = list(allocations_in_force(teams, at))
    left, reserved = left_of(rows, at), _reserved_gpus(rows, at)
    zone = timezone.get_current_timezone()
    gauges = []
    for each in rows:
        where = f"{each.flavor.name} on {each.flavor.cluster.name}" if each.flavor else str(each.gpu_model)
        gauges.append(_gpus_gauge(each, where, *reserved[each.pk]))
        rest = left[each.pk]
        if each.gpu_hours:
            spent = each.gpu_hours - (rest or 0)
            until = timezone.localtime(each.end_at, zone)
            gauges.append(
                {
                    "label": f"GPU-hours to {until.day} {until:%b %Y}",
                    "value": f"{round(spent):,} of {round(each.gpu_hours):,}",
                    "parts": [("used", min(100.0, 100.0 * float(spent / each.gpu_hours)))],
                    "note": f"{round(rest or 0):,} left on {where}; open asks are set aside",
                    "warning": "nothing is left" if (rest or 0) <= 0 else "",
                }
            )
    return gauges


def _gpus_gauge(allocation: Allocation, where: str, firm: int, provisional: int) -> dict[str, Any]:
    """GPUs that reservations hold now, of the guarantee."""
    whole = allocation.guaranteed_gpus
    total = max(whole, firm + provisional, 1)
    borrow = allocation.borrowing_limit_gpus
    may = "no borrowing" if borrow == 0 else f"may borrow {'without limit' if borrow is None else f'{borrow:,} more'}"
    return {
        "label": where,
        "value": f"{firm + provisional:,} of {whole:,} GPUs"
        if whole
        else f"{phrases.gpus(firm + provisional)}, no guarantee",
        "parts": [("used", 100.0 * firm / total), ("held", 100.0 * provisional / total)],
        "note": f"{firm:,} reserved now, {provisional:,} held · {may} · {allocation.team.path}",
        "warning": "",
    }


def _reserved_gpus(allocations: Iterable[Allocation], at: datetime) -> dict[int, tuple[int, int]]:
    """GPUs held at this moment by allocation: (firm, provisional)."""
    firm: dict[int, int] = defaultdict(int)
    provisional: dict[int, int] = defaultdict(int)
    ids = [each.pk for each in allocations]
    rows = (
        Reservation.objects.filter(allocation__in=ids, decision__in=HOLDING, start_at__lte=at, end_at__gt=at)
        .filter(Q(released_at=None) | Q(released_at__gt=at))
        .exclude(decision__in=("requested", "counter_offered"), hold_expires_at__lte=at)
        .values_list("allocation_id", "decision", "mask_bits", "flavor__gpus_per_node")
    )
    for allocation, decision, bits, per_node in rows:
        (firm if decision == "approved" else provisional)[allocation] += node_count(bits) * per_node
    return {pk: (firm[pk], provisional[pk]) for pk in ids}


def _clusters(user: User) -> list[dict[str, Any]]:
    """Every cluster with where its push stands; two queries."""
    endpoints = {each.cluster_id: each for each in ClusterEndpoint.objects.all()}
    shown = []
    for cluster in Cluster.objects.order_by("name"):
        endpoint = endpoints.get(cluster.pk)
        shape, word = _ENDPOINT_SIGNS[endpoint.state] if endpoint else ("ring", "not connected")
        if cluster.frozen_at is not None:
            shape, word = "triangle", "frozen"
        sentence = endpoint.sentence if endpoint and queries.knows_names(user, cluster) else ""
        shown.append({"cluster": cluster, "shape": shape, "word": word, "sentence": sentence})
    return shown
