"""Do the parts of a page say what they are given, escaped, with words beside every shape?"""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils import timezone

from console.web import charts, layout, phrases, ui_examples
from console.web.layout import BlockDrawing, BoardBar, BoardBlock, BoardName, Cell, RackDrawing, StripBar

SUNDAY = datetime(2026, 12, 6, 8, 0, tzinfo=UTC)
ZURICH = ZoneInfo("Europe/Zurich")
NASTY = '"><script>alert(1)</script>'


def _render(source: str, **values: object) -> str:
    return Template("{% load berth %}" + source).render(Context(values))


# Words


def test_a_moment_is_said_in_the_viewers_zone():
    assert phrases.moment(SUNDAY, ZURICH) == "Sun 6 Dec 09:00"


def test_a_moment_of_another_year_says_the_year():
    assert phrases.moment(SUNDAY.replace(year=2027), ZURICH, now=SUNDAY) == "Mon 6 Dec 2027 09:00"


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(hours=3), "in 3 h"),
        (timedelta(minutes=-40), "40 min ago"),
        (timedelta(seconds=20), "now"),
        (timedelta(hours=47), "in 1 d 23 h"),
        (timedelta(hours=49), ""),
    ],
)
def test_a_distance_is_said_within_two_days(distance: timedelta, words: str):
    assert phrases.relative(SUNDAY + distance, SUNDAY) == words


def test_a_period_within_one_day_says_the_day_once():
    assert phrases.period(SUNDAY, SUNDAY + timedelta(hours=6), ZURICH) == "Sun 6 Dec 09:00 to 15:00"


def test_amounts_carry_their_unit():
    words = [phrases.gpus(288), phrases.gpu_hours(20736), phrases.racks(1), phrases.gpus(None), phrases.gpu_hours(1.5)]
    assert words == ["288 GPUs", "20,736 GPU-hours", "1 rack", "unlimited GPUs", "1.5 GPU-hours"]


def test_a_time_shows_utc_and_the_clusters_zone_on_hover():
    with timezone.override(ZURICH):
        html = _render("{% moment at zone 'luna' %}", at=SUNDAY, zone=ZoneInfo("America/New_York"), now=SUNDAY)
    assert "Sun 6 Dec 09:00" in html
    assert "Sun 6 Dec 08:00 UTC\nSun 6 Dec 03:00 at luna (America/New_York)" in html


# Signs


@pytest.mark.parametrize("shape", layout.SIGN_TONES)
def test_each_sign_has_its_one_tone_and_its_word(shape: str):
    html = layout.sign(shape, "verified 12:03")
    assert f"#sign-{shape}" in html and "verified 12:03" in html and layout.SIGN_TONES[shape] in html


def test_an_unknown_sign_is_refused():
    with pytest.raises(ValueError, match="the signs are disc, half"):
        layout.sign("star", "bright")


# Drawings


def _block(*states: str, name: str = "r22") -> BlockDrawing:
    cells = [Cell(f"gb{at:03d}", state) for at, state in enumerate(states)]
    return BlockDrawing("b2", [RackDrawing(name, cells, picked="yours" in states)])


def test_a_rack_says_in_words_what_its_cells_show():
    assert layout.rack_words(_block("yours", "yours", "spare").racks[0]) == "r22: picked for you, 2 yours, 1 spare"


def test_the_table_beside_the_map_holds_the_same_facts():
    assert layout.rack_rows([_block("held", "bad")]) == [("b2", "r22", "1 held by others, 1 bad node")]


def test_the_key_names_only_what_is_on_the_map():
    key = layout.rack_key([_block("held", "free")])
    assert "held by others" in key and "free" in key and "outage" not in key


