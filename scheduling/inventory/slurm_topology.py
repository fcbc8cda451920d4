"""Which racks and levels does a Slurm topology show? (topology.conf, topology.yaml, `scontrol show topology`)

The lowest switch or the BlockName is a rack, what lies above it a block, and on up. Of topology/block, BlockSizes makes
the levels: size k over the first size is how many consecutive racks form one group.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.hostlist import fold
from scheduling.inventory.documents import line_of
from scheduling.inventory.fleet import InventoryError
from scheduling.inventory.sightings import Place, SeenRack, SeenTopology
from scheduling.inventory.slurm_conf import ConfLine, conf_lines, hosts

Note = Callable[[str], None]
_KINDS = ("switchname", "blockname", "blocksizes", "blocklevels", "aggregatedblock", "topology")
_BLOCK_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")
_PLUGINS = ("block", "flat", "ring", "torus3d", "tree")


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch as written: its nodes if it is a leaf, its child switches if not."""

    name: str
    place: Place
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


def level_names(count: int) -> tuple[str, ...]:
    """Names of the levels above the rack, lowest first; there is always a block."""
    return ("block", *(f"level-{number}" for number in range(2, count + 1)))


def looks_like_topology(text: str) -> bool:
    """Is this a topology.conf or the output of `scontrol show topology`?"""
    return re.search(r"^[ \t]*(SwitchName|BlockName|AggregatedBlock|BlockSizes)[ \t]*=", text, re.M | re.I) is not None


def read_topology_text(file: str, text: str, note: Note) -> SeenTopology:
    """The topology of a topology.conf or of `scontrol show topology` (told apart by the keys only the latter has)."""
    lines = [line for line in conf_lines(file, text) if isinstance(line, ConfLine)]
    kinds = {line.kind for line in lines}
    strange = next((line for line in lines if line.kind not in _KINDS), None)
    if strange:
        raise strange.place.refuse(f"{strange.pairs[0][0]}= is not a line of a topology")
    if "switchname" in kinds and kinds & {"blockname", "blocksizes", "aggregatedblock"}:
        line = next(line for line in lines if line.kind != "switchname")
        raise line.place.refuse("switches and blocks in one topology: Slurm takes one of them")
    if "switchname" in kinds:
        return tree([_switch(line, note) for line in lines], note)
    blocks = [_block(line.pairs[0][1], line.get("nodes"), line.place) for line in lines if line.kind == "blockname"]
    groups = [line for line in lines if line.kind == "aggregatedblock"]
    if groups:
        return _live_blocks(blocks, groups)
    sizes = next((line for line in lines if line.kind in ("blocksizes", "blocklevels")), None)
    if sizes is None or sizes.kind == "blocklevels":
        return block_topology(blocks, [], Place(file, 1), note)
    return block_topology(blocks, sizes.pairs[0][1].split(","), sizes.place, note)


def _switch(line: ConfLine, note: Note) -> Switch:
    name, level = line.pairs[0][1], line.get("level")
    nodes, children = hosts(line.get("nodes"), line.place), hosts(line.get("switches"), line.place)
    if nodes and children:
        if level:  # `show topology` lists every node below a switch as well
            nodes = ()
        else:
            note(f"switch {name} has nodes and switches: as in Slurm, its switches are ignored")
            children = ()
    if not nodes and not children:
        raise line.place.refuse(f"switch {name} has neither nodes nor switches")
    return Switch(name, line.place, nodes, children)


