"""What did one file say, and where? (places in files, and raw sightings before they become a fleet)"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from scheduling.inventory.fleet import InventoryError

MAX_TEXT = 64 * 1024 * 1024
_NODE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\Z")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file. The line may be found late: looking it up costs something in JSON and errors are rare."""

    file: str
    find_line: int | Callable[[], int]

    @property
    def line(self) -> int:
        """The line, counted from 1."""
        return self.find_line if isinstance(self.find_line, int) else self.find_line()

    def refuse(self, reason: str) -> InventoryError:
        """The error to raise when this place is why the import is refused."""
        return InventoryError(self.file, self.line, reason)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node as one listing tells it. `native_model` is the scheduler's own word for the GPU type.

    `named_model` is what other labels or features say of the model, used when there is no native word.
    """

    name: str
    place: Place
    gpus: int = 0
    usable_gpus: int | None = None
    native_model: str = ""
    named_model: str = ""
    partitions: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    condition: str = "healthy"
    drained: bool = False
    reason: str = ""
    cabinet: str = ""
    cpus: int | None = None
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class SeenRack:
    """A rack as a topology tells it; known `levels` lowest first. `nvlink`: the source names NVLink domains."""

    name: str
    place: Place
    nodes: tuple[str, ...]
    levels: tuple[str | None, ...] = ()
    nvlink: bool = False


@dataclass(frozen=True, slots=True)
class SeenTopology:
    """All racks of one topology with the names of its levels above the rack, lowest first.

    `labels` are the node labels that tell a node's place, highest level first and the rack last; () where none do.
    """

    racks: tuple[SeenRack, ...] = ()
    levels: tuple[str, ...] = ("block",)
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def words(text: str) -> frozenset[str]:
    """The words of a table that is written as one text."""
    return frozenset(text.split())


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """Sort key that puts n9 before n10: text and number by turns, numbers of any length by their digits."""
    parts = [*_DIGITS.split(name), ""]
    numbers = [digits.lstrip("0") for digits in parts[1::2]]
    return tuple((text, len(digits), digits) for text, digits in zip(parts[::2], numbers, strict=True))


def natural_pair(name: str) -> tuple[tuple[tuple[str, int, str], ...], str]:
    """natural(), made total: n1 and n01 differ."""
    return natural(name), name


def checked_node_name(name: object, place: Place) -> str:
    """`name` when it can be a host's name; refuses placeholders, blanks and everything else."""
    if isinstance(name, str) and _NODE_NAME.match(name):
        return name
    if isinstance(name, str) and "{{" in name:
        raise place.refuse(f"node name {name[:60]!r} is a template placeholder: give the rendered file")
    raise place.refuse(f"{str(name)[:60]!r} is not a node name")


def checked_text(file: str, text: str) -> str:
    """`text` without a byte order mark and with plain line ends; refuses empty, binary and oversize files."""
    if len(text) > MAX_TEXT * 4:
        raise InventoryError(file, 1, f"the file has {len(text)} characters, at most {MAX_TEXT * 4} are read")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InventoryError(file, 1, "the file is empty")
    for sign in ("\x00", "\ufffd"):
        if sign in text:
            raise InventoryError(file, text.count("\n", 0, text.index(sign)) + 1, "the file is not text")
    return text
