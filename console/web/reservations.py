"""The pages of reservations: which are there, and where does this one stand?"""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet, prefetch_related_objects
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import Truncator
from django.views.decorators.http import require_POST, require_safe

from allocations.errors import DomainError
from allocations.models import Cluster
from allocations.permissions import can, rights
from allocations.queries import events_of
from console import errors
from console.web import phrases
from console.web.access import page
from console.web.answers import in_zone
from console.web.asks import ask_deeds, cancel_effects, held_text, own_map, payer_line, withdraw_effects
from console.web.layout import sign
from console.web.push_state import next_look_seconds, on_cluster_signs
from console.web.pushed import pushed, usage
from console.web.request import PersonRequest, version_of
from console.web.signs import DECISIONS, EVENTS, PHASES, decision_sign, phase_of, phase_sign
from reservations import queries, visibility
from reservations.models import Reservation
from reservations.services import cancel as cancelling
from reservations.services import withdraw as withdrawing
from reservations.states import OPEN

PAGE_SIZE = 50
COLUMNS = ("Reservation", "Team", "Where", "When", "Decision", "Phase", "On the cluster")


@page("account.use")
@require_safe
def reservations(request: PersonRequest) -> HttpResponse:
    """Every reservation the person may see, newest first; the filters stand in the address."""
    at = timezone.now()
    asked = {name: request.GET.get(name, "") for name in ("whose", "cluster", "state", "q")}
    belongs = bool(rights(request.user).member_paths | rights(request.user).lead_paths)
    asked["whose"] = asked["whose"] or ("mine" if belongs else "all")
    shown = Paginator(_filtered(request, asked, at), PAGE_SIZE).get_page(request.GET.get("page"))
    rows = list(shown.object_list)
    context = {
        "now": at,
        "rows": _rows(rows, at),
        "columns": [{"label": label} for label in COLUMNS],
        "filters": _filters(asked, belongs),
        "asked": asked,
        "total": phrases.amount(shown.paginator.count, "reservation"),
        "previous_url": _page_url(asked, shown.previous_page_number()) if shown.has_previous() else "",
        "next_url": _page_url(asked, shown.next_page_number()) if shown.has_next() else "",
        "is_filtered": bool(asked["cluster"] or asked["state"] or asked["q"]),
    }
    return render(request, "reservations.html", context)


@page("reservation.read")
@require_safe
def reservation(request: PersonRequest, public_id: str) -> HttpResponse:
    """One reservation: its three signs, its facts, what was written for it, and what may be done."""
    found = queries.get_reservation(request.user, public_id)
    return render(request, "reservation.html", _context(request, found, timezone.now()))


@page("reservation.read")
@require_safe
def state(request: PersonRequest, public_id: str) -> HttpResponse:
    """The part that changes while the cluster is written to; the page asks for it again by itself."""
    found = queries.get_reservation(request.user, public_id)
    response = render(request, "reservation_state.html", _state(found, timezone.now()))
    if request.GET.get("version", str(found.version)) != str(found.version):
        response["HX-Refresh"] = "true"  # the reservation itself changed: the whole page tells of it
    return response


@page("reservation.withdraw")
@require_POST
def withdraw(request: PersonRequest, public_id: str) -> HttpResponse:
    """Take an ask back."""
    found = queries.get_reservation(request.user, public_id)
    try:
        withdrawing.withdraw(reservation=found, actor=request.user, at=timezone.now(), **_said(request))
    except DomainError as error:
        return _not_done(request, public_id, error)
    messages.success(request, f"{public_id} is withdrawn. The racks are free.")
    return redirect("reservation", public_id)


@page("reservation.cancel")
@require_POST
def cancel(request: PersonRequest, public_id: str) -> HttpResponse:
    """Take an approved reservation away."""
    found = queries.get_reservation(request.user, public_id)
    try:
        cancelling.cancel(reservation=found, actor=request.user, at=timezone.now(), **_said(request))
    except DomainError as error:
        return _not_done(request, public_id, error)
    messages.success(request, f"Cancelled. The racks are free; {found.cluster.name} will show it within a minute.")
    return redirect("reservation", public_id)