def tree(switches: Sequence[Switch], note: Note) -> SeenTopology:
    """Racks of a tree of switches. Refuses a switch named twice, an unknown child, two parents, and a loop."""
    by_name: dict[str, Switch] = {}
    for switch in switches:
        if by_name.setdefault(switch.name, switch) is not switch:
            raise switch.place.refuse(f"switch {switch.name} is named twice, first at {by_name[switch.name].place}")
    parent: dict[str, str] = {}
    for switch in switches:
        for child in switch.children:
            if child not in by_name:
                raise switch.place.refuse(f"switch {switch.name} names {child}, and there is no such switch")
            if child in parent:
                raise switch.place.refuse(f"switch {child} lies under two switches: {parent[child]} and {switch.name}")
            parent[child] = switch.name
    paths = {switch.name: _path_up(switch, parent) for switch in switches}
    racks = [SeenRack(one.name, one.place, one.nodes, paths[one.name]) for one in switches if one.nodes]
    if len({len(rack.levels) for rack in racks}) > 1:
        note("leaf switches lie at different depths: levels count upwards from the leaf")
    return SeenTopology(tuple(racks), level_names(max(map(len, paths.values()), default=0)))


def _path_up(switch: Switch, parent: dict[str, str]) -> tuple[str, ...]:
    path: list[str] = []
    at = switch.name
    while at in parent:
        at = parent[at]
        if at == switch.name or at in path:
            raise switch.place.refuse(
                f"switch {switch.name} lies in a loop: {' > '.join([switch.name, *path, at])[:120]}"
            )
        path.append(at)
    return tuple(path)


def _block(name: str, nodes: str, place: Place) -> SeenRack:
    if not _BLOCK_NAME.match(name):
        raise place.refuse(f"{name[:60]!r} is not the name of a block")
    members = hosts(nodes, place)
    if not members:
        raise place.refuse(f"block {name} has no nodes")
    return SeenRack(name, place, members, nvlink=True)


def block_topology(blocks: Sequence[SeenRack], sizes: Sequence[Any], place: Place, note: Note) -> SeenTopology:
    """Racks of topology/block, grouped by the block sizes. Refuses no blocks, and sizes Slurm would die of."""
    if not blocks:
        raise place.refuse("no blocks: a block topology needs at least one BlockName with nodes")
    numbers = _block_sizes(sizes, place)
    total = sum(len(block.nodes) for block in blocks)
    groups = []
    for size in numbers[1:]:
        ratio = size // numbers[0]
        if size > total:
            note(f"block size {size} is above the {total} nodes of the topology and makes no level")
        elif ratio > 1 and ratio not in groups:
            groups.append(ratio)
    racks = []
    for at, block in enumerate(blocks):
        levels = tuple(_group_name(blocks, at, ratio) for ratio in groups)
        racks.append(SeenRack(block.name, block.place, block.nodes, levels, nvlink=True))
    return SeenTopology(tuple(racks), level_names(len(groups)))


def _block_sizes(sizes: Sequence[Any], place: Place) -> list[int]:
    numbers = []
    for size in sizes:
        text = str(size).strip()
        if not re.fullmatch(r"[0-9]{1,7}", text) or int(text) == 0:
            raise place.refuse(f"block size {text[:20]!r} is not a whole number above 0")
        numbers.append(int(text))
    for size in numbers[1:]:
        ratio, rest = divmod(size, numbers[0])
        if rest or ratio & (ratio - 1):
            raise place.refuse(f"block size {size} is not a power of two times the first, {numbers[0]}")
    return numbers


def _group_name(blocks: Sequence[SeenRack], at: int, ratio: int) -> str:
    """A group is called by its racks, folded, as `scontrol show topology` does: rack[003-004]."""
    start = at // ratio * ratio
    return fold([block.name for block in blocks[start : start + ratio]])


def _live_blocks(blocks: Sequence[SeenRack], groups: Sequence[ConfLine]) -> SeenTopology:
    sizes: dict[int, dict[str, str]] = {}
    known = {block.name for block in blocks}
    for line in groups:
        members = hosts(line.pairs[0][1], line.place)
        size = line.get("blocksize")
        if not re.fullmatch(r"[0-9]{1,9}", size):
            raise line.place.refuse(f"AggregatedBlock without a BlockSize: {size[:20]!r}")
        for member in members:
            if member not in known:
                raise line.place.refuse(f"AggregatedBlock names {member}, and there is no such block")
            sizes.setdefault(int(size), {})[member] = fold(members)
    ordered = [sizes[size] for size in sorted(sizes)]
    racks = [
        SeenRack(block.name, block.place, block.nodes, tuple(level.get(block.name) for level in ordered), nvlink=True)
        for block in blocks
    ]
    return SeenTopology(tuple(racks), level_names(len(ordered)))


