"""What do a node's resources and labels say about its GPUs? (quantities, models, time slicing, MIG)"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from scheduling.inventory.gpu_models import known_model, model_of_instance_type

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d{1,24}(?:\.\d{0,12})?|\.\d{1,12}))(?P<suffix>[eE][+-]?\d{1,2}|[numkMGTPE]i?|Ki)?\Z"
)
_SUFFIX = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
_SUFFIX |= {letter: Decimal(1000) ** (at + 1) for at, letter in enumerate("kMGTPE")}
_SUFFIX |= {f"{letter}i": Decimal(1024) ** (at + 1) for at, letter in enumerate("KMGTPE")}
_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "alibabacloud.com/gpu-count")
_MODEL_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "alibabacloud.com/gpu-card-model",
                 "cloud.google.com/gke-accelerator")  # fmt: skip
_MACHINE_LABELS = ("nvidia.com/gpu.machine", "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
                   "nodeInstance")  # fmt: skip


def quantity(value: Any) -> Decimal | None:
    """A Kubernetes quantity (`8`, `"64Gi"`, `"500m"`) as a number, None for none; ValueError when unreadable."""
    if value is None:
        return None
    text = str(value).strip()
    match = _QUANTITY.match(text) if not isinstance(value, bool) else None
    suffix = (match["suffix"] or "") if match else ""
    if not match or (suffix.endswith("i") and suffix not in _SUFFIX):
        raise ValueError(f"{text[:40]!r} is not a quantity")
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        return Decimal(match["number"] + suffix)
    return Decimal(match["number"]) * _SUFFIX[suffix]


def whole_quantity(value: Any, *, round_down: bool = False) -> int | None:
    """quantity() as a whole number that is not negative; ValueError for a fraction unless `round_down`."""
    number = quantity(value)
    if number is None:
        return None
    if number < 0 or (number != number.to_integral_value() and not round_down):
        raise ValueError(f"{str(value)[:40]!r} is not a whole number of things")
    return int(number)


def gpus_of(
    capacity: Mapping[str, Any], allocatable: Mapping[str, Any], labels: Mapping[str, str]
) -> tuple[int, int, list[str]]:
    """(installed, usable, notes). Capacity keeps GPUs that are out of order, allocatable does not.

    Time slicing and MIG change what the resource counts, and with DRA there is none: then the label gpu.count tells
    the GPUs. A node that counts none though the label tells some has lost them all; it is no CPU node. ValueError on
    fractions.
    """
    counted = whole_quantity(labels.get("nvidia.com/gpu.count"))
    replicas = whole_quantity(labels.get("nvidia.com/gpu.replicas")) or 1
    notes: list[str] = []
    for resource in _GPU_RESOURCES:
        if resource not in capacity and resource not in allocatable:
            continue
        usable = whole_quantity(allocatable.get(resource, capacity.get(resource))) or 0
        installed = whole_quantity(capacity.get(resource, allocatable.get(resource))) or 0
        if resource == "nvidia.com/gpu" and replicas > 1 and counted:
            notes.append("GPUs are shared by time slicing on some nodes: whole GPUs are counted, not their slices")
            return counted, min(counted, -(-usable // replicas)), notes
        if installed:
            return installed, min(installed, usable), notes
    sliced = any(key.startswith("nvidia.com/mig-") for key in capacity)
    if counted and "nvidia.com/gpu" in capacity and not sliced:
        return counted, 0, notes
    if counted:
        notes.append("some nodes count GPUs by the label nvidia.com/gpu.count alone (MIG or DRA)")
        return counted, counted, notes
    return 0, 0, notes


def model_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """(native word, model named elsewhere): the product label, else the machine or instance type."""
    native = next((labels[key] for key in _MODEL_LABELS if labels.get(key)), "")
    for key in _MACHINE_LABELS:
        named = model_of_instance_type(labels.get(key, "")) or known_model(labels.get(key, ""))
        if named:
            return native.removesuffix("-SHARED"), named
    return native.removesuffix("-SHARED"), ""
