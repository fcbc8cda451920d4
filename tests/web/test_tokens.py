"""Can the colours of the console be read, in both themes, and does the stylesheet stay small?"""

import itertools
import re
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[2] / "static" / "console.css"
THEMES = ("light", "dark")
GROUNDS = ("bg", "surface", "sunken")


def _tokens() -> dict[str, tuple[str, str]]:
    pairs = re.findall(r"--([\w-]+):light-dark\((#[0-9a-f]{6}),(#[0-9a-f]{6})\)", CSS.read_text())
    return {name: (light, dark) for name, light, dark in pairs}


TOKENS = _tokens()


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The WCAG contrast of two colours, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _least(token: str, theme: int, grounds: tuple[str, ...] = GROUNDS) -> float:
    return min(contrast(TOKENS[token][theme], TOKENS[ground][theme]) for ground in grounds)


def test_the_contrast_formula_knows_black_on_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize(
    ("token", "light", "dark"),
    [("text", 15.0, 12.8), ("muted", 5.9, 6.9), ("accent", 6.5, 6.6), ("edge", 3.1, 3.8)],
)
def test_text_and_edges_stand_out_on_every_ground(token: str, light: float, dark: float):
    assert _least(token, 0) >= light - 0.05
    assert _least(token, 1) >= dark - 0.05


@pytest.mark.parametrize(
    ("token", "ground", "light", "dark"),
    [
        ("on-accent", "accent", 7.5, 7.7),
        ("good", "good-bg", 4.6, 8.3),
        ("wait", "wait-bg", 4.9, 8.9),
        ("bad", "bad-bg", 7.8, 5.1),
        ("accent", "accent-bg", 6.4, 6.7),
    ],
)
def test_each_tone_can_be_read_on_its_own_ground(token: str, ground: str, light: float, dark: float):
    assert _least(token, 0, (ground,)) >= light - 0.05
    assert _least(token, 1, (ground,)) >= dark - 0.05


@pytest.mark.parametrize("theme", [0, 1], ids=THEMES)
@pytest.mark.parametrize("number", range(1, 7))
def test_each_chart_colour_stands_out_on_a_panel(number: int, theme: int):
    assert _least(f"chart-{number}", theme, ("surface",)) >= 3.0


@pytest.mark.parametrize("theme", [0, 1], ids=THEMES)
def test_each_step_of_the_heat_scale_can_be_told_from_the_next(theme: int):
    steps = [TOKENS[f"heat-{step}"][theme] for step in range(1, 8)]
    assert min(contrast(one, other) for one, other in itertools.pairwise(steps)) >= 1.35


def test_the_stylesheet_stays_below_thirty_kilobytes():
    assert CSS.stat().st_size <= 30_000


def test_every_variable_that_a_rule_reads_is_set_somewhere():
    numbers_set_by_style_attributes = {"h", "w", "x", "r", "n", "rows", "cols"}
    text = CSS.read_text()
    asked = set(re.findall(r"var\(--([\w-]+)", text))
    given = set(re.findall(r"--([\w-]+):", text))
    assert asked - given <= numbers_set_by_style_attributes
