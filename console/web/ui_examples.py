"""Which examples show each component in each of its states? Values for the page /ui/, free of rows and clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms

from console.web import charts
from console.web.layout import (
    SIGN_TONES,
    BlockDrawing,
    BoardBar,
    BoardBlock,
    BoardName,
    Cell,
    RackDrawing,
    StripBar,
    sign,
)

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
DAY = timedelta(days=1)
SIGN_WORDS = {
    "disc": ("active", "applying"),
    "half": ("scheduled", "not due until 08:30", "held"),
    "triangle": ("waits for Grace", "counter-offer", "drift, 2 objects", "runs dry 19-23 Dec"),
    "tick": ("verified 12:03", "in step", "healthy", "fits"),
    "cross": ("failed", "rejected", "unreachable"),
    "ring": ("free", "draft", "over", "withdrawn"),
    "hatch": ("outage", "drained"),
}
RACK_STATES = {
    "busy": ["held"] * 18,
    "free": ["free"] * 18,
    "half": ["held"] * 9 + ["free"] * 9,
    "out": ["outage"] * 18,
    "picked": ["yours"] * 17 + ["spare"],
    "waits": ["mine-provisional"] * 17 + ["spare"],
    "broken": ["held"] * 6 + ["bad"] + ["held"] * 10 + ["drained"],
}
FLEET = {
    "b1": "busy busy broken busy half busy out out",
    "b2": "free picked picked picked picked free busy busy",
    "b3": "busy free waits waits busy busy busy free",
}
STRIP_RACKS = (1, 2, 2, 3, 3, 6, 7, 7, 8, 5, 2, 1, 3, 4, 6, 8, 8, 8, 3, 2, 5)


class ExampleForm(forms.Form):
    """A form with a hint, a choice and an error."""

    team = forms.ChoiceField(label="Team", choices=[("vision/pretrain", "vision / pretrain"), ("speech", "speech")])
    racks = forms.IntegerField(label="Racks", min_value=1, help_text="272 GPUs, 16 more spare")
    duration = forms.CharField(label="For", help_text="A number and a unit: 3 days, 12 hours")
    purpose = forms.CharField(label="What for", help_text="Approvers read this first")


def rack_blocks() -> list[BlockDrawing]:
    """Three blocks in which every state of a node can be seen."""
    blocks = []
    for block, (name, kinds) in enumerate(FLEET.items(), start=1):
        racks = []
        for at, kind in enumerate(kinds.split(), start=1):
            cells = [Cell(f"gb{(block * 8 + at) * 18 + n:03d}", state) for n, state in enumerate(RACK_STATES[kind])]
            racks.append(
                RackDrawing(f"r{block}{at}", cells, picked=kind == "picked", note="M-7 firmware" * (kind == "out"))
            )
        blocks.append(BlockDrawing(f"block {name}", racks))
    return blocks


def strip_bars() -> list[StripBar]:
    """Three weeks of possible starts, four racks asked, the sixth day chosen."""
    bars = []
    for day, racks in enumerate(STRIP_RACKS):
        at, fits = NOW + day * DAY, racks >= 4
        words = f"{at:%a} {at.day} Dec: {racks} racks free, your ask {'fits' if fits else 'does not fit'}"
        bars.append(StripBar(at.isoformat(), str(at.day), words, 100 * racks / 8, fits, selected=day == 5))
    return bars


def board_blocks() -> list[BoardBlock]:
    """One unfolded block with every kind of shape, one folded one."""
    names = [BoardName(f"r{n:02d}") for n in range(1, 9)]
    names[5] = BoardName("r06", "cross", "1 bad node")
    shapes = [
        (0, 18, 0, 1, "others", "speech"),
        (0, 28, 1, 2, "others", "llm-eval"),
        (21, 30, 3, 4, "mine", "R-118 Scaling run"),
        (56, 22, 0, 3, "provisional", "R-131 waits for Grace, 3 h left"),
        (40, 16, 7, 1, "outage", "M-7 firmware"),
        (6, 5, 5, 1, "bad", "gb044"),
        (60, 38, 3, 2, "others", "infra"),
    ]
    bars = [
        BoardBar(x, w, row + 1, rows, kind, label, f"{label}: sol, {rows} racks", "#board")
        for x, w, row, rows, kind, label in shapes
    ]
    density = [
        (x * 100 / 14, 100 / 14, height)
        for x, height in enumerate([20, 20, 35, 35, 60, 80, 80, 60, 45, 45, 30, 20, 55, 70])
    ]
    return [
        BoardBlock("b1", names, bars, fold_url="#board"),
        BoardBlock("b2", folded=True, density=density, fold_url="#board"),
    ]


def example_ledger() -> dict[str, Any]:
    """A fortnight of promises on 576 GPUs."""
    times = [NOW + day * DAY for day in range(-7, 15)]
    return charts.ledger(
        times,
        {
            "reserved": [144 if 0 <= day < 6 else 72 for day in range(22)],
            "guaranteed": [288] * 22,
            "borrowed": [72 if day % 5 else 36 for day in range(22)],
            "unhealthy": [8] * 22,
        },
        NOW,
        576,
    )


def example_burn() -> dict[str, Any]:
    """A budget that runs dry before its end."""
    past = [NOW + day * DAY for day in range(-30, 1)]
    left = [2_400_000 - 62_000 * day for day in range(31)]
    ahead = [
        (
            NOW + day * DAY,
            max(0, 540_000 - 34_000 * day),
            max(0, 540_000 - 28_000 * day),
            max(0, 540_000 - 22_000 * day),
        )
        for day in range(0, 24, 2)
    ]
    return charts.burn_down(past, left, ahead, 2_400_000, NOW)


def _table() -> dict[str, Any]:
    return {
        "columns": [
            {"label": "Reservation", "sort_url": "#table", "sorted": "ascending"},
            {"label": "Where"},
            {"label": "When", "sort_url": "#table"},
            {"label": "GPUs", "number": True},
            {"label": "Phase"},
            {"label": "On the cluster"},
        ],
        "rows": [
            {
                "url": "#table",
                "cells": [
                    "R-118 Pretrain B",
                    "sol, 8 racks",
                    "now, 2 d 4 h left",
                    "576",
                    sign("disc", "active"),
                    sign("tick", "verified 12:03"),
                ],
            },
            {
                "url": "#table",
                "selected": True,
                "cells": [
                    "R-127 Eval weekly",
                    "sol, 1 rack",
                    "Thu 09:00, 6 h",
                    "72",
                    sign("half", "scheduled"),
                    sign("tick", "verified 12:03"),
                ],
            },
            {
                "url": "#table",
                "cells": [
                    "R-131 Scaling run",
                    "sol, 4 racks",
                    "Sun 6 Dec, 3 d",
                    "288",
                    sign("triangle", "waits for Grace"),
                    sign("ring", "not yet"),
                ],
            },
        ],
    }


def _words() -> dict[str, Any]:
    return {
        "reasons": [
            {
                "sentence": "R-118 (speech) holds r22.",
                "by": [{"id": "R-118", "url": "#answer", "until_at": NOW + 8 * DAY}],
            },
            {"sentence": "M-7 keeps r23 out.", "shape": "hatch", "by": [{"id": "M-7", "until_at": NOW + 2 * DAY}]},
        ],
        "alternatives": [
            {
                "title": "Start Wed 2 Dec 14:00 with 3 racks",
                "detail": "4 days sooner, 72 GPUs fewer",
                "value": "smaller",
            },
            {
                "title": "Start Tue 1 Dec 09:00 over two blocks (2 + 2)",
                "detail": "5 days sooner, traffic crosses the spine",
                "value": "split",
            },
            {
                "title": "Wait for it",
                "detail": "You hear as soon as 4 racks of one block are free",
                "value": "wait",
                "label": "Wait",
            },
        ],
        "effects": [
            {
                "sentence": "4 racks of sol go back to the pool.",
                "detail": "r22 to r25, 288 GPUs, from now until Wed 9 Dec 09:00.",
            },
            {"sentence": "2 running jobs keep running outside the reservation.", "shape": "triangle"},
            {"sentence": "Nobody else loses anything.", "shape": "tick"},
        ],
        "steps": [
            {
                "number": "1",
                "deed": "update",
                "subject": "account vision",
                "change": "GrpTRES gpu 512 → 576",
                "command": "sacctmgr -i modify account where name=vision set GrpTRES=gres/gpu=576",
                "shape": "tick",
                "state": "verified 12:03",
            },
            {
                "number": "2",
                "deed": "create",
                "subject": "reservation berth-R-131",
                "change": "nodes gb[037-108]",
                "command": "scontrol create reservation ReservationName=berth-R-131 Nodes=gb[037-108]",
                "shape": "disc",
                "state": "applying",
            },
            {
                "number": "3",
                "deed": "update",
                "subject": "user limits",
                "change": "",
                "compromise": "MaxWall per user: Berth enforces it",
                "shape": "ring",
                "state": "waits for 2",
            },
        ],
        "lines": [
            ("same", "accounts=vision"),
            ("del", "GrpTRES=gres/gpu=512"),
            ("add", "GrpTRES=gres/gpu=576"),
            ("same", "fairshare=20"),
        ],
        "events": [
            {"at": NOW - timedelta(hours=3), "sentence": "R-131 asked for 4 racks on sol", "actor": "Ada Byron"},
            {
                "at": NOW - timedelta(hours=2),
                "sentence": "R-131 approved",
                "actor": "Grace Hopper",
                "shape": "tick",
                "reason": "Last run before the deadline.",
            },
            {"at": NOW - timedelta(hours=1), "sentence": "sol did not answer", "actor": "Berth", "shape": "cross"},
        ],
    }


def context() -> dict[str, Any]:
    """Everything that ui.html shows."""
    wrong = ExampleForm({"team": "speech", "racks": "0", "duration": "soon", "purpose": ""})
    wrong.is_valid()
    wrong.add_error("duration", "“soon” is no length of time. Write 3 days or 12 hours.")
    return {
        "title": "Components",
        "now": NOW,
        "nav": [
            {"label": name, "url": f"#{name}", "current": name == "Fleet"}
            for name in ("Home", "Board", "Reservations", "Teams", "Fleet", "Clusters")
        ],
        "inbox_count": 2,
        "signs": [(shape, word) for shape in SIGN_TONES for word in SIGN_WORDS[shape]],
        "blocks": rack_blocks(),
        "bars": strip_bars(),
        "board_blocks": board_blocks(),
        "labels": [(day * 100 / 14, f"{NOW + day * DAY:%a} {(NOW + day * DAY).day}") for day in range(14)],
        "table": _table(),
        "form": ExampleForm(
            auto_id="ok_%s", initial={"racks": 4, "duration": "3 days", "purpose": "Scaling run, 1.2T"}
        ),
        "wrong_form": wrong,
        "start_at": NOW + 5 * DAY,
        "end_at": NOW + 8 * DAY,
        "soon_at": NOW + timedelta(hours=3),
        "gauge_parts": [("used", 50.0), ("held", 22.0)],
        "gauge_over": [("used", 88.0), ("over-limit", 12.0)],
        "three": {
            "decision": {"shape": "tick", "word": "approved"},
            "phase": {"shape": "half", "word": "scheduled"},
            "cluster": {"shape": "triangle", "word": "drift, 1 object"},
        },
        "filters": [
            {
                "name": "cluster",
                "label": "Cluster",
                "value": "sol",
                "options": [("", "any"), ("sol", "sol"), ("luna", "luna")],
            },
            {"name": "phase", "label": "Phase", "value": "", "options": [("", "any"), ("active", "active")]},
        ],
        "banners": [
            {
                "tone": "wait",
                "sentence": "sol is frozen: nothing is written there. Kim froze it at 11:40.",
                "url": "#banner",
                "label": "See why",
            },
            {"tone": "bad", "shape": "cross", "sentence": "sol has not answered since 11:52. Shown: as read then."},
            {"tone": "tick", "shape": "tick", "sentence": "Gone from sol, verified 12:04."},
        ],
        "team": [{"name": "research"}, {"name": "vision", "url": "#team"}, {"name": "pretrain", "url": "#team"}],
        "person": {"name": "Ada Byron", "url": "#person"},
        "ledger": example_ledger(),
        "burn": example_burn(),
        **_words(),
    }
