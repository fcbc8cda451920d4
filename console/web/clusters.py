"""Is each cluster as approved? Its endpoint, modes, plans and drift; and what an operator may do about them."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from allocations.errors import NotFound
from allocations.models import Cluster, Event, User
from allocations.permissions import can, visible_to
from allocations.public_ids import number_of
from allocations.queries import events_of
from allocations.services import freezing
from console.models import ClusterEndpoint, ObservedObject, PushPlan, PushStep
from console.push import control
from console.push.endpoints import MODES
from console.web import phrases
from console.web.access import page, require
from console.web.fleet import cluster_of
from console.web.plan_steps import PLAN_SIGNS, plan_step
from console.web.request import PersonRequest
from reservations import queries
from scheduling.dialects import KINDS, dialect

SIGNS = {
    "idle": ("ring", "not looked at yet"),
    "pending": ("half", "a change waits for the next pass"),
    "applying": ("disc", "applying"),
    "converging": ("disc", "converging"),
    "verified": ("tick", "in step"),
    "waiting": ("triangle", "a plan waits for a yes"),
    "drifted": ("triangle", "differs, only observed"),
    "failed": ("cross", "failed"),
    "unreachable": ("cross", "unreachable"),
}
EVENT_SHAPES = {
    "push.drift_found": "triangle",
    "push.failed": "cross",
    "push.verified": "tick",
    "push.waiting": "triangle",
    "cluster.frozen": "triangle",
}


@page("fleet.read")
@require_safe
def clusters(request: PersonRequest) -> HttpResponse:
    """Every cluster with how its push stands."""
    rows = []
    for cluster in visible_to(request.user, Cluster).select_related("endpoint").order_by("name"):
        endpoint = getattr(cluster, "endpoint", None)
        told = endpoint.sentence if endpoint and queries.knows_names(request.user, cluster) else ""
        rows.append({"cluster": cluster, "endpoint": endpoint, "sign": sign_of(cluster, endpoint), "told": told})
    behind = sum(row["sign"][0] in ("cross", "triangle") for row in rows)
    sentence = f"{phrases.amount(len(rows), 'cluster')}; " + (
        f"{behind} need a look." if behind else "every one that is looked at is in step."
    )
    return render(request, "clusters.html", {"rows": rows, "sentence": sentence})


def sign_of(cluster: Cluster, endpoint: ClusterEndpoint | None) -> tuple[str, str]:
    """(sign, words) for how a cluster's push stands."""
    if endpoint is None:
        return "ring", "not connected"
    if cluster.frozen_at is not None:
        return "triangle", "frozen"
    if endpoint.state == "verified" and cluster.desired_generation > cluster.applied_generation:
        return SIGNS["pending"]
    return SIGNS[endpoint.state]


@page("cluster.read")
@require_safe
def cluster(request: PersonRequest, name: str) -> HttpResponse:
    """One cluster: how it stands, what differs, its last plans, and what stands there that is not ours."""
    found = cluster_of(request, name)
    endpoint = ClusterEndpoint.objects.filter(cluster=found).first()
    objects = list(ObservedObject.objects.filter(cluster=found))
    plans = list(PushPlan.objects.filter(cluster=found).prefetch_related("steps")[:10])
    operates = can(request.user, "cluster.operate", found)
    knows_names = queries.knows_names(request.user, found)
    context: dict[str, Any] = {
        "cluster": found,
        "endpoint": endpoint,
        "sign": sign_of(found, endpoint),
        "operates": operates,
        "knows_names": knows_names,
        "reads_plans": can(request.user, "audit.read"),
        "modes": _modes(found, endpoint) if endpoint else [],
        "mode_words": MODES,
        "differing": [each for each in objects if each.state not in ("in_step", "foreign")],
        "in_step": sum(each.state == "in_step" for each in objects),
        "foreign": [each for each in objects if each.state == "foreign"],
        "plans": [(plan, PLAN_SIGNS[plan.state]) for plan in plans],
        "waiting": next((plan for plan in plans if plan.state == "waiting"), None),
        "compromises": _compromises(plans) if knows_names else [],
        "who": _operators(found) if not operates else [],
        "sentence": _sentence(found, endpoint, knows_names),
    }
    if operates or context["reads_plans"]:
        context["events"] = [_event(each) for each in events_of("cluster", found.name)[:20]]
    return render(request, "cluster.html", context)


def _event(event: Event) -> dict[str, Any]:
    """One line of the cluster's history; what has no sentence of its own is named by its verb."""
    words = event.verb.rpartition(".")[2].replace("_", " ").capitalize()
    return {
        "at": event.at,
        "shape": EVENT_SHAPES.get(event.verb, "ring"),
        "sentence": event.sentence or f"{words}.",
        "actor": event.actor.name if event.actor else "",
    }


