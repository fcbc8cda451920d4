"""Who may open a page? @page(verb) on every view; and the frame around each page: navigation, inbox, banner."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from allocations.errors import DomainError, NotFound
from allocations.models import Cluster, User
from allocations.permissions import can, rights
from console import errors
from console.web.request import PersonRequest
from reservations import queries

View = Callable[..., HttpResponse]

OPEN = "open"  # sign-in, health and help: no person needed

NAV = (
    ("Home", "home", "account.use"),
    ("Board", "board", "fleet.read"),
    ("Reservations", "reservations", "account.use"),
    ("Teams", "teams", "account.use"),
    ("Fleet", "fleet", "fleet.read"),
    ("Clusters", "clusters", "fleet.read"),
    ("Audit", "audit", "audit.read"),
)


def page(verb: str) -> Callable[[View], View]:
    """Mark a view with the permission verb it needs; OPEN pages need no person.

    Verbs about a subject (a team, a cluster, a reservation) are checked again by the view with that subject; the
    decorator then asks only for a signed-in person. Domain errors become pages with their status.
    """

    def mark(view: View) -> View:
        @wraps(view)
        def checked(request: PersonRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if verb != OPEN:
                if not request.user.is_authenticated:
                    return redirect_to_login(request.get_full_path(), reverse("sign-in"))
                if verb not in SUBJECT_VERBS and not can(request.user, verb):
                    return refused(request, DomainError("not_allowed", _needs(verb)))
            try:
                response = view(request, *args, **kwargs)
            except DomainError as error:
                return refused(request, error)
            return _with_a_sentence(request, response) if response.status_code == 405 else response

        checked.verb = verb  # type: ignore[attr-defined]  # the house test reads it from every URL
        return checked

    return mark


SUBJECT_VERBS = frozenset(
    {
        "cluster.operate",
        "cluster.read",
        "reservation.approve",
        "reservation.cancel",
        "reservation.preview",
        "reservation.read",
        "reservation.request",
        "reservation.withdraw",
        "team.manage",
        "team.read",
    }
)


def require(user: User, verb: str, subject: Any) -> None:
    """Raise what the person must hear when they may not do `verb` to `subject`: 404 for what they may not even read."""
    if can(user, verb, subject):
        return
    kind = verb.split(".")[0]
    if kind in ("team", "reservation") and verb != f"{kind}.read" and not _readable(user, kind, subject):
        raise NotFound()
    if verb.endswith(".read"):
        raise NotFound()
    raise DomainError("not_allowed", _needs(verb, subject))


def _readable(user: User, kind: str, subject: Any) -> bool:
    return can(user, f"{kind}.read", subject)


_ROLE = {
    "audit.read": "auditor",
    "inbox.read": "approver",
    "cluster.operate": "operator",
    "admin.grant_roles": "admin",
    "reservation.approve": "approver",
    "reservation.request": "lead",
    "reservation.preview": "member",
    "reservation.withdraw": "lead",
    "reservation.cancel": "lead",
    "team.manage": "lead",
}


def _needs(verb: str, subject: Any = None) -> str:
    where = f" on {subject.name}" if isinstance(subject, Cluster) else ""
    return f"This needs the {_ROLE.get(verb, verb)} role{where}."


def _with_a_sentence(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """What Django's method decorators answer has no words: the same, said on a page."""
    allowed = response["Allow"]
    said = refused(request, DomainError("method_not_allowed", f"{request.method} is not for this address: {allowed}."))
    said["Allow"] = allowed
    return said


def refused(request: HttpRequest, error: DomainError) -> HttpResponse:
    """The page (or the htmx fragment) that says why not, with the status of the error's code."""
    status = errors.STATUS.get(error.code, 500)
    template = "refused_fragment.html" if getattr(request, "htmx", False) else "refused.html"
    return render(request, template, {"error": error, "status": status}, status=status)


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context of every page: what this person may open, how many things wait for them, one banner line at most."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"nav": [], "inbox_count": 0}
    match = request.resolver_match
    here = match.url_name if match else ""
    nav = [
        {
            "label": label,
            "url": reverse(name),
            "current": here == name or (here or "").startswith(name.rstrip("s") + "-"),
        }
        for label, name, verb in NAV
        if can(user, verb)
    ]
    frozen = list(Cluster.objects.exclude(frozen_at=None).values_list("name", flat=True))
    return {
        "nav": nav,
        "inbox_count": queries.inbox_count(user, timezone.now()) if can(user, "inbox.read") else 0,
        "may_reserve": bool(rights(user).lead_paths),
        "banner": f"{', '.join(frozen)} frozen: nothing is written there." if frozen else "",
    }
