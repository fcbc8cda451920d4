"""The inbox: which asks wait for me, and should I say yes?"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from allocations.errors import DomainError, Invalid
from allocations.models import Event, User
from console import errors
from console.web import phrases
from console.web.access import page
from console.web.answers import in_zone
from console.web.asks import ask_deeds, gpu_hours_of
from console.web.request import PersonRequest, version_of
from reservations import queries
from reservations.budget import left_of
from reservations.models import Reservation
from reservations.services import approve as approving
from reservations.services import reject as rejecting


@page("inbox.read")
@require_safe
def inbox(request: PersonRequest) -> HttpResponse:
    """Asks that wait for this person, the one whose hold runs out first on top."""
    return render(request, "inbox.html", _context(request.user, timezone.now()))


@page("reservation.approve")
@require_POST
def decide(request: PersonRequest, public_id: str) -> HttpResponse:
    """Approve or reject one ask; what stands against it is said in the inbox, with the reason that was typed."""
    found, at = queries.get_reservation(request.user, public_id), timezone.now()
    reason, seen = request.POST.get("reason", "")[:2000], version_of(request)
    is_yes = _is_yes(request.POST.get("verdict", ""))
    deed = approving.approve if is_yes else rejecting.reject
    try:
        done = deed(reservation=found, actor=request.user, at=at, reason=reason, version=seen)
    except DomainError as error:
        status = errors.STATUS.get(error.code, 500)
        if status == 403:
            raise
        context = _context(request.user, timezone.now())
        context |= {
            "refused": in_zone(error.sentence, timezone.get_current_timezone()),
            "refused_id": public_id,
            "reason": reason,
        }
        return render(request, "inbox.html", context, status=status)
    messages.success(request, _told(done, is_yes))
    return redirect("inbox")


def _is_yes(verdict: str) -> bool:
    """What the button says. Raises Invalid for anything but approve and reject: neither is the default."""
    if verdict not in ("approve", "reject"):
        raise Invalid("The verdict is approve or reject.")
    return verdict == "approve"


def _told(done: Reservation, is_yes: bool) -> str:
    """What came of the decision, in one sentence."""
    if not is_yes:
        return f"{done.public_id} is rejected. The racks are free."
    if done.decision == Reservation.Decision.APPROVED:
        start = phrases.moment(done.start_at, timezone.get_current_timezone())
        return f"{done.public_id} is approved from {start}; {done.cluster.name} will show it within a minute."
    return f"Your yes to {done.public_id} is recorded; it waits for another."


def _context(user: User, at: datetime) -> dict[str, Any]:
    """Everything on the page."""
    found = queries.inbox(user, at)
    return {
        "now": at,
        "asks": asks([item.reservation for item in found.to_decide], user, at),
        "to_answer": found.to_answer,
        "last": last_decision(user, at) if not found else "",
    }


def asks(waiting: Sequence[Reservation], user: User, at: datetime) -> list[dict[str, Any]]:
    """Each ask with what its approver needs; one query for the nodes of each, and those of the allocations once."""
    left = left_of({each.allocation_id: each.allocation for each in waiting if each.allocation}.values(), at)
    shown = []
    for each in waiting:
        held = queries.held_by(each)
        decide = ask_deeds(each, held, user, at, left.get(each.allocation_id or 0))
        if decide is not None:
            shown.append({"reservation": each, "decide": decide, "held": held, "takes": gpu_hours_of(each)})
    return shown


def last_decision(user: User, at: datetime) -> str:
    """The newest decision that the person took: "R-130, 2 h ago"; "" for none."""
    verbs = ("reservation.approved", "reservation.rejected", "reservation.decided")
    event = Event.objects.filter(actor=user, verb__in=verbs).order_by("-id").first()
    if event is None:
        return ""
    when = phrases.relative(event.at, at) or phrases.moment(event.at, timezone.get_current_timezone(), at)
    return f"{event.subject_id}, {when}"
