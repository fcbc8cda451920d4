"""What would the files of a made-up cluster say? (real `scontrol show node` text, topology.conf, a Kubernetes NodeList)

The demo's inventories take the same road as anybody's: they are written as text and read by the parsers.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.hostlist import fold

NETWORK = "network.topology.nvidia.com/"


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """One made-up cluster: NVL72 racks in blocks, HGX nodes below leaf switches, a few CPU nodes.

    `ill` maps the number of an NVL72 node (from 1, over the whole cluster) to (Slurm state, reason).
    """

    name: str
    kind: str
    zone: str
    blocks: int
    racks_per_block: int
    hgx_nodes: int = 0
    cpu_nodes: int = 0
    nodes_per_rack: int = 18
    hgx_model: str = "h100"
    ill: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def inventory_kind(self) -> str:
        return "slurm" if self.kind == "slurm" else "kubernetes"


@dataclass(frozen=True, slots=True)
class _Host:
    """One host before it is written down."""

    name: str
    gpu_type: str
    gpus: int
    rack: str
    block: str
    cabinet: str
    partition: str
    state: str = "IDLE"
    reason: str = ""


def files_of(shape: ClusterShape) -> dict[str, str]:
    """The inventory files of the cluster by name, in the words of its scheduler."""
    hosts = list(_hosts(shape))
    if shape.inventory_kind == "slurm":
        return {"nodes.txt": "\n".join(map(_scontrol, hosts)), "topology.conf": _topology_conf(hosts)}
    items = [_kubernetes_node(host) for host in hosts]
    return {"nodes.json": json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": items}, indent=1)}


def _hosts(shape: ClusterShape) -> Iterator[_Host]:
    number = 0
    width = max(3, len(str(shape.blocks * shape.racks_per_block * shape.nodes_per_rack)))
    for block in range(1, shape.blocks + 1):
        for rack in range(1, shape.racks_per_block + 1):
            place = (block - 1) * shape.racks_per_block + rack
            for at in range(shape.nodes_per_rack):
                number += 1
                state, reason = shape.ill.get(number, ("IDLE", ""))
                # The first domain of each block lies over two cabinets; all others have one each.
                cabinet = f"c{place:03}{'b' if rack == 1 and at >= shape.nodes_per_rack // 2 else ''}"
                name = f"{shape.name}-gb{number:0{width}}"
                yield _Host(name, "gb200", 4, f"r{place:03}", f"su{block:02}", cabinet, "nvl", state, reason)
    for at in range(1, shape.hgx_nodes + 1):
        leaf = (at - 1) // 8 + 1
        name = f"{shape.name}-h{at:03}"
        yield _Host(name, shape.hgx_model, 8, f"hgx{leaf:02}", "hgx", f"h{leaf:02}", "hgx")
    for at in range(1, shape.cpu_nodes + 1):
        yield _Host(f"{shape.name}-c{at:02}", "", 0, "cpu01", "services", "k01", "cpu")


def _scontrol(host: _Host) -> str:
    cores, memory = (72, 900_000) if host.gpu_type == "gb200" else (56, 2_000_000) if host.gpus else (48, 512_000)
    features = ",".join(word for word in (host.gpu_type, f"cabinet={host.cabinet}") if word)
    gres, gpus = (f"gpu:{host.gpu_type}:{host.gpus}", f",gres/gpu={host.gpus}") if host.gpus else ("(null)", "")
    lines = [
        f"NodeName={host.name} Arch=aarch64 CoresPerSocket={cores} ",
        f"CPUAlloc=0 CPUEfctv={cores * 2} CPUTot={cores * 2} CPULoad=0.10",
        f"AvailableFeatures={features}",
        f"ActiveFeatures={features}",
        f"Gres={gres}",
        f"NodeAddr={host.name} NodeHostName={host.name} Version=25.05.3",
        f"RealMemory={memory} AllocMem=0 FreeMem={memory - 4000} Sockets=2 Boards=1",
        f"State={host.state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={host.partition} ",
        f"CfgTRES=cpu={cores * 2},mem={memory}M,billing={cores * 2}{gpus}",
        "AllocTRES=",
    ]
    if host.reason:
        lines.append(f"Reason={host.reason} [root@2026-11-29T10:11:12]")
    return "\n   ".join(lines) + "\n"


def _topology_conf(hosts: list[_Host]) -> str:
    racks: dict[str, list[str]] = {}
    blocks: dict[str, list[str]] = {}
    for host in hosts:
        racks.setdefault(host.rack, []).append(host.name)
        if host.rack not in blocks.setdefault(host.block, []):
            blocks[host.block].append(host.rack)
    lines = [f"SwitchName={rack} Nodes={fold(names)}" for rack, names in racks.items()]
    lines += [f"SwitchName={block} Switches={fold(names)}" for block, names in blocks.items()]
    return "\n".join([*lines, f"SwitchName=core Switches={fold(blocks)}"]) + "\n"


def _kubernetes_node(host: _Host) -> dict[str, Any]:
    capacity = {"cpu": "144", "memory": "900Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": host.name, "kubernetes.io/os": "linux", NETWORK + "leaf": host.block}
    labels[NETWORK + "spine"] = "spine1"
    if host.gpus:
        capacity["nvidia.com/gpu"] = str(host.gpus)
        labels["nvidia.com/gpu.product"] = f"NVIDIA-{host.gpu_type.upper()}"
        labels["nvidia.com/gpu.count"] = str(host.gpus)
    if host.gpu_type == "gb200":
        labels["nvidia.com/gpu.clique"] = host.rack
        labels["topology.kubernetes.io/cabinet"] = host.cabinet
    is_ready = not host.state.startswith("DOWN")
    ready = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": "KubeletReady" if is_ready else "KubeletNotReady",
        "message": "kubelet is posting ready status" if is_ready else host.reason,
    }
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if host.gpus else []
    spec: dict[str, Any] = {"taints": taints}
    if "DRAIN" in host.state:
        spec["unschedulable"] = True
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host.name, "labels": labels},
        "spec": spec,
        "status": {"capacity": capacity, "allocatable": dict(capacity), "conditions": [ready]},
    }
