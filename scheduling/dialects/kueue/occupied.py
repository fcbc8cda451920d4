"""On which nodes does work run that a fence would hurt? (pods and workloads -> node: names)

A pod counts when it asks for GPUs or was started by Kueue; the agents that run on every node do not. A workload counts
as soon as Kueue has assigned it nodes, for its pods may not be there yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scheduling.dialects.kueue.names import HOSTNAME


def busy_nodes(pods: Iterable[Mapping[str, Any]], workloads: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Node -> sorted namespace/name of the pods that run there and workloads assigned there."""
    busy: dict[str, set[str]] = {}
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node and not finished and _is_work(pod):
            busy.setdefault(node, set()).add(_name(pod))
    for workload in workloads:
        for node in _assigned_nodes(workload):
            busy.setdefault(node, set()).add(_name(workload))
    return {node: tuple(sorted(names)) for node, names in sorted(busy.items())}


def _name(item: Mapping[str, Any]) -> str:
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def _is_work(pod: Mapping[str, Any]) -> bool:
    marks = {**(pod["metadata"].get("labels") or {}), **(pod["metadata"].get("annotations") or {})}
    if any(key.startswith("kueue.x-k8s.io/") for key in marks):
        return True
    spec = pod["spec"]
    for container in (*(spec.get("containers") or []), *(spec.get("initContainers") or [])):
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        if any(key.endswith("/gpu") and str(amount) != "0" for key, amount in asked.items()):
            return True
    return bool(spec.get("resourceClaims"))


def _assigned_nodes(workload: Mapping[str, Any]) -> Iterator[str]:
    """Host names of a workload that has not finished, unpacked from v1beta2's slices with prefix, roots and suffix."""
    status = workload.get("status") or {}
    if any(each.get("type") == "Finished" and each.get("status") == "True" for each in status.get("conditions") or []):
        return
    for pod_set in (status.get("admission") or {}).get("podSetAssignments") or []:
        assignment = pod_set.get("topologyAssignment") or {}
        levels = assignment.get("levels") or []
        if HOSTNAME in levels:
            place = levels.index(HOSTNAME)
            for part in assignment.get("slices") or []:
                yield from _level_values(part["valuesPerLevel"][place])


def _level_values(values: Mapping[str, Any]) -> Iterator[str]:
    if values.get("universal") is not None:
        yield values["universal"]
    individual = values.get("individual") or {}
    for root in individual.get("roots") or []:
        yield f"{individual.get('prefix') or ''}{root}{individual.get('suffix') or ''}"
