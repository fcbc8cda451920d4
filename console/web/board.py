"""Who has what, when? Racks by time, one cluster a page; the same facts as a list."""

from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.errors import NotFound
from allocations.models import Cluster
from allocations.permissions import visible_to
from console.web import phrases
from console.web.access import page
from console.web.layout import BoardBar, BoardBlock, BoardName
from console.web.request import PersonRequest
from reservations import queries
from reservations.queries import Board, BoardShape
from reservations.queries import BoardBlock as Rows

SPANS = {"day": 1, "2w": 14, "month": 30, "quarter": 90}
FOLD_ABOVE_RACKS = 60


@page("fleet.read")
@require_safe
def board(request: PersonRequest) -> HttpResponse:
    """The board of one cluster over a day, two weeks, a month or a quarter; its state is in the URL."""
    clusters = list(visible_to(request.user, Cluster).order_by("name"))
    if not clusters:
        return render(request, "board.html", {"clusters": []})
    name = request.GET.get("cluster", clusters[0].name)
    cluster = next((each for each in clusters if each.name == name), None)
    if cluster is None:
        raise NotFound(f"There is no cluster {name} that you may see.")
    span = request.GET.get("span", "2w")
    days = SPANS.get(span, 14)
    zone = timezone.get_current_timezone()
    now = timezone.now()
    start = _start(request.GET.get("from"), now, zone)
    end = start + timedelta(days=days)
    shown = queries.board(request.user, cluster, start, end, at=now)
    unfolded = set(request.GET.getlist("open"))
    is_folded = shown.racks > FOLD_ABOVE_RACKS
    context = {
        "clusters": clusters,
        "cluster": cluster,
        "span": span,
        "spans": SPANS,
        "start": start,
        "earlier": (start - timedelta(days=days)).date().isoformat(),
        "later": end.date().isoformat(),
        "blocks": [
            _block(request, each, start, end, zone, is_folded and each.name not in unfolded) for each in shown.blocks
        ],
        "labels": _labels(start, days, zone),
        "now_percent": _percent(now, start, end) if start <= now < end else None,
        "now_time": f"{now.astimezone(zone):%H:%M}",
        "zone": zone,
        "racks": shown.racks,
        "free_now": shown.free_racks_at(now) if start <= now < end else None,
        "rows": _rows(shown, zone),
        "list_columns": [{"label": "Who"}, {"label": "Where"}, {"label": "When"}],
    }
    return render(request, "board.html", context)


def _start(given: str | None, now: datetime, zone: tzinfo) -> datetime:
    """Midnight, in the person's zone, of the day in the URL; today without one."""
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if not given:
        return today
    try:
        day = datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=zone)
    except ValueError:
        return today
    return day if abs(day - today) < timedelta(days=800) else today


def _percent(moment: datetime, start: datetime, end: datetime) -> float:
    return 100 * ((moment - start) / (end - start))


def _labels(start: datetime, days: int, zone: tzinfo) -> list[tuple[float, str]]:
    """The head's marks: hours of a day, days of two weeks, weeks beyond."""
    if days == 1:
        return [(100 * hour / 24, f"{hour:02d}:00") for hour in range(0, 24, 2)]
    step = 1 if days <= 14 else 7 if days > 31 else 2
    marks = []
    for day in range(0, days, step):
        at = (start + timedelta(days=day)).astimezone(zone)
        marks.append((100 * day / days, f"{at:%a} {at.day}" if step < 7 else f"{at.day} {at:%b}"))
    return marks


def _block(
    request: PersonRequest, rows: Rows, start: datetime, end: datetime, zone: tzinfo, folded: bool
) -> BoardBlock:
    opened = request.GET.copy()
    kept = [name for name in opened.getlist("open") if name != rows.name]
    opened.setlist("open", [*kept, rows.name] if folded else kept)
    racks = max(1, len(rows.racks))
    return BoardBlock(
        name=f"block {rows.name}" if rows.name else "No block",
        names=[
            BoardName(each.name, "cross" if each.bad_nodes else "", phrases.amount(each.bad_nodes, "bad node"))
            for each in rows.racks
        ],
        bars=[_bar(shape, start, end, zone) for shape in rows.shapes],
        density=[
            (
                _percent(span.start_at, start, end),
                _percent(span.end_at, start, end) - _percent(span.start_at, start, end),
                100 * span.free_racks / racks,
            )
            for span in rows.free
        ]
        if folded
        else (),
        folded=folded,
    )


def _bar(shape: BoardShape, start: datetime, end: datetime, zone: tzinfo) -> BoardBar:
    left = _percent(shape.start_at, start, end)
    label, title, url = _words(shape, zone)
    kind = "outage" if shape.kind == "outage" else "others"
    if shape.is_mine:
        kind = "provisional" if shape.is_provisional else "mine"
    return BoardBar(
        left_percent=left,
        width_percent=_percent(shape.end_at, start, end) - left,
        row=shape.first_row + 1,
        rows=shape.rows,
        kind=kind,
        label=label,
        title=title,
        url=url,
    )


def _words(shape: BoardShape, zone: tzinfo) -> tuple[str, str, str]:
    """The label, the whole sentence and the link of one shape, as far as this person may know it."""
    when = phrases.period(shape.start_at, shape.end_at, zone)
    if shape.kind == "outage":
        return f"{shape.id} {shape.name}", f"Outage {shape.id} {shape.name}, {when}", ""
    shown = shape.shown
    team = shown.team.rsplit("/", 1)[-1] if shown and shown.team else ""
    name = " ".join(part for part in (shown.id if shown else None, team) if part) or "held"
    state = "waits for approval" if shape.is_provisional else "held"
    purpose = f", {shown.purpose}" if shown and shown.purpose else ""
    title = f"{name}{purpose}: {phrases.nodes(shape.nodes)} {state}, {when}"
    known = shown is not None and shown.id and shown.purpose is not None
    url = reverse("reservation", args=[shown.id]) if known and shown else ""
    return (f"{name} waits" if shape.is_provisional else name), title, url


def _rows(shown: Board, zone: tzinfo) -> list[dict[str, Any]]:
    """The list beside the drawing: one row a shape, by start."""
    rows: list[tuple[datetime, dict[str, Any]]] = []
    for block in shown.blocks:
        for shape in block.shapes:
            label, _, url = _words(shape, zone)
            first, last = block.racks[shape.first_row].name, block.racks[shape.first_row + shape.rows - 1].name
            where = first if shape.rows == 1 else f"{first} to {last}"
            when = phrases.period(shape.start_at, shape.end_at, zone)
            rows.append((shape.start_at, {"cells": [label, f"{block.name} · {where}", when], "url": url}))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]
