"""How the hot drawings of a page are made: signs, rack map, strip, gauge and board, as plain strings.

Templates are too slow for thousands of cells, so these are f-strings. Whatever comes from outside passes `escape`;
style attributes hold only numbers computed here. Every function is pure and returns safe HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from django.templatetags.static import static
from django.utils.safestring import SafeString, mark_safe

SIGN_TONES = {
    "disc": "accent",
    "half": "muted",
    "triangle": "wait",
    "tick": "good",
    "cross": "bad",
    "ring": "muted",
    "hatch": "muted",
}
"""The seven signs and the one tone that each of them has."""

CELL_WORDS = {
    "free": "free",
    "held": "held by others",
    "yours": "yours",
    "mine-provisional": "yours, provisional",
    "spare": "spare",
    "outage": "outage",
    "drained": "drained",
    "bad": "bad node",
}
"""The states of a node on the rack map, with the word each of them is called by."""

BAR_KINDS = {"others": "", "mine": "mine", "provisional": "provisional", "outage": "outage", "bad": "bad"}


@dataclass(frozen=True)
class Cell:
    """One node on the rack map: its name, its state (a key of CELL_WORDS) and what else to say about it."""

    node: str
    state: str
    note: str = ""


@dataclass(frozen=True)
class RackDrawing:
    """One rack: cells in node order; `picked` draws the outline; `url` makes the rack a link."""

    name: str
    cells: Sequence[Cell]
    picked: bool = False
    note: str = ""
    url: str = ""


@dataclass(frozen=True)
class BlockDrawing:
    """One block of racks; `name` is the caption under it, such as "block b1"."""

    name: str
    racks: Sequence[RackDrawing]


@dataclass(frozen=True)
class StripBar:
    """One possible start: how much is free (0 to 100 percent of the height), whether the ask fits, and its words."""

    value: str
    label: str
    title: str
    height_percent: float
    fits: bool
    selected: bool = False


@dataclass(frozen=True)
class BoardBar:
    """One shape on the board: percent of the window's width, first row and rows within its block."""

    left_percent: float
    width_percent: float
    row: int
    rows: int
    kind: str
    label: str
    title: str
    url: str = ""


@dataclass(frozen=True)
class BoardName:
    """The name of one row, with a sign's shape and word when something is wrong there ("cross", "1 bad node")."""

    label: str
    shape: str = ""
    word: str = ""


@dataclass(frozen=True)
class BoardBlock:
    """One block of the board. Folded, `density` draws the share of free racks; else `names` and `bars` draw rows."""

    name: str
    names: Sequence[BoardName] = ()
    bars: Sequence[BoardBar] = ()
    density: Sequence[tuple[float, float, float]] = ()
    """Steps of (left percent, width percent, height percent)."""
    folded: bool = False
    fold_url: str = ""


def sign_shape(shape: str) -> str:
    """The drawing of one sign, hidden from readers of the page because its word always stands beside it."""
    if shape not in SIGN_TONES:
        raise ValueError(f"No sign is called {shape!r}; the signs are {', '.join(SIGN_TONES)}.")
    tone = SIGN_TONES[shape]
    return f'<svg class="sign-shape {tone}" aria-hidden="true"><use href="{static("icons.svg")}#sign-{shape}"/></svg>'


def sign(shape: str, word: str, title: str = "", plain: bool = False) -> SafeString:
    """One shape, one tone, one word. `plain` leaves out the pill, for rows that hold many signs."""
    hover = f' title="{escape(title)}"' if title else ""
    classes = f"sign {SIGN_TONES.get(shape, '')}{' plain' if plain else ''}"
    return mark_safe(f'<span class="{classes}"{hover}>{sign_shape(shape)}{escape(str(word))}</span>')


def icon(name: str) -> SafeString:
    """One icon of the sprite, decoration only: the words beside it name the deed."""
    return mark_safe(f'<svg class="icon" aria-hidden="true"><use href="{static("icons.svg")}#{escape(name)}"/></svg>')


def rack_words(rack: RackDrawing) -> str:
    """What a rack holds in one line: "r22: 17 yours, 1 spare"."""
    counts = Counter(cell.state for cell in rack.cells)
    parts = [f"{counts[state]} {word}" for state, word in CELL_WORDS.items() if counts[state]]
    picked = "picked for you, " if rack.picked else ""
    note = f"; {rack.note}" if rack.note else ""
    return f"{rack.name}: {picked}{', '.join(parts) or 'no nodes'}{note}"


def rack(drawing: RackDrawing) -> str:
    """One rack as a column of cells; its name says the counts, each cell's tooltip its node."""
    cells = "".join(
        f'<i class="{escape(cell.state)}" title="{escape(cell.node)}: '
        f'{escape(cell.note or CELL_WORDS[cell.state])}"></i>'
        for cell in drawing.cells
    )
    classes = "rack" + (" picked" if drawing.picked else "") + (" many" if len(drawing.cells) > 24 else "")
    words = escape(rack_words(drawing))
    if drawing.url:
        column = f'<a class="{classes}" href="{escape(drawing.url)}" aria-label="{words}">{cells}</a>'
    else:
        column = f'<div class="{classes}" role="img" aria-label="{words}">{cells}</div>'
    bad_nodes = sum(cell.state == "bad" for cell in drawing.cells)
    mark = f' <b class="bad-count">✕{bad_nodes}</b>' if bad_nodes else ""
    return f'<li>{column}<span aria-hidden="true">{escape(drawing.name)}{mark}</span></li>'