def read_topology_yaml(file: str, documents: Sequence[Any], note: Note) -> SeenTopology:
    """The topology of a topology.yaml: the cluster's default one, else the first; others are noted and left out."""
    root = documents[0] if len(documents) == 1 else None
    topologies = [root] if isinstance(root, dict) else root
    if not isinstance(topologies, list) or not topologies:
        raise InventoryError(file, 1, "topology.yaml is a list of topologies (or one), each with a `topology` name")
    for each in topologies:
        if not isinstance(each, dict) or "topology" not in each:
            raise InventoryError(file, line_of(each), "not a topology: the key `topology` is missing")
        _plugin(file, each)
    chosen = next((each for each in topologies if each.get("cluster_default") is True), topologies[0])
    for other in topologies:
        if other is not chosen:
            note(f"topology {str(other['topology'])[:60]} is not the cluster's default and is left out")
    plugin = _plugin(file, chosen)
    if plugin == "tree":
        return _yaml_tree(file, chosen, note)
    if plugin == "block":
        return _yaml_block(file, chosen, note)
    if plugin == "flat":
        note("the topology is flat: no racks are known")
        return SeenTopology()
    raise InventoryError(file, line_of(chosen, plugin), f"topology/{plugin} knows no racks: give tree or block")


def _plugin(file: str, topology: dict[str, Any]) -> str:
    given = [key for key in _PLUGINS if topology.get(key) not in (None, False)]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        line = line_of(topology, given[-1] if given else "")
        raise InventoryError(file, line, f"a topology is exactly one of {', '.join(_PLUGINS)}; here: {found}")
    return given[0]


def _entries(file: str, topology: dict[str, Any], plugin: str, key: str) -> list[dict[str, Any]]:
    body = topology[plugin]
    if not isinstance(body, dict):
        raise InventoryError(file, line_of(topology, plugin), f"`{plugin}` is a mapping with `{key}`")
    entries = body.get(key)
    if not isinstance(entries, list) or not entries:
        raise InventoryError(file, line_of(body, key), f"`{plugin}` has no list of {key}")
    if not all(isinstance(entry, dict) for entry in entries):
        raise InventoryError(file, line_of(body, key), f"every entry of `{key}` is a mapping")
    return entries


def _yaml_tree(file: str, topology: dict[str, Any], note: Note) -> SeenTopology:
    switches = []
    for entry in _entries(file, topology, "tree", "switches"):
        name = _text(file, entry, "switch")
        place = Place(file, line_of(entry))
        nodes = hosts(_text(file, entry, "nodes", ""), Place(file, line_of(entry, "nodes")))
        children = hosts(_text(file, entry, "children", ""), Place(file, line_of(entry, "children")))
        if nodes and children:
            note(f"switch {name} has nodes and switches: as in Slurm, its switches are ignored")
            children = ()
        if not nodes and not children:
            raise place.refuse(f"switch {name} has neither nodes nor children")
        switches.append(Switch(name, place, nodes, children))
    return tree(switches, note)


def _yaml_block(file: str, topology: dict[str, Any], note: Note) -> SeenTopology:
    blocks = [
        _block(_text(file, entry, "block"), _text(file, entry, "nodes"), Place(file, line_of(entry)))
        for entry in _entries(file, topology, "block", "blocks")
    ]
    body = topology["block"]
    sizes = body.get("block_sizes") or []
    place = Place(file, line_of(body, "block_sizes"))
    if not isinstance(sizes, list):
        raise place.refuse("`block_sizes` is a list of numbers")
    return block_topology(blocks, sizes, place, note)


def _text(file: str, entry: dict[str, Any], key: str, otherwise: str | None = None) -> str:
    value = entry.get(key, otherwise)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InventoryError(file, line_of(entry, key), f"`{key}` is missing or not text")
    return str(value)
