"""Which racks and levels do the labels of Kubernetes nodes show?

A rack label names NVLink domains and is unique in the fleet. Names of network levels are only unique below their
parent, so a name that comes twice is written with it: `spine1/leaf3`. A node without a rack label whose GPUs need one
has no rack; an HGX or CPU node then has the lowest network level as its neighbourhood.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduling.inventory.flavors import kind_of
from scheduling.inventory.gpu_models import is_rack_scale
from scheduling.inventory.sightings import SeenNode, SeenRack, SeenTopology

_NVIDIA = "network.topology.nvidia.com/"
_NVLINK_LABELS = ("nvidia.com/gpu.clique", _NVIDIA + "accelerator")


@dataclass(frozen=True, slots=True)
class LabelFamily:
    """How one source labels the network: the rack, and the levels above it, lowest first, with our names for them."""

    rack: str
    levels: tuple[tuple[str, str], ...]


FAMILIES = (
    LabelFamily(
        _NVIDIA + "accelerator", (("block", _NVIDIA + "leaf"), ("spine", _NVIDIA + "spine"), ("core", _NVIDIA + "core"))
    ),
    LabelFamily(
        _NVIDIA + "accelerator",
        (("block", _NVIDIA + "block"), ("spine", _NVIDIA + "spine"), ("datacenter", _NVIDIA + "datacenter")),
    ),
    LabelFamily("cloud.google.com/gce-topology-subblock", (("block", "cloud.google.com/gce-topology-block"),)),
    LabelFamily(
        "topology.k8s.aws/network-node-layer-3",
        (("block", "topology.k8s.aws/network-node-layer-2"), ("core", "topology.k8s.aws/network-node-layer-1")),
    ),
    LabelFamily(
        "oci.oraclecloud.com/rdma.local_block_id",
        (("block", "oci.oraclecloud.com/rdma.network_block_id"), ("island", "oci.oraclecloud.com/rdma.hpc_island_id")),
    ),
    LabelFamily("topology.kubernetes.io/rack", (("block", "topology.kubernetes.io/block"),)),
)


def topology_of(nodes: Sequence[SeenNode], rack_label: str, block_label: str | None) -> SeenTopology:
    """Racks and levels of these nodes: from the label family most of them carry, own labels first."""
    labels = {node.name: dict(node.labels) for node in nodes}
    family = _family(labels)
    levels = list(family.levels)
    if block_label:
        levels = [("block", block_label), *((name, key) for name, key in levels[1:] if key != block_label)]
    used = [(name, key) for name, key in levels if name == "block" or any(key in each for each in labels.values())]
    paths = _qualified({name: tuple(each.get(key) or None for _, key in used) for name, each in labels.items()})
    unique: dict[str, list[SeenNode]] = defaultdict(list)
    local: dict[tuple[str | None, str], list[SeenNode]] = defaultdict(list)
    nvlink: set[str] = set()
    rack_keys: Counter[str] = Counter()
    for node in nodes:
        mine, path = labels[node.name], paths[node.name]
        key = next((key for key in (rack_label, _NVLINK_LABELS[1]) if mine.get(key)), None)
        if key or mine.get(family.rack):
            rack_keys[key or family.rack] += 1
        if key:
            unique[mine[key]].append(node)
            if key in _NVLINK_LABELS:
                nvlink.add(mine[key])
        elif mine.get(family.rack):
            local[path[0], mine[family.rack]].append(node)
        elif not is_rack_scale(kind_of(node).model) and (lowest := next(filter(None, path), None)):
            local[path[0], lowest].append(node)
    notes: list[str] = []
    racks = [_unique_rack(name, members, paths, notes, name in nvlink) for name, members in unique.items()]
    racks += _local_racks(local, paths, set(unique))
    carried = [key for _, key in used if any(each.get(key) for each in labels.values())]
    told = (*reversed(carried), rack_keys.most_common(1)[0][0]) if rack_keys else ()
    return SeenTopology(tuple(racks), tuple(name for name, _ in used), told, tuple(notes))


def _family(labels: Mapping[str, Mapping[str, str]]) -> LabelFamily:
    def carried(family: LabelFamily) -> int:
        keys = [family.rack, *(key for _, key in family.levels)]
        return sum(bool(each.get(key)) for each in labels.values() for key in keys)

    return max(FAMILIES, key=carried)


def _qualified(paths: Mapping[str, tuple[str | None, ...]]) -> dict[str, tuple[str | None, ...]]:
    """Paths in which every name has one parent: names under several parents carry the parent in front."""
    result = {name: list(path) for name, path in paths.items()}
    depth = max((len(path) for path in result.values()), default=0)
    for level in range(depth - 2, -1, -1):
        parents: dict[str, set[str]] = defaultdict(set)
        for path in result.values():
            name, parent = path[level], path[level + 1]
            if name and parent:
                parents[name].add(parent)
        for path in result.values():
            name = path[level]
            if name and len(parents[name]) > 1:
                path[level] = f"{path[level + 1]}/{name}" if path[level + 1] else None
    return {name: tuple(path) for name, path in result.items()}


def _unique_rack(
    name: str, members: Sequence[SeenNode], paths: Mapping[str, tuple[str | None, ...]], notes: list[str], nvlink: bool
) -> SeenRack:
    """A rack whose nodes lie under two names of a level is under none there: unknown is never adjacency."""
    levels: list[str | None] = []
    for values in zip(*(paths[node.name] for node in members), strict=True):
        known = {value for value in values if value}
        if len(known) > 1:
            notes.append(f"rack {name} lies under {' and '.join(sorted(known))}: its place in the network is unknown")
        levels.append(known.pop() if len(known) == 1 else None)
    return SeenRack(name, members[0].place, tuple(node.name for node in members), tuple(levels), nvlink)


def _local_racks(
    local: Mapping[tuple[str | None, str], Sequence[SeenNode]],
    paths: Mapping[str, tuple[str | None, ...]],
    taken: set[str],
) -> list[SeenRack]:
    homes: dict[str, set[str | None]] = defaultdict(set)
    for block, name in local:
        homes[name].add(block)
    racks = []
    for (block, name), members in local.items():
        own = f"{block or 'unknown'}/{name}" if len(homes[name]) > 1 or name in taken else name
        racks.append(SeenRack(own, members[0].place, tuple(node.name for node in members), paths[members[0].name]))
    return racks