def _sentence(cluster: Cluster, endpoint: ClusterEndpoint | None, knows_names: bool) -> str:
    if endpoint is None:
        return f"{cluster.name} has an inventory and no endpoint: nothing is pushed there."
    wanted = f"Wanted generation {cluster.desired_generation}, has {cluster.applied_generation}."
    if cluster.frozen_at is not None:
        return f"Frozen: {cluster.frozen_reason}. {wanted}"
    return f"{endpoint.sentence} {wanted}".strip() if knows_names else wanted


def _modes(cluster: Cluster, endpoint: ClusterEndpoint) -> list[tuple[str, str, str]]:
    """(object class, words, mode) for the rest of all classes and each that has its own."""
    classes = dialect(cluster.kind).classes if cluster.kind in KINDS else ()
    rest = endpoint.modes.get("*", "observe")
    rows = [("*", "everything else" if len(endpoint.modes) > 1 else "everything", rest)]
    return rows + [(each, each, endpoint.modes[each]) for each in classes if each in endpoint.modes]


def _compromises(plans: list[PushPlan]) -> list[dict[str, str]]:
    return plans[0].compromises if plans else []


def _operators(cluster: Cluster) -> list[str]:
    """Who can do here what this person cannot."""
    grants = User.objects.filter(role_grants__role="operator", role_grants__ended_at=None, is_active=True)
    here = grants.filter(role_grants__cluster=cluster) | grants.filter(
        role_grants__cluster=None, role_grants__team=None
    )
    return list(here.distinct().order_by("name").values_list("name", flat=True)[:4])


@page("cluster.operate")
@require_POST
def mode(request: PersonRequest, name: str) -> HttpResponse:
    """Set the mode of one object class."""
    found = _operated(request, name)
    object_class, wanted = request.POST.get("object_class", "*"), request.POST.get("mode", "")
    control.set_mode(cluster=found, object_class=object_class, mode=wanted, actor=request.user, at=timezone.now())
    messages.success(request, f"{found.name} is in {wanted} mode now.")
    return redirect("cluster", name=found.name)


@page("cluster.operate")
@require_POST
def freeze(request: PersonRequest, name: str) -> HttpResponse:
    """Stop writing to the cluster, or go on."""
    found, now = _operated(request, name), timezone.now()
    if found.frozen_at is None:
        freezing.freeze(cluster=found, reason=request.POST.get("reason", ""), actor=request.user, at=now)
        messages.success(request, f"{found.name} is frozen. Approvals go on; changes wait.")
    else:
        control.unfreeze(cluster=found, actor=request.user, at=now)
        messages.success(request, f"{found.name} is written to again, beginning with what waited.")
    return redirect("cluster", name=found.name)


@page("cluster.operate")
@require_POST
def push(request: PersonRequest, name: str) -> HttpResponse:
    """Look at the cluster now."""
    found = _operated(request, name)
    control.look_again(cluster=found, actor=request.user, at=timezone.now())
    messages.success(request, f"{found.name} is looked at within seconds.")
    return redirect("cluster", name=found.name)


@page("cluster.read")
@require_safe
def plan(request: PersonRequest, public_id: str) -> HttpResponse:
    """One plan, step by step, with what a person could paste instead."""
    found = _plan(request, public_id)
    steps = [_step(each) for each in found.steps.all()]
    context = {
        "plan": found,
        "sign": PLAN_SIGNS[found.state],
        "steps": steps,
        "operates": can(request.user, "cluster.operate", found.cluster),
    }
    return render(request, "plan.html", context)


def _step(step: PushStep) -> dict[str, Any]:
    """One step, and what the scheduler answered when it failed: who reads plans may see it."""
    return {**plan_step(step), "compromise": step.output if step.state == "failed" else ""}


@page("cluster.operate")
@require_POST
def apply(request: PersonRequest, public_id: str) -> HttpResponse:
    """Say yes to a waiting plan."""
    found = _plan(request, public_id)
    require(request.user, "cluster.operate", found.cluster)
    control.agree(plan=found, actor=request.user, at=timezone.now())
    messages.success(request, f"{found.public_id} is agreed to; it is written if it is still what differs.")
    return redirect("plan", public_id=found.public_id)


@page("cluster.operate")
@require_POST
def discard(request: PersonRequest, public_id: str) -> HttpResponse:
    """Say no to a waiting plan."""
    found = _plan(request, public_id)
    require(request.user, "cluster.operate", found.cluster)
    control.discard(plan=found, actor=request.user, at=timezone.now())
    messages.success(request, f"{found.public_id} is discarded. What differs goes on differing and stays shown.")
    return redirect(reverse("cluster", args=[found.cluster.name]))


def _operated(request: PersonRequest, name: str) -> Cluster:
    found = cluster_of(request, name)
    require(request.user, "cluster.operate", found)
    return found


def _plan(request: PersonRequest, public_id: str) -> PushPlan:
    """The plan, for people who run its cluster or read everything: its commands name people's reservations."""
    number = number_of(public_id, "P")
    found = PushPlan.objects.select_related("cluster", "approved_by").filter(pk=number).first()
    if found is None or not (can(request.user, "cluster.operate", found.cluster) or can(request.user, "audit.read")):
        raise NotFound(f"There is no plan {public_id} that you may see.")
    return found
