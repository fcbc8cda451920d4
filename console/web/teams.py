"""Who has what? The tree of teams, and one team with its members, allocations and reservations."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations import queries as ledger
from allocations.errors import NotFound
from allocations.models import Allocation, Team
from allocations.permissions import can, visible_to
from allocations.public_ids import number_of
from console.web import phrases
from console.web.access import page
from console.web.request import PersonRequest
from reservations import queries

COLUMNS = [
    {"label": "Allocation"},
    {"label": "Flavor"},
    {"label": "Guaranteed", "number": True},
    {"label": "May borrow", "number": True},
    {"label": "GPU-hours", "number": True},
    {"label": "Until"},
]


@page("account.use")
@require_safe
def teams(request: PersonRequest) -> HttpResponse:
    """Every team this person may look into, as a tree by path."""
    found = list(visible_to(request.user, Team).order_by("path"))
    granted = ledger.allocations_in_force(found, timezone.now())
    gpus: dict[int, int] = {}
    for each in granted:
        gpus[each.team_id] = gpus.get(each.team_id, 0) + each.guaranteed_gpus
    rows = [
        {
            "url": reverse("team", args=[each.public_id]),
            "cells": [each.path, each.account, f"{each.shares:,}", phrases.gpus(gpus.get(each.pk, 0))],
        }
        for each in found
    ]
    columns = [
        {"label": "Team"},
        {"label": "Account on clusters"},
        {"label": "Shares", "number": True},
        {"label": "Guaranteed", "number": True},
    ]
    return render(
        request,
        "teams.html",
        {"rows": rows, "columns": columns, "sentence": f"{phrases.amount(len(found), 'team')} that you may look into."},
    )


@page("team.read")
@require_safe
def team(request: PersonRequest, public_id: str) -> HttpResponse:
    """One team."""
    found = visible_to(request.user, Team).filter(pk=number_of(public_id, "T")).first()
    if found is None:
        raise NotFound(f"There is no team {public_id} that you may see.")
    now = timezone.now()
    shown = ledger.team_page(found, now)
    open_ones = (
        queries.visible_reservations(request.user)
        .filter(team=found, end_at__gt=now, decision__in=("requested", "approved", "counter_offered"))
        .select_related("cluster", "flavor")
        .order_by("start_at")[:50]
    )
    context = {
        "team": found,
        "shown": shown,
        "columns": COLUMNS,
        "rows": [_row(each) for each in shown.allocations],
        "inherited": [_row(each) for each in shown.inherited],
        "reservations": open_ones,
        "leads": can(request.user, "reservation.request", found),
        "sentence": _sentence(found, shown),
    }
    return render(request, "team.html", context)


def _sentence(found: Team, shown: ledger.TeamPage) -> str:
    has = sum(each.guaranteed_gpus for each in shown.allocations)
    people = phrases.amount(len(shown.members), "member")
    if not shown.allocations and not shown.inherited:
        return f"{people}; no allocation yet, so it can look but not reserve."
    own = phrases.amount(len(shown.allocations), "allocation")
    return f"{people}, {phrases.gpus(has)} guaranteed in {own} of its own."


def _row(each: Allocation) -> dict[str, object]:
    zone = timezone.get_current_timezone()
    what = f"{each.flavor.name} on {each.flavor.cluster.name}" if each.flavor else f"{each.gpu_model} fleet-wide"
    limit = each.borrowing_limit_gpus
    return {
        "cells": [
            f"{each.public_id} · {each.team.path}",
            what,
            phrases.gpus(each.guaranteed_gpus),
            "no limit" if limit is None else phrases.gpus(limit),
            "no limit" if each.gpu_hours is None else phrases.gpu_hours(float(each.gpu_hours)),
            phrases.moment(each.end_at, zone),
        ]
    }