def rack_map(blocks: Iterable[BlockDrawing]) -> SafeString:
    """Blocks of racks of nodes: where something is. The table of the same facts is `rack_rows`."""
    figures = "".join(
        f'<figure><ul class="racks">{"".join(rack(one) for one in block.racks)}</ul>'
        f"<figcaption>{escape(block.name)}</figcaption></figure>"
        for block in blocks
    )
    return mark_safe(f'<div class="rack-map">{figures}</div>')


def rack_rows(blocks: Iterable[BlockDrawing]) -> list[tuple[str, str, str]]:
    """The same facts as rows (block, rack, what it holds) for the table beside the map."""
    return [(block.name, one.name, rack_words(one).partition(": ")[2]) for block in blocks for one in block.racks]


def rack_key(blocks: Iterable[BlockDrawing]) -> SafeString:
    """The key of the states that are on this map, in a fixed order."""
    seen = {cell.state for block in blocks for one in block.racks for cell in one.cells}
    entries = "".join(f'<li><i class="{state}"></i>{word}</li>' for state, word in CELL_WORDS.items() if state in seen)
    return mark_safe(f'<ul class="key">{entries}</ul>')


def strip(bars: Iterable[StripBar], name: str = "start_at", attributes: str = "") -> SafeString:
    """The possible starts as a row of buttons (type=button) named `name`; `attributes` is trusted hx-… markup."""
    buttons = "".join(
        f'<button type="button" name="{escape(name)}" value="{escape(bar.value)}" {attributes}'
        f' aria-pressed="{"true" if bar.selected else "false"}"{" class=fits" if bar.fits else ""}'
        f' aria-label="{escape(bar.title)}" title="{escape(bar.title)}">'
        f'<i style="--h:{bar.height_percent:.1f}"></i><em>{escape(bar.label)}</em></button>'
        for bar in bars
    )
    return mark_safe(f'<div class="strip" role="group" aria-label="Possible starts" data-roving>{buttons}</div>')


def gauge_bar(parts: Iterable[tuple[str, float]], words: str) -> SafeString:
    """A bar filled by (kind, percent) parts, kinds used | held | over-limit; `words` says the same to readers."""
    fills = "".join(f'<i class="{escape(kind)}" style="--w:{min(100.0, percent):.1f}"></i>' for kind, percent in parts)
    return mark_safe(f'<div class="bar" role="img" aria-label="{escape(words)}">{fills}</div>')


def board_bar(bar: BoardBar) -> str:
    """One reservation, outage or bad node as one shape and one tab stop."""
    tag, where = ("a", f' href="{escape(bar.url)}"') if bar.url else ("button", ' type="button"')
    kind = f"bar-shape {BAR_KINDS[bar.kind]}".strip()
    place = f"--x:{bar.left_percent:.3f};--w:{bar.width_percent:.3f};--r:{bar.row};--n:{bar.rows}"
    title = escape(bar.title)
    return (
        f'<{tag}{where} class="{kind}" style="{place}" aria-label="{title}" title="{title}">{escape(bar.label)}</{tag}>'
    )


def board_name(name: BoardName) -> str:
    """The name of one row; what is wrong there is a sign whose word readers of the page hear."""
    mark = ""
    if name.shape:
        word = escape(name.word)
        mark = (
            f' <span class="sign plain {SIGN_TONES[name.shape]}" title="{word}">'
            f'{sign_shape(name.shape)}<span class="sr">{word}</span></span>'
        )
    return f"<span>{escape(name.label)}{mark}</span>"


def board_block(block: BoardBlock, now_percent: float | None = None) -> SafeString:
    """One block: its names on the left, its lanes on the right; a density row when folded."""
    now = f'<i class="now" style="--x:{now_percent:.3f}"></i>' if now_percent is not None else ""
    names = "" if block.folded else "".join(board_name(name) for name in block.names)
    fold = icon("chevron-right" if block.folded else "chevron-down")
    head = (
        f'<button type="button" aria-expanded="{"false" if block.folded else "true"}" data-fold'
        f' hx-get="{escape(block.fold_url)}" hx-target="closest .block" hx-swap="outerHTML">{fold}'
        f"{escape(block.name)}</button>"
        if block.fold_url
        else f"<b>{escape(block.name)}</b>"
    )
    steps = "".join(
        f'<i class="density" style="--x:{left:.3f};--w:{width:.3f};--h:{height:.1f}"></i>'
        for left, width, height in block.density
    )
    bars = "" if block.folded else "".join(board_bar(bar) for bar in block.bars)
    rows = 1 if block.folded else len(block.names) + 1
    return mark_safe(
        f'<section class="block" aria-label="{escape(block.name)}"><div class="names">{head}{names}</div>'
        f'<div class="lanes" style="--rows:{rows}">{steps}{bars}{now}</div></section>'
    )


def board_axis(labels: Iterable[tuple[float, str]], now_percent: float | None = None, now_time: str = "") -> SafeString:
    """The head of the board: (left percent, label) per day or hour, and the time on the now line."""
    marks = "".join(f'<span style="--x:{left:.3f}">{escape(label)}</span>' for left, label in labels)
    if now_percent is not None:
        marks += f'<span class="now-time" style="--x:{now_percent:.3f}">{escape(now_time)}</span>'
    return mark_safe(f'<div class="axis"><b>Rack</b><div>{marks}</div></div>')


def board(
    blocks: Iterable[BoardBlock],
    labels: Sequence[tuple[float, str]],
    now_percent: float | None = None,
    now_time: str = "",
) -> SafeString:
    """The whole board: who has what, when. Rows are racks, columns are `len(labels)` equal parts of the window."""
    body = "".join(board_block(block, now_percent) for block in blocks)
    axis = board_axis(labels, now_percent, now_time)
    return mark_safe(
        f'<div class="board" style="--cols:{max(1, len(labels))}" role="region" aria-label="Racks by time"'
        f' tabindex="0">{axis}{body}</div>'
    )
