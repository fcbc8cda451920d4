"""Tags and filters that pages use: {% sign %}, {% moment %}, {% period %}, amounts, and the hot drawings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo

from django import template
from django.forms import BoundField
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString

from console.web import layout, phrases

register = template.Library()

register.simple_tag(layout.sign, name="sign")
register.simple_tag(layout.icon, name="icon")
register.simple_tag(layout.rack_map, name="rack_map")
register.simple_tag(layout.rack_key, name="rack_key")
register.simple_tag(layout.strip, name="strip")
register.simple_tag(layout.gauge_bar, name="gauge_bar")
register.simple_tag(layout.board, name="board")
register.filter("rack_rows", layout.rack_rows)
register.filter("gpus", phrases.gpus)
register.filter("gpu_hours", phrases.gpu_hours)
register.filter("racks", phrases.racks)
register.filter("nodes", phrases.nodes)


@register.simple_tag
def sign_shape(shape: str) -> SafeString:
    """Only the drawing; the caller writes the word."""
    return SafeString(layout.sign_shape(shape))


@register.filter
def amount(count: int | float | None, unit: str) -> str:
    """{{ 3|amount:"job" }} -> "3 jobs"."""
    return phrases.amount(count, unit)


@register.filter
def duration(length: object) -> str:
    """A timedelta, or whole minutes, in words: "3 d", "1 h 30 min"."""
    return phrases.duration_words(length if isinstance(length, timedelta) else timedelta(minutes=int(str(length))))


def _now(context: Context) -> datetime:
    now = context.get("now")
    return now if isinstance(now, datetime) else timezone.now()


@register.simple_tag(takes_context=True)
def moment(
    context: Context, at: datetime | None, cluster_zone: tzinfo | None = None, cluster: str = "", short: bool = False
) -> str:
    """A moment in the viewer's zone, UTC on hover, "in 3 h" within 48 h unless `short`; nothing for None."""
    if at is None:
        return ""
    now, zone = _now(context), timezone.get_current_timezone()
    distance = "" if short else phrases.relative(at, now)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>{}',
        at.isoformat(),
        phrases.zones_of(at, cluster_zone, cluster),
        phrases.moment(at, zone, now),
        format_html(' <span class="muted nowrap">{}</span>', distance) if distance else "",
    )


@register.simple_tag(takes_context=True)
def period(
    context: Context, start_at: datetime, end_at: datetime, cluster_zone: tzinfo | None = None, cluster: str = ""
) -> str:
    """A half-open period in the viewer's zone, UTC and the cluster's zone on hover."""
    zones = "\n".join(f"{phrases.zones_of(at, cluster_zone, cluster)}" for at in (start_at, end_at))
    words = phrases.period(start_at, end_at, timezone.get_current_timezone(), _now(context))
    return format_html('<time datetime="{}" title="{}">{}</time>', start_at.isoformat(), zones, words)


@register.simple_tag(takes_context=True)
def countdown(context: Context, until_at: datetime, over: str = "over") -> str:
    """What is left until `until_at`; the page keeps it true without a reload. `over` is the word at the end."""
    now = _now(context)
    words = phrases.duration_words(until_at - now) if until_at > now else over
    return format_html(
        '<time class="countdown n" datetime="{}" data-countdown="{}" title="{}">{}</time>',
        until_at.isoformat(),
        over,
        phrases.zones_of(until_at),
        words,
    )


@register.filter
def zone_name(_: object) -> str:
    """The name of the viewer's zone, said once on each page with a form."""
    return timezone.get_current_timezone_name()


@register.simple_tag(takes_context=True)
def control(context: Context, field: BoundField, hint: str = "") -> SafeString:
    """The widget of a form field, tied to the hint and the error that components/field.html writes beside it."""
    described = [f"{field.id_for_label}_hint"] if hint or field.help_text else []
    if field.errors:
        described.append(f"{field.id_for_label}_error")
    attrs: dict[str, str | bool] = {"aria-invalid": "true"} if field.errors else {}
    was_sent = "request" in context and context["request"].method == "POST"
    if was_sent and field.errors and field.name == next(iter(field.form.errors)):
        attrs["autofocus"] = True  # a refused form opens where something must be put right
    if field.field.required:
        attrs["aria-required"] = "true"
    if described:
        attrs["aria-describedby"] = " ".join(described)
    return field.as_widget(attrs=attrs)


@register.filter
def share_of(part: int | float, whole: int | float) -> float:
    """Percent of `whole` that `part` is; 0 where the whole is nothing."""
    return 100.0 * part / whole if whole else 0.0


@register.simple_tag
def gauge_words(parts: Iterable[tuple[str, float]]) -> str:
    """The parts of a gauge in words, for readers of the page: "50 % used, 22 % held"."""
    return ", ".join(f"{percent:.0f} % {kind.replace('-', ' ')}" for kind, percent in parts)


@register.simple_tag
def figure_data(figure: object, chart_id: str) -> SafeString:
    """The figure of a chart as an inert block of JSON, escaped for HTML."""
    return json_script(figure, f"{chart_id}-figure")


@register.filter
def with_columns(cells: Iterable[object], columns: Iterable[dict[str, object]]) -> list[tuple[object, bool, object]]:
    """Each cell with the label of its column and whether it is a number: (label, number, cell)."""
    return [(column["label"], bool(column.get("number")), cell) for column, cell in zip(columns, cells, strict=True)]
