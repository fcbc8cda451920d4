"""How do the calendar's answers become drawings? (map, strip and the words for racks, from plain values)"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import pairwise

from console.web import phrases
from console.web.layout import BlockDrawing, Cell, RackDrawing, StripBar
from reservations.fleet_map import NO_RACK, MapBlock, MapCell, natural
from reservations.moments import moment_of
from scheduling import answers
from scheduling.hostlist import fold

BLOCK_WORDS = {"": "Racks without a block", NO_RACK: "Nodes without a rack"}
MOST_NAMED = 6  # racks spelled out one by one; more are folded


def map_drawing(blocks: Iterable[MapBlock], zone: tzinfo) -> list[BlockDrawing]:
    """The rack map: every node with its state, and on hover who has it until when."""
    return [
        BlockDrawing(
            BLOCK_WORDS.get(block.name) or f"block {block.name}",
            [
                RackDrawing(
                    rack.name,
                    [Cell(cell.node, cell.state.replace("_", "-"), cell_note(cell, zone)) for cell in rack.cells],
                    picked=rack.is_picked,
                    note="" if rack.nvlink == "ok" else f"NVLink {rack.nvlink}",
                )
                for rack in block.racks
            ],
        )
        for block in blocks
    ]


def provisional(blocks: Iterable[BlockDrawing], nodes: Collection[str]) -> list[BlockDrawing]:
    """The same map with these nodes shown as held, not yet granted."""
    return [
        replace(
            block,
            racks=[
                replace(
                    rack,
                    cells=[
                        replace(cell, state="mine-provisional") if cell.node in nodes else cell for cell in rack.cells
                    ],
                )
                for rack in block.racks
            ],
        )
        for block in blocks
    ]


def cell_note(cell: MapCell, zone: tzinfo) -> str:
    """What else there is to say of one node: "R-118, acme/speech, until Sun 6 Dec 09:00"; "" for nothing."""
    parts = [part for part in (cell.id, cell.team) if part]
    if cell.until_at is not None:
        parts.append(f"until {phrases.moment(cell.until_at, zone)}")
    if not parts:
        return ""
    word = {"held": "held", "mine_provisional": "yours, provisional", "bad": "bad node"}.get(cell.state, cell.state)
    return ", ".join([word, *parts])


def strip_drawing(
    bars: Sequence[answers.StripBar], asked: int, unit: str, chosen: datetime | None, zone: tzinfo
) -> list[StripBar]:
    """The possible starts, one bar a day: as high as the part of the ask that could start then."""
    drawn = []
    for number, bar in enumerate(bars):
        at, best = moment_of(bar.start_minute).astimezone(zone), moment_of(bar.best_start_minute)
        after = moment_of(bars[number + 1].start_minute) if number + 1 < len(bars) else None
        size = phrases.amount(bar.size, unit)
        says = f"fits from {phrases.moment(best, zone)}" if bar.fits else f"at most {size} of {asked:,}"
        drawn.append(
            StripBar(
                value=best.isoformat(),
                label=str(at.day),
                title=f"{at:%a} {at.day} {at:%b}: {says}",
                height_percent=100 * bar.size / max(1, asked),
                fits=bar.fits,
                selected=chosen is not None
                and moment_of(bar.start_minute) <= chosen
                and (after is None or chosen < after),
            )
        )
    return drawn


def racks_text(names: Iterable[str]) -> str:
    """Racks in words: "r22", "r21 and r24", "r22 to r25" for neighbours by number, a host list for many."""
    racks = sorted(names, key=natural)
    if len(racks) > 2 and (run := _run(racks)):
        return run
    if len(racks) > MOST_NAMED:
        return fold(racks)
    return racks[0] if len(racks) == 1 else f"{', '.join(racks[:-1])} and {racks[-1]}" if racks else "no whole rack"


def _run(racks: Sequence[str]) -> str:
    """ "r22 to r25" when only the last number differs and it counts up by one; "" otherwise."""
    heads = {name.rstrip("0123456789") for name in racks}
    tails = [name[len(name.rstrip("0123456789")) :] for name in racks]
    if len(heads) != 1 or not all(tails):
        return ""
    numbers = [int(tail) for tail in tails]
    steps = {after - before for before, after in pairwise(numbers)}
    return f"{racks[0]} to {racks[-1]}" if steps == {1} else ""
