"""The page "Reserve": does it fit, when, where? Each change shows the answer; only the button asks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from allocations.errors import DomainError, Invalid, NotAllowed
from console import errors
from console.web import phrases
from console.web.access import page
from console.web.answers import answer_context, in_zone, wrong_context
from console.web.request import PersonRequest
from console.web.reserve_form import ReservationForm, choices_for, typed
from reservations.models import Reservation
from reservations.moments import moment_of
from reservations.services.preview import Preview, preview
from reservations.services.submit import submit
from scheduling.periods import MomentError, parse_moment

LIVE_HINTS = ("racks", "duration")  # the answer says there how much it is
START_MAY_SLIP_MINUTES = 15  # an ask "from now on" starts some minutes later than the page said; more is another answer


@page("reservation.request")
@require_http_methods(["GET", "HEAD", "POST"])
def reserve(request: PersonRequest) -> HttpResponse:
    """The form with its answer, filled from the query; POST asks."""
    choices, at = choices_for(request.user), timezone.now()
    if not choices.teams:
        raise NotAllowed("Racks are asked for in a team's name, and you belong to none. A lead can invite you.")
    if request.method == "POST":
        form = ReservationForm(request.POST, choices)
        return _ask(request, form, at)
    form = ReservationForm(typed(request.GET, choices, request.user, at), choices)
    return render(request, "reserve.html", _context(request, form, at))


@page("reservation.preview")
@require_safe
def answer(request: PersonRequest) -> HttpResponse:
    """The answer alone, for each change of the form; writes nothing."""
    choices, at = choices_for(request.user), timezone.now()
    query: dict[str, Any] = request.GET.dict()
    start = query.pop("start_at", None)
    if start is not None:
        query["earliest_start_at"] = start
    form = ReservationForm(typed(query, choices, request.user, at), choices)
    context = _context(request, form, at)
    hints: Mapping[str, str] = context["hints"]
    context |= {
        "is_swap": True,
        "live_hints": [(form[name].id_for_label, hints.get(name, form[name].help_text)) for name in LIVE_HINTS],
        "moved_start": start is not None,
        "new_flavors": form["flavor"].value() != query.get("flavor")
        or form["cluster"].value() != query.get("shown_cluster"),
    }
    response = render(request, "answer.html", context)
    filled = {name: value for name, value in form.data.items() if value not in ("", None)}
    response["HX-Replace-Url"] = f"{reverse('reserve')}?{urlencode(filled)}"
    return response


def _ask(request: PersonRequest, form: ReservationForm, at: datetime) -> HttpResponse:
    """Submit what was typed; whatever stands against it is said on the same page, with what was typed."""
    spec = form.to_spec(at) if form.is_valid() else None
    if spec is None:
        return render(request, "reserve.html", _context(request, form, at), status=400)
    try:
        _refuse_another_start(request, form, at)
        reservation = submit(
            team=form.chosen_team,
            cluster=form.chosen_cluster,
            spec=spec,
            purpose=form.cleaned_data["purpose"],
            actor=request.user,
            at=at,
        )
    except Invalid as wrong:
        left = form.take(wrong.faults)
        context = _context(request, form, at) | {"refused": " ".join(left)}
        return render(request, "reserve.html", context, status=400)
    except DomainError as error:
        sentence = in_zone(error.sentence, timezone.get_current_timezone())
        context = _context(request, form, timezone.now()) | {"refused": sentence}
        return render(request, "reserve.html", context, status=errors.STATUS.get(error.code, 500))
    messages.success(request, _told(reservation))
    return redirect("reservation", reservation.public_id)


def _told(reservation: Reservation) -> str:
    """What came of the ask, in one sentence."""
    zone = timezone.get_current_timezone()
    start = phrases.moment(reservation.start_at, zone)
    if reservation.decision == Reservation.Decision.APPROVED:
        return f"{reservation.public_id} is approved from {start}; {reservation.cluster.name} gets it now."
    assert reservation.hold_expires_at is not None  # an ask that waits has a hold that runs out
    until = phrases.moment(reservation.hold_expires_at, zone)
    return f"{reservation.public_id} is asked for, from {start}. The racks are held for you until {until}."


def _refuse_another_start(request: PersonRequest, form: ReservationForm, at: datetime) -> None:
    """Raise placement_gone when the racks that the button named are taken and the ask would start later."""
    try:
        shown = parse_moment(request.POST.get("shown_start_at", ""))
    except MomentError:
        return  # sent without a page that showed a start
    spec = form.to_spec(at)
    assert spec is not None  # the caller looked
    found = preview(
        team=form.chosen_team, cluster=form.chosen_cluster, spec=spec, user=request.user, at=at, with_drawings=False
    )
    if found.placement is None:
        return  # submit says why
    starts_at = moment_of(found.placement.start_minute)
    late = starts_at - max(shown, at)
    if late.total_seconds() > START_MAY_SLIP_MINUTES * 60:
        zone = timezone.get_current_timezone()
        if spec.earliest_start_minute is not None and moment_of(spec.earliest_start_minute) > shown:
            happened = "You sent this before its answer was there"  # the page still showed the answer to another ask
        else:
            happened = f"The start at {phrases.moment(shown, zone)} is taken since you looked"
        raise DomainError(
            "placement_gone", f"{happened}; nothing was asked. Now it would start {phrases.moment(starts_at, zone)}."
        )


def _context(request: PersonRequest, form: ReservationForm, at: datetime) -> dict[str, Any]:
    """The form and its answer."""
    found = _preview(request, form, at)
    if request.method != "POST":
        form.errors.pop("purpose", None)  # not typed yet is no fault before the button is pressed
    context = wrong_context(form, at) if found is None else answer_context(form, found, at)
    more = ("nodes_per_rack", "spare_nodes", "max_blocks", "avoid_racks", "prefer_racks", "nodes", "gpus")
    is_open = any(form[name].value() or form[name].errors for name in (*more, "same_block", "ignore_jobs"))
    attributes = f'hx-get="{reverse("reserve-answer")}" hx-include="#reserve-form" hx-target="#answer"'
    return {
        **context,
        "form": form,
        "more_is_open": is_open,
        "strip_attributes": attributes,
    }


def _preview(request: PersonRequest, form: ReservationForm, at: datetime) -> Preview | None:
    """The answer to a form that can be answered; a spec that the planner finds wrong is said at its field."""
    form.is_valid()
    spec = form.to_spec(at)
    if spec is None:
        return None
    try:
        return preview(team=form.chosen_team, cluster=form.chosen_cluster, spec=spec, user=request.user, at=at)
    except Invalid as wrong:
        form.take(wrong.faults)
        return None
