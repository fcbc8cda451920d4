"""Which nodes does a table of `sinfo -N` show? (with a header; without one, by the look of its columns)"""

import re
from collections.abc import Callable, Iterator, Sequence

from scheduling.inventory.fleet import InventoryError
from scheduling.inventory.sightings import Place, SeenNode, checked_node_name
from scheduling.inventory.slurm_conf import hosts
from scheduling.inventory.slurm_nodes import merge_rows
from scheduling.inventory.slurm_words import read_gres, read_state

_NAMES = ("HOSTNAMES", "HOSTNAME", "NODELIST", "NODE_ADDR")
_GRES = re.compile(r"(?:\(null\)|N/A|gpu:\S+)\Z")
_NUMBERS = re.compile(r"[\d./N]+\Z")
_NO_GRES = "the table does not tell the GPUs: ask with `sinfo -N -o '%N|%T|%G|%P'`, or give `scontrol show node`"
Note = Callable[[str], None]


def looks_like_sinfo(text: str) -> bool:
    """Has the table a header with a node and a state, or does every row begin with a name and hold a state?"""
    lines = [line for line in text.split("\n") if line.strip()]
    words = set(re.split(r"[|\s]+", lines[0].strip()))
    if "STATE" in words and words & set(_NAMES):
        return True
    return all(_headless_state(_cells(line)) is not None for line in lines[:50])


def read_sinfo(file: str, text: str, note: Note) -> Iterator[SeenNode]:
    """Nodes of the table; one that stands in several partitions comes in several rows and is one node.

    Refuses a table that does not tell GPUs: every node would silently become a CPU node.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    header = _header(lines[0][1])
    if header and "GRES" not in header:
        raise InventoryError(file, lines[0][0], _NO_GRES)
    found: dict[str, SeenNode] = {}
    for number, line in lines[1:] if header else lines:
        place = Place(file, number)
        for seen in _with_header(header, _cells(line), place) if header else _headless(_cells(line), place):
            first = found.get(seen.name)
            if first and (first.gpus, first.native_model) != (seen.gpus, seen.native_model):
                raise place.refuse(f"node {seen.name} has other GPUs here than in line {first.place.line}")
            if seen.condition == "unknown" and seen.reason:
                note(seen.reason)
            merge_rows(found, seen)
    if not found:
        raise InventoryError(file, 1, "the table has a header and no nodes")
    note("read from sinfo: features, cabinets and reasons are not in it")
    yield from found.values()


def _cells(line: str) -> list[str]:
    if "|" in line:
        return [cell.strip() for cell in line.split("|")]
    return line.replace(",", " ").split() if re.fullmatch(r"[\w.-]+,[\w+*~#!%$@^-]+", line.strip()) else line.split()


def _header(line: str) -> list[str]:
    cells = _cells(line)
    return cells if "STATE" in cells and set(cells) & set(_NAMES) else []


def _with_header(header: Sequence[str], cells: Sequence[str], place: Place) -> list[SeenNode]:
    if len(cells) < len(header) - 1:
        raise place.refuse(f"{len(cells)} columns under a header of {len(header)}")
    row: dict[str, str] = {}
    for key, cell in zip(header, cells, strict=False):
        row.setdefault(key, cell)
    name = next(row[key] for key in _NAMES if key in row)
    memory = row.get("MEMORY", "")
    return _seen(name, row["STATE"], row.get("GRES", ""), row.get("PARTITION", ""), place, row.get("CPUS", ""), memory)


def _headless_state(cells: Sequence[str]) -> str | None:
    """The first cell after the name that is a state and nothing but known words."""
    return next((cell for cell in cells[1:] if cell[:1].isalpha() and not read_state([cell])[2]), None)


def _headless(cells: Sequence[str], place: Place) -> list[SeenNode]:
    """A row without header: the first word is the node, the rest is known by its look."""
    state = _headless_state(cells)
    if state is None:
        raise place.refuse("no node state in this row: give `scontrol show node` instead")
    gres = next((cell for cell in cells[1:] if _GRES.match(cell)), None)
    if gres is None:
        raise place.refuse(_NO_GRES)
    partition = next(
        (cell for cell in cells[1:] if cell != state and not _GRES.match(cell) and not _NUMBERS.match(cell)), ""
    )
    return _seen(cells[0], state, gres, partition, place, "", "")


def _seen(names: str, state: str, gres: str, partition: str, place: Place, cpus: str, memory: str) -> list[SeenNode]:
    """The nodes of one row: `sinfo` without -N folds equal ones into a host list."""
    if names.isdigit():
        raise place.refuse("the rows count nodes instead of naming them: ask with `sinfo -N`")
    try:
        gpus, native = read_gres(gres)
    except ValueError as error:
        raise place.refuse(str(error)) from error
    condition, drained, strange = read_state([state])
    return [
        SeenNode(
            name=checked_node_name(name, place),
            place=place,
            gpus=gpus,
            native_model=native,
            partitions=(partition.rstrip("*"),) if partition.rstrip("*") else (),
            condition=condition,
            drained=drained,
            reason=f"node state {strange[0][:60]} is not known here" if strange else "",
            cpus=int(cpus) if re.fullmatch(r"[0-9]{1,9}", cpus) else None,
            memory_mb=int(memory) if re.fullmatch(r"[0-9]{1,15}", memory) else None,
        )
        for name in hosts(names, place)
    ]
