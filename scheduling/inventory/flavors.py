"""Which kinds of node are there, and what are they called?

The rule of names, in this order: no GPUs: `cpu`. GPUs that share NVLink over the rack: `<model>-nvl<GPUs of a full
rack>`, e.g. gb200-nvl72; a rack seen more than half full counts as the usual size (36, 72, 144, 576), so a missing
node renames nothing. GPUs on one NVSwitch board: `<model>-hgx<GPUs>`, e.g. h100-hgx8. Anything else:
`<model>-<GPUs>gpu`, e.g. l40s-4gpu, unknown-2gpu. Two kinds that would get one name differ in the native word of
their GPU type: the larger keeps the name, the others add the word.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduling.inventory.fleet import FlavorRecord
from scheduling.inventory.gpu_models import gpu_model, is_hgx_board, is_rack_scale
from scheduling.inventory.sightings import SeenNode, SeenRack, natural_pair

_USUAL_DOMAINS = (36, 72, 144, 576)
_NAMING_LABELS = (
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.machine",
    "amd.com/gpu.product-name",
    "alibabacloud.com/gpu-card-model",
    "cloud.google.com/gke-accelerator",
    "node.kubernetes.io/instance-type",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What makes two nodes the same flavor: GPU model, GPUs per node, and the native word for the type."""

    model: str
    gpus: int
    native: str


def kind_of(node: SeenNode) -> Kind:
    """The kind of one node; every node without GPUs is of one kind."""
    if node.gpus == 0:
        return Kind("", 0, "")
    return Kind(gpu_model(node.native_model) or gpu_model(node.named_model), node.gpus, node.native_model)


def flavors_of(
    scheduler: str, nodes: Sequence[SeenNode], kinds: Mapping[str, Kind], racks: Iterable[SeenRack]
) -> tuple[dict[Kind, FlavorRecord], tuple[str, ...]]:
    """The flavor of every kind of node, and notes on what fits a flavor badly.

    `kinds` gives kind_of() by node name; racks hold known nodes only. Only `scheduler` slurm has a gres_type; on
    Kubernetes the native word is a label and stands in node_labels.
    """
    members: dict[Kind, list[SeenNode]] = defaultdict(list)
    for node in nodes:
        members[kinds[node.name]].append(node)
    full, nvlink = _full_racks(racks, kinds)
    domains = {kind: _domain(kind, kind in nvlink) for kind in members}
    names = _names({kind: _plain_name(kind, domains[kind], full.get(kind, 0)) for kind in members}, members)
    sizes = Counter(partition for node in nodes for partition in node.partitions)
    flavors, notes = {}, []
    for kind, mine in members.items():
        partition, missing = _partition(mine, sizes)
        if missing:
            notes.append(f"{missing} of {len(mine)} nodes of flavor {names[kind]} are not in its partition {partition}")
        flavors[kind] = FlavorRecord(
            name=names[kind],
            gpu_model=kind.model,
            gpus_per_node=kind.gpus,
            nodes_per_rack=max(1, full.get(kind, 0)),
            nvlink_domain=domains[kind],
            gres_type=kind.native if scheduler == "slurm" else "",
            partition=partition,
            node_labels=_node_labels(kind, members),
        )
    return flavors, tuple(notes)


def _full_racks(racks: Iterable[SeenRack], kinds: Mapping[str, Kind]) -> tuple[dict[Kind, int], set[Kind]]:
    full: dict[Kind, int] = {}
    nvlink: set[Kind] = set()
    for rack in racks:
        for kind, count in Counter(kinds[name] for name in rack.nodes).items():
            full[kind] = max(full.get(kind, 0), count)
            if rack.nvlink:
                nvlink.add(kind)
    return full, nvlink


def _domain(kind: Kind, in_nvlink_racks: bool) -> str:
    if kind.gpus == 0:
        return "none"
    if is_rack_scale(kind.model):
        return "rack"
    # A source that names NVLink domains is believed, except for boards that cannot reach over the rack.
    return (
        "rack" if in_nvlink_racks and kind.gpus < 8 and not is_hgx_board(kind.model, kind.native, kind.gpus) else "node"
    )


def _plain_name(kind: Kind, domain: str, nodes_in_rack: int) -> str:
    if kind.gpus == 0:
        return "cpu"
    model = _word(kind.model) or "unknown"
    if domain == "rack":
        seen = nodes_in_rack * kind.gpus or 72
        usual = next((size for size in _USUAL_DOMAINS if seen <= size < 2 * seen), seen)
        return f"{model}-nvl{usual}"
    if is_hgx_board(kind.model, kind.native, kind.gpus):
        return f"{model}-hgx{kind.gpus}"
    return f"{model}-{kind.gpus}gpu"


def _names(plain: Mapping[Kind, str], members: Mapping[Kind, Sequence[SeenNode]]) -> dict[Kind, str]:
    names: dict[Kind, str] = {}
    taken: set[str] = set()
    for kind in sorted(plain, key=lambda kind: (-len(members[kind]), kind.native, kind.gpus)):
        name = plain[kind]
        if name in taken:
            name = f"{name}-{_word(kind.native) or 'untyped'}"
        while name in taken:
            name += "-x"
        taken.add(name)
        names[kind] = name
    return names


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _partition(nodes: Sequence[SeenNode], sizes: Mapping[str, int]) -> tuple[str, int]:
    """The partition that holds most of these nodes, of those the one with fewest others; and how many it misses."""
    inside = Counter(partition for node in nodes for partition in node.partitions)
    if not inside:
        return "", 0
    best = min(inside, key=lambda name: (-inside[name], sizes[name], natural_pair(name)))
    return best, len(nodes) - inside[best]


def _node_labels(kind: Kind, members: Mapping[Kind, Sequence[SeenNode]]) -> tuple[tuple[str, str], ...]:
    """One label pair that all nodes of this kind carry and no other node does, () when there is none."""
    mine = [dict(node.labels) for node in members[kind]]
    others = [dict(node.labels) for other, nodes in members.items() if other != kind for node in nodes]
    for label in _NAMING_LABELS:
        value = mine[0].get(label)
        alike = all(labels.get(label) == value for labels in mine)
        if value and alike and not any(labels.get(label) == value for labels in others):
            return ((label, value),)
    return ()
