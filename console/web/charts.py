"""Which figures do the pages draw? plotly figures built here, with tones instead of colours, as plain JSON values.

A trace's `meta` names a tone ("chart-1", "bad", ...) that the browser turns into the colour of the theme in use, so a
figure is right in light and dark alike. Every page that shows a figure also says its summary in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import plotly.graph_objects as go
from django.utils import timezone

Json = dict[str, Any]

FUTURE_ALPHA = 0.55
HEAT_SCALE = [f"heat-{step}" for step in range(1, 8)]
DATE_TICKS = [
    {"dtickrange": [None, 86_400_000 - 1], "value": "%H:%M\n%-d %b"},
    {"dtickrange": [86_400_000, "M1"], "value": "%-d %b"},
    {"dtickrange": ["M1", None], "value": "%b\n%Y"},
]
"""How dates read under an axis, by the distance of its ticks."""
LEDGER_TONES = {
    "reserved": "chart-1",
    "guaranteed": "chart-3",
    "borrowed": "chart-4",
    "unhealthy": "bad",
    "outage": "edge",
}
"""The layers of the ledger, bottom to top."""


def _json(figure: go.Figure, height_pixels: int = 240, **layout: Any) -> Json:
    """The figure as JSON values with the lay-out that all charts share; no legend, labels stand at the lines."""
    figure.update_layout(
        height=height_pixels,
        margin={"l": 48, "r": 72, "t": 8, "b": 32},
        showlegend=False,
        hovermode="x unified",
        bargap=0.15,
        **layout,
    )
    figure.update_xaxes(tickformatstops=DATE_TICKS)
    figure.update_yaxes(automargin=True)
    figure.update_layout(template={"data": {}, "layout": {}})
    value: Json = json.loads(figure.to_json(validate=False))
    value["layout"].pop("template", None)
    return value


def _local(at: datetime) -> datetime:
    """The wall clock of the viewer's zone: plotly reads no offsets."""
    return timezone.make_naive(at)


def _label(figure: go.Figure, words: str, x: Any, y: float, tone: str) -> None:
    """Write the name of a line or area at its right end."""
    figure.add_annotation(x=x, y=y, text=words, name=tone, showarrow=False, xanchor="left", xshift=6)


def _now_line(figure: go.Figure, now: datetime) -> None:
    figure.add_shape(
        type="line",
        x0=_local(now),
        x1=_local(now),
        y0=0,
        y1=1,
        yref="paper",
        line={"width": 1, "dash": "dot"},
        name="text",
    )


def ledger(times: Sequence[datetime], layers: Mapping[str, Sequence[int]], now: datetime, capacity_gpus: int) -> Json:
    """GPUs promised over time, stacked in the order of LEDGER_TONES; steps hold from each time to the next one."""
    figure = go.Figure()
    top = [0] * len(times)
    for name in (one for one in LEDGER_TONES if one in layers):
        values = layers[name]
        figure.add_scatter(
            mode="lines",
            x=[_local(at) for at in times],
            y=list(values),
            name=name,
            stackgroup="ledger",
            line={"shape": "hv", "width": 1},
            meta={"tone": LEDGER_TONES[name], "fill": FUTURE_ALPHA},
            hovertemplate="%{y:,} GPUs",
        )
        if values and values[-1]:
            _label(figure, name, _local(times[-1]), top[-1] + values[-1] / 2, "text")
        top = [below + value for below, value in zip(top, values, strict=True)]
    figure.add_shape(
        type="line", x0=0, x1=1, xref="paper", y0=capacity_gpus, y1=capacity_gpus, line={"width": 1}, name="edge"
    )
    _now_line(figure, now)
    return _json(figure, yaxis={"rangemode": "tozero", "tickformat": ","})


