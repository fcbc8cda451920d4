"""What is the cluster made of? (the immutable tree cluster > block > rack > node, as arrays)

A rack is one NVLink domain and the unit of placement. Inside, a rack is one or more 64-bit words; a set of nodes is
a list of (rack, word, mask). To every caller a rack is one rack, however many words it needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 64
UNKNOWN = -1  # the group of a rack whose place in a level nobody told: adjacent to nothing

Indexes = NDArray[np.int64]
Masks = NDArray[np.uint64]


class TopologyError(ValueError):
    """An inventory that contradicts itself: `rack` is the place of the rack in the list, `key` what is wrong in it."""

    def __init__(self, rack: int, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.rack, self.key, self.sentence = rack, key, sentence


@dataclass(frozen=True, slots=True)
class FlavorShape:
    """A kind of node: sizes, and the minutes that must lie between two reservations on its nodes."""

    name: str
    gpus_per_node: int
    nodes_per_rack: int
    turnaround_minutes: int = 0


@dataclass(frozen=True, slots=True)
class RackShape:
    """One rack: its nodes in their order (a node's position is its bit), and one name per network level, lowest first.

    A level of None is unknown and never adjacent to anything. A rack named "" is a pseudo-rack: it gathers nodes
    without topology, asks for racks never use it. It exists in [from_minute, until_minute); None is open.
    `nvlink` is ok, degraded or broken.
    """

    name: str
    flavor: str
    nodes: tuple[str, ...]
    levels: tuple[str | None, ...] = ()
    nvlink: str = "ok"
    from_minute: int | None = None
    until_minute: int | None = None

    @property
    def is_pseudo(self) -> bool:
        return not self.name


@dataclass(frozen=True, slots=True, eq=False)
class NodeMasks:
    """A set of nodes as three aligned arrays: rack index, word inside the rack, 64-bit mask of positions in that word.

    The database keeps the same three columns with rack ids for rack indexes. Entries may come in any order.
    """

    rack: Indexes
    word: Indexes
    mask: Masks

    @classmethod
    def of(cls, rack: Sequence[int], word: Sequence[int], mask: Sequence[int]) -> "NodeMasks":
        """From plain integers; masks are taken modulo 2**64, so that signed columns of a database fit."""
        unsigned = [int(value) & (2**WORD_BITS - 1) for value in mask]
        return cls(np.array(rack, np.int64), np.array(word, np.int64), np.array(unsigned, np.uint64))

    def __len__(self) -> int:
        """Number of nodes in the set."""
        return int(np.bitwise_count(self.mask).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """The tree as arrays; build it with `Topology.build`. R racks, W words, L levels.

    `first_word[r]:first_word[r + 1]` are the words of rack r; `full[w]` has a bit for each node of word w;
    `word_rack[w]` is the rack of a word; `group[r, l]` numbers the group of rack r in level l, UNKNOWN where not told.
    """

    levels: tuple[str, ...]
    flavors: tuple[FlavorShape, ...]
    racks: tuple[RackShape, ...]
    first_word: Indexes
    word_rack: Indexes
    full: Masks
    rack_flavor: Indexes
    group: Indexes
    group_names: tuple[tuple[str, ...], ...]
    _place: dict[str, tuple[int, int]] = field(repr=False)
    _rack_index: dict[str, int] = field(repr=False)

    @classmethod
    def build(cls, levels: Sequence[str], flavors: Iterable[FlavorShape], racks: Iterable[RackShape]) -> "Topology":
        """Arrays from shapes. Raises TopologyError: unknown flavor, rack named twice, node in two racks, levels."""
        flavors, racks = tuple(flavors), tuple(racks)
        flavor_index = {flavor.name: number for number, flavor in enumerate(flavors)}
        rack_index: dict[str, int] = {}
        place: dict[str, tuple[int, int]] = {}
        first_word = [0]
        for number, rack in enumerate(racks):
            if rack.flavor not in flavor_index:
                raise TopologyError(number, "flavor", f"rack {rack.name} is of unknown flavor {rack.flavor}")
            if rack.name in rack_index and not rack.is_pseudo:
                raise TopologyError(number, "name", f"rack {rack.name} is listed twice")
            if len(rack.levels) > len(levels):
                sentence = f"rack {rack.name} names {len(rack.levels)} levels of {len(levels)}"
                raise TopologyError(number, "levels", sentence)
            rack_index.setdefault(rack.name, number)
            for position, node in enumerate(rack.nodes):
                if node in place:
                    other = racks[place[node][0]].name
                    sentence = f"node {node} is in rack {other} and in rack {rack.name}"
                    raise TopologyError(number, "nodes", sentence)
                place[node] = (number, position)
            first_word.append(first_word[-1] + -(-len(rack.nodes) // WORD_BITS))
        group, group_names = _groups(len(levels), racks)
        return cls(
            levels=tuple(levels),
            flavors=flavors,
            racks=racks,
            first_word=np.array(first_word, np.int64),
            word_rack=np.repeat(np.arange(len(racks)), np.diff(first_word)),
            full=np.array([word for rack in racks for word in _full_words(len(rack.nodes))], np.uint64),
            rack_flavor=np.array([flavor_index[rack.flavor] for rack in racks], np.int64),
            group=group,
            group_names=group_names,
            _place=place,
            _rack_index=rack_index,
        )

    def flavor(self, name: str) -> FlavorShape | None:
        """The flavor of that name, None when the cluster has none."""
        return next((flavor for flavor in self.flavors if flavor.name == name), None)

    def rack_number(self, name: str) -> int | None:
        """Index of the rack of that name, None when there is none."""
        return self._rack_index.get(name)

    def rack_of(self, node: str) -> int | None:
        """Index of the rack that holds the node, None for an unknown node."""
        found = self._place.get(node)
        return None if found is None else found[0]

    def node_at(self, word: int, bit: int) -> str:
        """Name of the node at a bit of a word (by global word number)."""
        rack = int(self.word_rack[word])
        return self.racks[rack].nodes[(word - int(self.first_word[rack])) * WORD_BITS + bit]

    def masks(self, names: Iterable[str]) -> NodeMasks:
        """The nodes as masks. Names the topology does not know are left out: what is not there is never placed."""
        words: dict[tuple[int, int], int] = {}
        for name in names:
            found = self._place.get(name)
            if found is not None:
                rack, position = found
                key = (rack, position // WORD_BITS)
                words[key] = words.get(key, 0) | 1 << position % WORD_BITS
        keys = sorted(words)
        return NodeMasks.of([key[0] for key in keys], [key[1] for key in keys], [words[key] for key in keys])

    def names(self, masks: NodeMasks) -> tuple[str, ...]:
        """Node names of the masks, in rack order and then in position order. Bits beyond a rack's nodes are ignored."""
        order = np.lexsort((masks.word, masks.rack))
        found: list[str] = []
        for rack, word, mask in zip(
            masks.rack[order].tolist(), masks.word[order].tolist(), masks.mask[order].tolist(), strict=True
        ):
            nodes = self.racks[rack].nodes[word * WORD_BITS : (word + 1) * WORD_BITS]
            found.extend(node for position, node in enumerate(nodes) if mask >> position & 1)
        return tuple(dict.fromkeys(found))

    def plane(self, masks: NodeMasks) -> Masks:
        """The same set as one word array u64[W], empty where the set has nothing."""
        plane = np.zeros(len(self.full), np.uint64)
        np.bitwise_or.at(plane, self.first_word[masks.rack] + masks.word, masks.mask)
        return plane & self.full

    def from_plane(self, plane: Masks) -> NodeMasks:
        """The inverse of plane(): masks of the words that are not empty."""
        words = np.flatnonzero(plane)
        racks = self.word_rack[words]
        return NodeMasks(racks, words - self.first_word[racks], plane[words])


def _full_words(nodes: int) -> list[int]:
    """All bits of a rack of that many nodes, word by word."""
    whole, rest = divmod(nodes, WORD_BITS)
    return [2**WORD_BITS - 1] * whole + ([2**rest - 1] if rest else [])


def _groups(levels: int, racks: Sequence[RackShape]) -> tuple[Indexes, tuple[tuple[str, ...], ...]]:
    """Number the groups of each level in name order; UNKNOWN where a rack names none."""
    group = np.full((len(racks), levels), UNKNOWN, np.int64)
    names: list[tuple[str, ...]] = []
    for level in range(levels):
        told = [rack.levels[level] if level < len(rack.levels) else None for rack in racks]
        ordered = sorted({name for name in told if name})
        number = {name: index for index, name in enumerate(ordered)}
        group[:, level] = [number[name] if name else UNKNOWN for name in told]
        names.append(tuple(ordered))
    return group, tuple(names)