def test_names_from_outside_are_escaped_in_every_drawing():
    drawings = [
        layout.rack_map([_block("held", name=NASTY)]),
        layout.strip([StripBar(NASTY, NASTY, NASTY, 50, True)]),
        layout.board(
            [
                BoardBlock(
                    NASTY, [BoardName(NASTY, "cross", NASTY)], [BoardBar(0, 1, 0, 1, "mine", NASTY, NASTY, NASTY)]
                )
            ],
            [(0, NASTY)],
            1,
            NASTY,
        ),
        layout.gauge_bar([("used", 5)], NASTY),
        layout.sign("disc", NASTY, NASTY),
    ]
    assert all("<script" not in drawing and "alert(1)" in drawing for drawing in drawings)


def test_style_attributes_hold_only_numbers():
    html = render_to_string("ui.html", ui_examples.context())
    styles = re.findall(r'style="([^"]*)"', html)
    assert styles and all(re.fullmatch(r"(--[a-z]+:-?[\d.]+;?)+", style) for style in styles)


def test_the_strip_marks_what_fits_and_what_is_chosen():
    html = layout.strip(
        [StripBar("a", "6", "Sun 6 Dec: 6 racks free", 75, True, True), StripBar("b", "7", "Mon", 10, False)]
    )
    chosen, other = re.findall(r"<button.*?</button>", html)
    assert 'aria-pressed="true"' in chosen and "class=fits" in chosen and 'value="a"' in chosen
    assert 'aria-pressed="false"' in other and "class=fits" not in other


def test_a_reservation_on_neighbouring_racks_is_one_shape_on_the_board():
    block = BoardBlock(
        "b1",
        [BoardName(f"r0{n}") for n in range(1, 5)],
        [BoardBar(10, 30, 1, 4, "mine", "R-118", "R-118, 4 racks", "/reservations/R-118")],
    )
    html = layout.board_block(block)
    assert html.count('href="/reservations/R-118"') == 1 and "--r:1;--n:4" in html


def test_a_folded_block_draws_its_density_and_no_shape():
    block = BoardBlock(
        "b1", [BoardName("r01")], [BoardBar(0, 9, 1, 1, "mine", "R-1", "R-1")], [(0, 50, 20)], folded=True
    )
    html = layout.board_block(block)
    assert "density" in html and "R-1" not in html and "r01" not in html


# Fields


def test_a_wrong_field_keeps_what_was_typed_and_points_to_its_error():
    form = ui_examples.ExampleForm({"team": "speech", "racks": "0", "duration": "soon", "purpose": "x"})
    html = render_to_string("components/field.html", {"field": form["racks"]})
    assert 'value="0"' in html and 'aria-invalid="true"' in html
    described = re.search(r'aria-describedby="([^"]+)"', html)
    assert described and all(f'id="{one}"' in html for one in described[1].split())


def test_a_cell_of_a_table_is_text_unless_it_is_marked_safe():
    columns = [{"label": "Team"}, {"label": "GPUs", "number": True}]
    html = render_to_string(
        "components/data_table.html",
        {"columns": columns, "rows": [{"cells": [NASTY, layout.sign("tick", "ok")]}], "caption": "Teams"},
    )
    assert "<script" not in html and '<span class="sign good"' in html and 'data-label="GPUs"' in html


# Charts


def test_a_figure_names_tones_and_no_colours():
    for figure in (ui_examples.example_ledger(), ui_examples.example_burn()):
        assert all(trace["meta"]["tone"] for trace in figure["data"])
        assert not re.search(r"#[0-9a-f]{6}|rgb", str(figure))


def test_the_ledger_is_stacked_in_its_fixed_order():
    names = [trace["name"] for trace in ui_examples.example_ledger()["data"]]
    assert names == [name for name in charts.LEDGER_TONES if name in names] and len(names) == 4


def test_a_seventh_series_is_summed_up_as_others():
    lines = {f"team {n}": [n, n] for n in range(8)}
    figure = charts.series([SUNDAY, SUNDAY + timedelta(days=1)], lines, "GPUs", SUNDAY)
    assert [trace["name"] for trace in figure["data"]][6:] == ["others"]
    assert list(figure["data"][6]["y"]) == [13, 13]