def _said(request: PersonRequest) -> dict[str, Any]:
    """Reason and version of a deed's form."""
    return {"reason": request.POST.get("reason", "")[:2000], "version": version_of(request)}


def _not_done(request: PersonRequest, public_id: str, error: DomainError) -> HttpResponse:
    """The page as it is now, with why the deed was refused; 403 is a page of its own."""
    status = errors.STATUS.get(error.code, 500)
    if status == 403:
        raise error
    found = queries.get_reservation(request.user, public_id)
    context = _context(request, found, timezone.now()) | {
        "refused": in_zone(error.sentence, timezone.get_current_timezone())
    }
    return render(request, "reservation.html", context, status=status)


def _context(request: PersonRequest, found: Reservation, at: datetime) -> dict[str, Any]:
    """Everything on a reservation's page."""
    user, standing = request.user, _state(found, at)
    held = queries.held_by(found)
    phase, is_open = phase_of(found, at), found.decision in OPEN
    blocks = own_map(found, held, user, at) if is_open or phase in ("scheduled", "active") else []
    return {
        **standing,
        "held": held,
        "held_text": held_text(found, held),
        "sentence": _sentence(found, held, at),
        "blocks": blocks,
        "usage": usage(found, at) if phase in ("scheduled", "active") else (),
        "usage_of": found.start_at if phase == "scheduled" else at,
        "payer": payer_line(found, held),
        "decisions": _decisions(found),
        "events": [_event(each) for each in events_of("reservation", found.public_id)[:50]],
        "decide": ask_deeds(found, held, user, at),
        "withdraw_effects": withdraw_effects(found, held)
        if is_open and can(user, "reservation.withdraw", found)
        else [],
        "cancel_effects": cancel_effects(found, held, at)
        if phase in ("scheduled", "active") and can(user, "reservation.cancel", found)
        else [],
    }


def _state(found: Reservation, at: datetime) -> dict[str, Any]:
    """The signs, and the part "On the cluster"."""
    if found.approval_case is not None:
        prefetch_related_objects([found.approval_case], "steps__decisions__approver")
    outcome = queries.outcome_loaded(found)
    standing = on_cluster_signs([found], at)[found.pk]
    return {
        "now": at,
        "reservation": found,
        "decision_sign": decision_sign(found, at, outcome.role if found.decision in OPEN else None),
        "phase_sign": phase_sign(found, at),
        "standing": standing,
        "next_look_seconds": next_look_seconds(standing, found, at),
        "pushed": pushed(found),
        "is_held": found.decision in OPEN and found.hold_expires_at is not None,
    }


def _sentence(found: Reservation, held: queries.Held, at: datetime) -> str:
    """The sentence that answers the page."""
    zone = timezone.get_current_timezone()
    what = f"{held_text(found, held)} of {found.cluster.name}"
    when, phase = phrases.period(found.start_at, found.end_at, zone, at), phase_of(found, at)
    if found.decision in OPEN:
        return f"{found.team.path} asks for {what}, {when}."
    if phase == "scheduled":
        starts = phrases.relative(found.start_at, at) or f"in {phrases.duration_words(found.start_at - at)}"
        return f"Kept for {found.team.path}: {what}, {when}; it starts {starts}."
    if phase == "active":
        return f"{found.team.path} has {what} now, {_left(found.end_at - at)} left."
    if phase == "over":
        return f"{found.team.path} had {what}, {when}."
    word = DECISIONS[found.decision][1]
    return f"{found.team.path} asked for racks of {found.cluster.name}, {when}; it was {word}."


def _left(length: timedelta) -> str:
    return phrases.duration_words(length) if length >= timedelta(minutes=1) else "less than a minute"


def _decisions(found: Reservation) -> list[dict[str, Any]]:
    """Each step with who said what, in order."""
    case = found.approval_case
    return (
        []
        if case is None
        else [
            {"role": step.role, "quorum": step.quorum, "said": list(step.decisions.all())} for step in case.steps.all()
        ]
    )


