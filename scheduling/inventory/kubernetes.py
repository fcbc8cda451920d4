"""What does an upload of Kubernetes nodes say the cluster is? (NodeList, List or Node, JSON or YAML)"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.inventory.assembly import assemble
from scheduling.inventory.documents import json_item_place, key_place, line_of, load_json, load_yaml
from scheduling.inventory.fleet import FleetInventory, InventoryError
from scheduling.inventory.kubernetes_health import read_health
from scheduling.inventory.kubernetes_topology import topology_of
from scheduling.inventory.kubernetes_words import gpus_of, model_of, whole_quantity
from scheduling.inventory.sightings import Place, SeenNode, checked_node_name, checked_text

RACK_LABEL = "nvidia.com/gpu.clique"
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_SLURM = re.compile(r"^[ \t]*(?:NodeName|SwitchName|BlockName|PartitionName|ClusterName)[ \t]*=", re.M | re.I)


def parse_kubernetes(
    files: Mapping[str, str], rack_label: str = RACK_LABEL, block_label: str | None = None
) -> FleetInventory:
    """The fleet that these files (name -> text) list together; raises InventoryError and then nothing counts.

    A rack is the value of `rack_label`, else what the network labels of NVIDIA, Google, AWS, Oracle or plain
    Kubernetes say; the block is `block_label`, else the lowest network level.
    """
    if not files:
        raise InventoryError("(no file)", 1, "no file is given")
    notes: list[str] = []
    nodes: list[SeenNode] = []
    for file, raw in files.items():
        before = len(nodes)
        for item, place in _items(file, checked_text(file, raw), notes):
            nodes.append(_seen(item, place, notes))
        if len(nodes) == before:
            raise InventoryError(file, 1, "no Node in this file: give `kubectl get nodes -o json` (or -o yaml)")
    topology = topology_of(nodes, rack_label, block_label)
    if not topology.racks:
        notes.append(f"no node carries {rack_label} or a network label: no racks are known")
    return assemble("kubernetes", nodes, topology, notes)


def _items(file: str, text: str, notes: list[str]) -> Iterator[tuple[dict[str, Any], Place]]:
    """Every Node object of the file with its place."""
    is_json = text.lstrip()[:1] in ("{", "[")
    if not is_json and _SLURM.search(text):
        match = _SLURM.search(text)
        line = text.count("\n", 0, match.end()) + 1 if match else 1
        raise InventoryError(file, line, "a Slurm file in a Kubernetes inventory: import it with --kind slurm")
    documents = [load_json(file, text)] if is_json else load_yaml(file, text)
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise InventoryError(file, 1, f"not a Kubernetes object but {str(document)[:40]!r}")
        yield from _objects(file, text if is_json else "", document, notes)


def _objects(
    file: str, json_text: str, document: dict[str, Any], notes: list[str]
) -> Iterator[tuple[dict[str, Any], Place]]:
    kind = document.get("kind")
    place = Place(file, line_of(document))
    if kind == "Node":
        yield document, place
        return
    if kind not in ("NodeList", "List"):
        if "nodes" in document and "kind" not in document and json_text:
            raise place.refuse("JSON of Slurm in a Kubernetes inventory: import it with --kind slurm")
        raise place.refuse(
            f"kind is {str(kind)[:40]!r}, not Node or NodeList" if kind else "no Kubernetes object: `kind` is missing"
        )
    items = document.get("items")
    if not isinstance(items, list):
        raise Place(file, line_of(document, "items")).refuse(f"{kind} without a list of items")
    for index, item in enumerate(items):
        spot = (
            json_item_place(file, json_text, "items", index)
            if json_text
            else Place(file, line_of(item, "", place.line))
        )
        if not isinstance(item, dict):
            raise spot.refuse(f"items[{index}] is not an object")
        if item.get("kind", "Node" if kind == "NodeList" else None) == "Node":
            yield item, spot
        else:
            notes.append(f"an object of kind {str(item.get('kind'))[:40]} was left out")


def _mapping(parent: Mapping[str, Any], key: str, place: Place) -> dict[str, Any]:
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise key_place(parent, key, place).refuse(f"`{key}` is not a mapping")
    return value


def _seen(item: dict[str, Any], place: Place, notes: list[str]) -> SeenNode:
    metadata = _mapping(item, "metadata", place)
    name = metadata.get("name")
    at = key_place(metadata, "name", place)
    if "name" not in metadata:
        raise at.refuse("a node without metadata.name")
    checked_node_name(name, at)
    if not _NODE_NAME.match(str(name)):
        raise at.refuse(f"{str(name)[:60]!r} is not a node name of Kubernetes (a placeholder?)")
    labels = _labels(metadata, place)
    status = _mapping(item, "status", place)
    capacity, allocatable = _mapping(status, "capacity", place), _mapping(status, "allocatable", place)
    try:
        gpus, usable, said = gpus_of(capacity, allocatable, labels)
        cpus = whole_quantity(allocatable.get("cpu", capacity.get("cpu")), round_down=True)
        memory = whole_quantity(allocatable.get("memory", capacity.get("memory")), round_down=True)
    except ValueError as error:
        raise place.refuse(f"node {name}: {error}") from error
    notes += said
    native, named = model_of(labels)
    condition, drained, reason = read_health(item, metadata, status, (gpus, usable), place)
    return SeenNode(
        name=str(name),
        place=place,
        gpus=gpus,
        usable_gpus=usable,
        native_model=native,
        named_model=named,
        labels=tuple(sorted(labels.items())),
        condition=condition,
        drained=drained,
        reason=reason,
        cabinet=next((value for key, value in sorted(labels.items()) if key.rpartition("/")[2] == "cabinet"), ""),
        cpus=cpus,
        memory_mb=None if memory is None else memory // 1024**2,
    )


def _labels(metadata: dict[str, Any], place: Place) -> dict[str, str]:
    labels = _mapping(metadata, "labels", place)
    for key, value in labels.items():
        if not isinstance(value, str):
            raise key_place(labels, key, place).refuse(
                f"label {key[:60]} is {str(value)[:40]}, not text: put it in quotes"
            )
        if "{{" in value:
            raise key_place(labels, key, place).refuse(
                f"label {key[:60]} is a template placeholder: give the rendered file"
            )
    return dict(labels)
