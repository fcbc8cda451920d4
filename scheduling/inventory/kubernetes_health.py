"""Is a Kubernetes node fit for work? (conditions, taints, cordon, GPUs out of order)"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.inventory.documents import key_place
from scheduling.inventory.sightings import Place

_ORDER = ("healthy", "suspect", "unknown", "failed")
_TAINTS = {
    "node.kubernetes.io/not-ready": "failed",
    "node.kubernetes.io/out-of-service": "failed",
    "node.cloudprovider.kubernetes.io/shutdown": "failed",
    "node.kubernetes.io/unreachable": "unknown",
    "node.cloudprovider.kubernetes.io/uninitialized": "unknown",
    "node.kubernetes.io/memory-pressure": "suspect",
    "node.kubernetes.io/disk-pressure": "suspect",
    "node.kubernetes.io/pid-pressure": "suspect",
    "node.kubernetes.io/network-unavailable": "suspect",
}
_DRAINING_TAINTS = ("node.kubernetes.io/unschedulable", "ToBeDeletedByClusterAutoscaler")
_PROBLEM = re.compile(r"(?:Pressure|Problem|Deadlock|Unhealthy|NetworkUnavailable|CorruptDockerOverlay2)\Z")


def read_health(
    item: Mapping[str, Any], metadata: Mapping[str, Any], status: Mapping[str, Any], gpus: tuple[int, int], place: Place
) -> tuple[str, bool, str]:
    """(condition, drained, reason) of a Node; `gpus` are (installed, usable). Taints of users never drain.

    Without a Ready condition a node is unknown. All GPUs out of order is a failed node, some a suspect one.
    """
    spec = item.get("spec") or {}
    if not isinstance(spec, dict):
        raise place.refuse("`spec` is not a mapping")
    findings = [*_from_conditions(status, place), *_from_gpus(*gpus)]
    drains = [reason for present, reason in (
        (spec.get("unschedulable") is True, "cordoned"),
        (metadata.get("deletionTimestamp") is not None, "being deleted"),
    ) if present]  # fmt: skip
    for taint in _entries(spec, "taints", place):
        key = str(taint.get("key"))
        if key in _TAINTS:
            findings.append((_TAINTS[key], f"taint {key}"))
        if key in _DRAINING_TAINTS and "cordoned" not in drains:
            drains.append(f"taint {key}")
    worst = max((condition for condition, _ in findings), key=_ORDER.index, default="healthy")
    reason = "; ".join(dict.fromkeys([*drains, *(why for _, why in findings if why)]))
    return worst, bool(drains), reason[:500]


def _entries(parent: Mapping[str, Any], key: str, place: Place) -> list[dict[str, Any]]:
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise key_place(parent, key, place).refuse(f"`{key}` is not a list of mappings")
    return value


def _from_conditions(status: Mapping[str, Any], place: Place) -> Iterator[tuple[str, str]]:
    ready = False
    for entry in _entries(status, "conditions", place):
        kind, value = str(entry.get("type")), str(entry.get("status"))
        if kind == "Ready":
            ready = True
            if value != "True":
                why = str(entry.get("message") or entry.get("reason") or "no reason given")
                yield "failed" if value == "False" else "unknown", f"not ready: {why[:200]}"
        elif value == "True" and _PROBLEM.search(kind):
            yield "suspect", f"{kind}: {str(entry.get('message') or entry.get('reason') or '')[:200]}"
    if not ready:
        yield "unknown", "no Ready condition"


def _from_gpus(installed: int, usable: int) -> Iterator[tuple[str, str]]:
    if usable < installed:
        yield "suspect" if usable else "failed", f"{installed - usable} of {installed} GPUs out of order"
