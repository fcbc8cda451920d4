"""What is there, and what state is it in? Clusters, their racks as a map, and one rack with its nodes."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations import queries as ledger
from allocations.errors import NotFound
from allocations.models import Cluster, Node
from allocations.permissions import visible_to
from console.web import drawings, phrases
from console.web.access import page
from console.web.layout import BlockDrawing
from console.web.request import PersonRequest
from reservations import queries
from reservations.models import Hold


def cluster_of(request: PersonRequest, name: str) -> Cluster:
    """The cluster of that name if this person may see it; else NotFound."""
    found: Cluster | None = visible_to(request.user, Cluster).filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no cluster {name} that you may see.")
    return found


@page("fleet.read")
@require_safe
def fleet(request: PersonRequest) -> HttpResponse:
    """Every cluster in numbers."""
    counted = ledger.fleet(request.user)
    nodes, healthy = sum(each.nodes for each in counted), sum(each.healthy_nodes for each in counted)
    rows = [
        {
            "url": reverse("fleet-cluster", args=[each.cluster.name]),
            "cells": [
                each.cluster.name,
                each.cluster.kind,
                ", ".join(flavor.flavor.name for flavor in each.flavors) or "no inventory yet",
                f"{each.racks:,}",
                f"{each.healthy_nodes:,} of {each.nodes:,}",
                f"{each.healthy_gpus:,} of {each.gpus:,}",
            ],
        }
        for each in counted
    ]
    columns = [
        {"label": "Cluster"},
        {"label": "Scheduler"},
        {"label": "Flavors"},
        {"label": "Racks", "number": True},
        {"label": "Healthy nodes", "number": True},
        {"label": "Healthy GPUs", "number": True},
    ]
    racks = sum(each.racks for each in counted)
    sentence = f"{phrases.racks(racks)} · {healthy:,} of {phrases.nodes(nodes)} healthy."
    return render(request, "fleet.html", {"rows": rows, "columns": columns, "sentence": sentence})


@page("fleet.read")
@require_safe
def cluster(request: PersonRequest, cluster: str) -> HttpResponse:
    """One cluster: flavors in numbers, the rack map now, and every rack as a row."""
    found = cluster_of(request, cluster)
    counted = next(each for each in ledger.fleet(request.user) if each.cluster.pk == found.pk)
    racks = ledger.racks(found)
    here = queries.holders(found, timezone.now(), request.user)
    drawn = [_linked(found, block) for block in drawings.map_drawing(here, timezone.get_current_timezone())]
    rows = [
        {
            "url": reverse("fleet-rack", args=[found.name, each.rack.name]),
            "cells": [
                each.rack.name,
                " · ".join(each.levels) or "not known",
                each.rack.flavor.name,
                each.rack.cabinet or ", ".join(sorted({node.cabinet for node in each.nodes if node.cabinet})),
                f"{each.healthy_nodes} of {len(each.nodes)}",
                each.rack.nvlink,
            ],
        }
        for each in racks
        if not each.rack.is_pseudo
    ]
    loose = [node for each in racks if each.rack.is_pseudo for node in each.nodes]
    context: dict[str, Any] = {
        "cluster": found,
        "counted": counted,
        "blocks": drawn,
        "rows": rows,
        "columns": [
            {"label": "Rack"},
            {"label": "Block and levels above"},
            {"label": "Flavor"},
            {"label": "Cabinet"},
            {"label": "Healthy nodes", "number": True},
            {"label": "NVLink"},
        ],
        "loose": loose,
        "racks": len(rows),
        "outages": ledger.outages(found, timezone.now()),
    }
    return render(request, "fleet_cluster.html", context)


def _linked(cluster: Cluster, block: BlockDrawing) -> BlockDrawing:
    """The same drawing with each rack a link to its page."""
    racks = [replace(each, url=reverse("fleet-rack", args=[cluster.name, each.name])) for each in block.racks]
    return replace(block, racks=racks)


@page("fleet.read")
@require_safe
def rack(request: PersonRequest, cluster: str, rack: str) -> HttpResponse:
    """One rack: every node with its health, its holder and its next holder."""
    found = cluster_of(request, cluster)
    contents = ledger.rack(found, rack)
    if contents is None:
        raise NotFound(f"{found.name} has no rack {rack}.")
    now = timezone.now()
    holds = _holds(request, contents.nodes)
    rows = []
    for node in contents.nodes:
        mine = holds.get(node.pk, [])
        rows.append(
            {"node": node, "state": _state(node), "now": mine[0] if mine and mine[0]["start_at"] <= now else None}
        )
        rows[-1]["next"] = next((each for each in mine if each["start_at"] > now), None)
    return render(request, "fleet_rack.html", {"cluster": found, "contents": contents, "rows": rows})


def _holds(request: PersonRequest, nodes: tuple[Node, ...]) -> dict[int, list[dict[str, Any]]]:
    """Open holds by node, by start, as far as this person may know them."""
    now = timezone.now()
    found: dict[int, list[dict[str, Any]]] = {}
    rows = (
        Hold.objects.filter(node__in=nodes, released_at=None, period__endswith__gt=now)
        .select_related("reservation__team", "reservation__cluster", "reservation__created_by")
        .order_by("period")
    )
    for hold in rows:
        shown = queries.disclose(request.user, hold.reservation)
        found.setdefault(hold.node_id, []).append(
            {
                "id": shown.id,
                "team": shown.team,
                "start_at": shown.start_at,
                "end_at": shown.end_at,
                "mine": shown.is_mine,
            }
        )
    return found


def _state(node: Node) -> tuple[str, str]:
    """(sign, word) for a node's health."""
    if node.lifecycle != "production":
        return "hatch", node.lifecycle.replace("_", " ")
    if node.condition == Node.Condition.FAILED:
        return "cross", "failed"
    if node.is_drained:
        return "hatch", "drained"
    if node.condition == Node.Condition.HEALTHY:
        return "tick", "healthy"
    return "triangle", node.condition
