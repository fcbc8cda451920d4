"""How do sightings of nodes and racks become one fleet? (the laws every source has to keep)"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scheduling.hostlist import fold
from scheduling.inventory.flavors import Kind, flavors_of, kind_of
from scheduling.inventory.fleet import BlockRecord, FlavorRecord, FleetInventory, NodeRecord, RackRecord
from scheduling.inventory.sightings import SeenNode, SeenRack, SeenTopology, natural_pair


def assemble(kind: str, nodes: Iterable[SeenNode], topology: SeenTopology, notes: Iterable[str] = ()) -> FleetInventory:
    """The fleet of these sightings. Refuses a node named twice, in two racks, and a rack named twice.

    Nodes that only the topology knows are no nodes: a note names them. Racks left without nodes fall away.
    """
    seen = _unique(nodes)
    kinds = {name: kind_of(node) for name, node in seen.items()}
    said = [*notes, *topology.notes]
    racks, strangers = _known_members(topology.racks, seen)
    if strangers:
        said.append(f"in the topology only, not in the node listing: {fold(strangers)}")
    racks, split_notes = _one_kind_each(racks, kinds)
    flavors, flavor_notes = flavors_of(kind, tuple(seen.values()), kinds, racks)
    said += [*split_notes, *flavor_notes]
    names = {name: flavors[node_kind].name for name, node_kind in kinds.items()}
    rack_records = tuple(_rack_record(rack, seen, names, len(topology.levels)) for rack in racks)
    spot = {name: (rack.name, at) for rack in rack_records for at, name in enumerate(rack.nodes)}
    lost = [name for name in seen if name not in spot]
    if lost and racks:
        said.append(f"without a rack: {fold(lost)}")
    blocks, block_notes = _blocks(rack_records, len(topology.levels))
    return FleetInventory(
        kind=kind,
        levels=topology.levels,
        nodes=tuple(_node_record(node, flavors[kinds[node.name]], spot.get(node.name)) for node in seen.values()),
        racks=rack_records,
        blocks=blocks,
        flavors=tuple(sorted(flavors.values(), key=lambda flavor: natural_pair(flavor.name))),
        notes=tuple(dict.fromkeys([*said, *block_notes])),
        topology_labels=topology.labels,
    )


def _unique(nodes: Iterable[SeenNode]) -> dict[str, SeenNode]:
    seen: dict[str, SeenNode] = {}
    for node in nodes:
        first = seen.setdefault(node.name, node)
        if first is not node:
            raise node.place.refuse(f"node {node.name} is named twice, first at {first.place}")
    return dict(sorted(seen.items(), key=lambda item: natural_pair(item[0])))


def _known_members(racks: Iterable[SeenRack], seen: dict[str, SeenNode]) -> tuple[list[SeenRack], list[str]]:
    """Racks with the nodes that exist, in natural order, and the names of those that do not."""
    home: dict[str, SeenRack] = {}
    named: dict[str, SeenRack] = {}
    known, strangers = [], []
    for rack in racks:
        first = named.setdefault(rack.name, rack)
        if first is not rack:
            raise rack.place.refuse(f"rack {rack.name} is named twice, first at {first.place}")
        for name in rack.nodes:
            other = home.setdefault(name, rack)
            if other is not rack:
                raise rack.place.refuse(f"node {name} is in two racks: {other.name} ({other.place}) and {rack.name}")
        strangers += [name for name in rack.nodes if name not in seen]
        mine = sorted((name for name in rack.nodes if name in seen), key=natural_pair)
        if mine:
            known.append(replace(rack, nodes=tuple(mine)))
    return known, strangers


def _one_kind_each(racks: Sequence[SeenRack], kinds: Mapping[str, Kind]) -> tuple[list[SeenRack], list[str]]:
    """A rack has one flavor: a leaf switch with several kinds becomes one rack per kind, the largest keeps the name."""
    taken = {rack.name for rack in racks}
    parts, notes = [], []
    for rack in racks:
        members: dict[Kind, list[str]] = defaultdict(list)
        for name in rack.nodes:
            members[kinds[name]].append(name)
        ordered = sorted(members.items(), key=lambda item: (-len(item[1]), natural_pair(item[1][0])))
        for number, (_, names) in enumerate(ordered):
            name = rack.name if number == 0 else f"{rack.name}.{number + 1}"
            while number and name in taken:
                name += "x"
            taken.add(name)
            parts.append(replace(rack, name=name, nodes=tuple(names)))
        if len(ordered) > 1:
            notes.append(f"{rack.name} holds {len(ordered)} kinds of node and became {len(ordered)} racks")
    return sorted(parts, key=lambda rack: natural_pair(rack.name)), notes


def _rack_record(rack: SeenRack, seen: dict[str, SeenNode], flavors: dict[str, str], levels: int) -> RackRecord:
    cabinets = {seen[name].cabinet for name in rack.nodes} - {""}
    return RackRecord(
        name=rack.name,
        flavor=flavors[rack.nodes[0]],
        levels=(*rack.levels[:levels], *(None,) * (levels - len(rack.levels))),
        nodes=rack.nodes,
        cabinets=tuple(sorted(cabinets, key=natural_pair)),
    )


def _node_record(node: SeenNode, flavor: FlavorRecord, spot: tuple[str, int] | None) -> NodeRecord:
    usable = node.gpus if node.usable_gpus is None else min(node.gpus, node.usable_gpus)
    return NodeRecord(
        name=node.name,
        flavor=flavor.name,
        rack=spot[0] if spot else None,
        gpus=node.gpus,
        usable_gpus=usable,
        gpu_model=flavor.gpu_model,
        gres_type=flavor.gres_type,
        partitions=tuple(sorted(set(node.partitions), key=natural_pair)),
        labels=tuple(sorted(node.labels)),
        condition=node.condition,
        drained=node.drained,
        reason=node.reason,
        cabinet=node.cabinet,
        cpus=node.cpus,
        memory_mb=node.memory_mb,
        position=spot[1] if spot else None,
    )


def _blocks(racks: Sequence[RackRecord], levels: int) -> tuple[tuple[BlockRecord, ...], list[str]]:
    under: dict[str, list[RackRecord]] = defaultdict(list)
    for rack in racks:
        if rack.levels and rack.levels[0] is not None:
            under[rack.levels[0]].append(rack)
    blocks, notes = [], []
    for name in sorted(under, key=natural_pair):
        parents: list[str | None] = []
        for level in range(1, levels):
            values = {rack.levels[level] for rack in under[name]}
            if len(values) > 1:
                notes.append(f"block {name} lies under several parents and is taken as under none")
            parents.append(values.pop() if len(values) == 1 else None)
        blocks.append(BlockRecord(name, tuple(parents), tuple(rack.name for rack in under[name])))
    return tuple(blocks), notes