def _event(event: Any) -> dict[str, Any]:
    """One line of history."""
    shape, word = EVENTS.get(event.verb, ("ring", event.verb.rpartition(".")[2].replace("_", " ").capitalize()))
    told, reason = _told(event)
    return {
        "at": event.at,
        "shape": shape,
        "sentence": " ".join(part for part in (f"{word}.", in_zone(told, timezone.get_current_timezone())) if part),
        "actor": event.actor.name if event.actor else "Berth",
        "reason": reason,
    }


def _told(event: Any) -> tuple[str, str]:
    """(what Berth tells of it, what a person said)."""
    if event.verb in ("reservation.requested", "reservation.decided", "reservation.lapsed"):
        return "", ""  # the page says what was asked and who decided; EVENTS has the words for the rest
    told = str((event.before or {}).get("sentence", ""))
    return told, event.sentence.removeprefix(told).strip()


def _filtered(request: PersonRequest, asked: dict[str, str], at: datetime) -> QuerySet[Reservation]:
    """The visible reservations that the filters leave."""
    rows = queries.visible_reservations(request.user).order_by("-id")
    if asked["whose"] == "mine":
        rows = rows.filter(visibility.mine(rights(request.user)))
    if asked["cluster"]:
        rows = rows.filter(cluster__name=asked["cluster"])
    if asked["q"]:
        number = asked["q"].upper().removeprefix("R-")
        by_id = Q(pk=int(number)) if number.isascii() and number.isdigit() and len(number) < 19 else Q()
        named = Q(purpose__icontains=asked["q"]) | Q(team__path__icontains=asked["q"])
        rows = rows.filter(named | by_id if by_id else named)
    over = Q(end_at__lte=at) | Q(released_at__lte=at)
    approved = rows.filter(decision="approved")
    states = {
        "scheduled": approved.filter(start_at__gt=at).exclude(over),
        "active": approved.filter(start_at__lte=at).exclude(over),
        "over": approved.filter(over),
    }
    if asked["state"] in states:
        return states[asked["state"]]
    return rows.filter(decision=asked["state"]) if asked["state"] in DECISIONS else rows


def _filters(asked: dict[str, str], belongs: bool) -> list[dict[str, Any]]:
    """The filter bar."""
    clusters = Cluster.objects.order_by("name").values_list("name", flat=True)
    words = [(name, word) for name, (_, word) in {**PHASES, **DECISIONS}.items() if name not in ("draft", "approved")]
    whose = [("mine", "my teams'")] if belongs else []
    return [
        {"name": "whose", "label": "Whose", "value": asked["whose"], "options": [*whose, ("all", "all I may see")]},
        {
            "name": "cluster",
            "label": "Cluster",
            "value": asked["cluster"],
            "options": [("", "any"), *((c, c) for c in clusters)],
        },
        {"name": "state", "label": "State", "value": asked["state"], "options": [("", "any"), *words]},
    ]


def _page_url(asked: dict[str, str], number: int) -> str:
    return f"{reverse('reservations')}?{urlencode({**{k: v for k, v in asked.items() if v}, 'page': number})}"


def _rows(rows: list[Reservation], at: datetime) -> list[dict[str, Any]]:
    """Rows for components/data_table.html."""
    zone, signs, racks = timezone.get_current_timezone(), on_cluster_signs(rows, at), queries.racks_by_reservation(rows)
    made = []
    for row in rows:
        decision, phase, standing = decision_sign(row, at), phase_sign(row, at), signs[row.pk]
        when = format_html(
            '<time datetime="{}" title="{}">{}</time>',
            row.start_at.isoformat(),
            phrases.zones_of(row.start_at),
            phrases.period(row.start_at, row.end_at, zone, at),
        )
        size = phrases.racks(len(racks[row.pk])) if racks[row.pk] else "nodes"
        cells = [
            f"{row.public_id} {Truncator(row.purpose).chars(60)}",
            row.team.path,
            f"{row.cluster.name}, {size}",
            when,
            sign(decision.shape, decision.word),
            sign(phase.shape, phase.word),
            sign(standing.shape, standing.word, standing.sentence),
        ]
        made.append({"url": reverse("reservation", args=[row.public_id]), "cells": cells})
    return made