def burn_down(
    times: Sequence[datetime],
    left_gpu_hours: Sequence[float],
    forecast: Sequence[tuple[datetime, float, float, float]],
    granted_gpu_hours: float,
    now: datetime,
) -> Json:
    """What is left of a budget: the past a line; `forecast` (time, low, median, high), a band with a dashed median."""
    figure = go.Figure()
    figure.add_scatter(
        mode="lines",
        x=[_local(at) for at in times],
        y=list(left_gpu_hours),
        name="left",
        line={"width": 2},
        meta={"tone": "chart-1"},
        hovertemplate="%{y:,.0f} GPU-hours",
    )
    if forecast:
        ahead = [_local(at) for at, *_ in forecast]
        figure.add_scatter(
            mode="lines",
            x=ahead + ahead[::-1],
            y=[high for *_, high in forecast] + [low for _, low, *_ in reversed(forecast)],
            name="range",
            fill="toself",
            line={"width": 0},
            meta={"tone": "chart-1", "fill": 0.2},
            hoverinfo="skip",
        )
        figure.add_scatter(
            mode="lines",
            x=ahead,
            y=[median for _, _, median, _ in forecast],
            name="forecast",
            line={"dash": "dash", "width": 1.5},
            meta={"tone": "chart-1"},
            hovertemplate="%{y:,.0f} GPU-hours",
        )
        _label(figure, "forecast", ahead[-1], forecast[-1][2], "muted")
    _now_line(figure, now)
    return _json(figure, yaxis={"range": [0, granted_gpu_hours * 1.04], "tickformat": ","})


def bars(labels: Sequence[str], values: Sequence[float], unit: str, tone: str = "chart-1") -> Json:
    """One amount per label, lying, so that long names can be read; the first label is on top."""
    figure = go.Figure(
        go.Bar(
            x=list(values),
            y=list(labels),
            orientation="h",
            meta={"tone": tone},
            text=[f"{value:,.0f}" for value in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:,} " + unit + "<extra></extra>",
        )
    )
    figure.update_layout(hovermode="closest")
    value = _json(
        figure,
        height_pixels=max(120, 28 * len(labels) + 48),
        xaxis={"tickformat": ",", "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "automargin": True},
    )
    value["layout"]["hovermode"] = "closest"
    return value


def series(times: Sequence[datetime], lines: Mapping[str, Sequence[float]], unit: str, now: datetime) -> Json:
    """Up to six lines over time in the order given, named at their ends; further ones are summed up as "others"."""
    figure = go.Figure()
    names = list(lines)
    shown: list[tuple[str, Sequence[float], str]] = [
        (name, lines[name], f"chart-{index}") for index, name in enumerate(names[:6], start=1)
    ]
    if len(names) > 6:
        shown.append(("others", [sum(values) for values in zip(*(lines[n] for n in names[6:]), strict=True)], "edge"))
    for name, values, tone in shown:
        figure.add_scatter(
            mode="lines",
            x=[_local(at) for at in times],
            y=list(values),
            name=name,
            line={"width": 1.5},
            meta={"tone": tone},
            hovertemplate="%{y:,} " + unit,
        )
        if values:
            _label(figure, name, _local(times[-1]), values[-1], "text")
    _now_line(figure, now)
    return _json(figure, yaxis={"rangemode": "tozero", "tickformat": ","})


def heat(columns: Sequence[Any], rows: Sequence[str], shares: Sequence[Sequence[float]]) -> Json:
    """A share between 0 and 1 for each row and column, dark where it is high."""
    figure = go.Figure(
        go.Heatmap(
            x=list(columns),
            y=list(rows),
            z=[list(row) for row in shares],
            zmin=0,
            zmax=1,
            xgap=1,
            ygap=1,
            showscale=False,
            meta={"scale": HEAT_SCALE},
            hovertemplate="%{y}, %{x}: %{z:.0%}<extra></extra>",
        )
    )
    value = _json(figure, height_pixels=max(120, 24 * len(rows) + 48), yaxis={"autorange": "reversed"})
    value["layout"]["hovermode"] = "closest"
    return value
