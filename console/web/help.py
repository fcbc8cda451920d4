"""How does it work, what does an error mean, where is a thing? Help, find, and the pages for what is not there."""

from django.core.exceptions import BadRequest, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.errors import DomainError, NotFound
from allocations.events import request_id
from allocations.models import Cluster, Node, Rack, Team
from allocations.permissions import visible_to
from console import errors
from console.web.access import OPEN, page, refused
from console.web.request import PersonRequest
from reservations import queries

MEANING = {
    "not_allowed": "The deed exists and you may not do it. The sentence names the role it needs.",
    "own_request": "Nobody decides what they asked for themselves. Another approver can.",
    "not_found": "There is nothing at this address that you may see.",
    "wrong_state": "The deed is right and the moment is not: read the present state and decide again.",
    "does_not_fit": "The planner found no place. The reasons say what is missing and in whose way it is.",
    "placement_gone": "The place you were shown was taken meanwhile. Look again: the answer is new.",
    "budget_short": "The allocation has too few GPU-hours left for all nodes that would be held.",
    "no_allocation": "The team has no allocation of this flavor over the whole period.",
    "policy_limit": "A rule against hoarding says no, with its number.",
    "version_changed": "Somebody changed it since you read it.",
    "invalid": "Something in what was sent is wrong in itself, whatever the state.",
}


@page(OPEN)
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """The words, the signs and the keys."""
    return render(request, "help.html", {"codes": sorted(errors.STATUS.items(), key=lambda pair: (pair[1], pair[0]))})


@page(OPEN)
@require_safe
def error(request: HttpRequest, code: str) -> HttpResponse:
    """What one error code means."""
    if code not in errors.STATUS:
        raise NotFound(f"There is no error called {code}.")
    context = {
        "code": code,
        "status": errors.STATUS[code],
        "retry": errors.retry(code),
        "meaning": MEANING.get(code, "The sentence beside it says what is wrong."),
    }
    return render(request, "help_error.html", context)


@page("account.use")
@require_safe
def find(request: PersonRequest) -> HttpResponse:
    """One word leads to a reservation, team, cluster, rack or node."""
    word = request.GET.get("q", "").strip()[:200]
    if not word:
        return render(request, "find.html", {"word": "", "found": []})
    found = _matches(request, word)
    if len(found) == 1:
        return redirect(found[0][1])
    return render(request, "find.html", {"word": word, "found": found})


def _matches(request: PersonRequest, word: str) -> list[tuple[str, str]]:
    """(what it is, its address), at most some of each kind."""
    found: list[tuple[str, str]] = []
    if word.upper().startswith("R-"):
        try:
            reservation = queries.get_reservation(request.user, word.upper())
            found.append(
                (f"{reservation.public_id} {reservation.purpose}", reverse("reservation", args=[word.upper()]))
            )
        except DomainError:
            pass
    clusters = visible_to(request.user, Cluster)
    for cluster in clusters.filter(name__icontains=word)[:5]:
        found.append((f"cluster {cluster.name}", reverse("fleet-cluster", args=[cluster.name])))
    for team in visible_to(request.user, Team).filter(path__icontains=word)[:10]:
        found.append((f"team {team.path}", reverse("team", args=[team.public_id])))
    for rack in Rack.objects.filter(cluster__in=clusters, name__iexact=word, is_pseudo=False).select_related("cluster")[
        :5
    ]:
        found.append(
            (f"rack {rack.name} of {rack.cluster.name}", reverse("fleet-rack", args=[rack.cluster.name, rack.name]))
        )
    nodes = Node.objects.filter(cluster__in=clusters, name__iexact=word).select_related("cluster", "rack")
    for node in nodes[:5]:
        address = reverse("fleet-rack", args=[node.cluster.name, node.rack.name])
        found.append((f"node {node.name} in {node.rack.name} of {node.cluster.name}", address))
    mine = queries.visible_reservations(request.user).filter(purpose__icontains=word, end_at__gt=timezone.now())
    for each in mine.order_by("start_at")[:5]:
        found.append((f"{each.public_id} {each.purpose}", reverse("reservation", args=[each.public_id])))
    return list(dict.fromkeys(found))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What an address that leads nowhere answers."""
    if request.path.startswith("/api/"):
        return errors.problem_response(request, "not_found", "There is nothing here that you may see.")
    return refused(request, NotFound())


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What a request answers that Django or our middleware refuses to read."""
    if isinstance(exception, RequestDataTooBig):
        code, sentence = "too_large", "What was sent is larger than this page takes."
    elif isinstance(exception, BadRequest):
        code, sentence = "malformed", str(exception)
    else:
        code, sentence = "malformed", "What was sent cannot be read, or was sent to another name than Berth's own."
    if request.path.startswith("/api/"):
        return errors.problem_response(request, code, sentence)
    return refused(request, DomainError(code, sentence))


def not_from_here(request: HttpRequest, reason: str = "") -> HttpResponse:
    """What a form answers that carries no token of a page of ours, or an old one."""
    sentence = "No page of Berth sent this, or the page is too old. Open the page again and send it from there."
    return refused(request, DomainError("not_allowed", sentence))


def broken(request: HttpRequest) -> HttpResponse:
    """What a fault of our own answers: without database, session and context, so that it cannot fail too."""
    sentence = "Berth broke off by a fault of its own. Nothing was half done; the log has the request's id."
    if request.path.startswith("/api/"):
        return JsonResponse(
            {**errors.body("unavailable", sentence), "status": 500}, status=500, content_type="application/problem+json"
        )
    return HttpResponse(
        render_to_string("broken.html", {"sentence": sentence, "request_id": request_id.get()}), status=500
    )
