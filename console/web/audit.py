"""What happened, who did it, and when? The events, newest first, for those who read everything."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.models import Event
from console.web import phrases
from console.web.access import page
from console.web.request import PersonRequest

ROWS = 100
COLUMNS = [{"label": "When"}, {"label": "What"}, {"label": "Subject"}, {"label": "Who"}, {"label": "Sentence"}]


@page("audit.read")
@require_safe
def audit(request: PersonRequest) -> HttpResponse:
    """Events by verb, subject and person; older ones by the id in the URL."""
    events = Event.objects.select_related("actor").order_by("-id")
    verb, subject, before = (request.GET.get(key, "").strip() for key in ("verb", "subject", "before"))
    if verb:
        events = events.filter(verb__startswith=verb)
    if subject:
        events = events.filter(subject_id__iexact=subject)
    if before.isascii() and before.isdigit() and len(before) < 18:
        events = events.filter(pk__lt=int(before))
    page_of = list(events[: ROWS + 1])
    zone = timezone.get_current_timezone()
    rows = [
        {
            "cells": [
                phrases.moment(each.at, zone),
                each.verb,
                f"{each.subject_kind} {each.subject_id}",
                each.actor.name if each.actor else "Berth",
                each.sentence,
            ]
        }
        for each in page_of[:ROWS]
    ]
    older = request.GET.copy()
    older["before"] = str(page_of[ROWS - 1].pk) if len(page_of) > ROWS else ""
    context = {
        "rows": rows,
        "columns": COLUMNS,
        "next_url": f"?{older.urlencode()}" if older["before"] else "",
        "verb": verb,
        "subject": subject,
        "zone": zone,
    }
    return render(request, "audit.html", context)
