"""What does a Kueue cluster hold? (lists of objects as the API gives them -> Observed)

Only what Berth decides is compared: server-filled defaults, status and other people's labels are left out, quantities
are compared by value. An object is ours by its labels, and where the server tells field managers, by ours among them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from scheduling.dialects.errors import DialectError, UnreadableAnswer
from scheduling.dialects.kueue.names import (
    API,
    FIELD_MANAGER,
    GPU_RESOURCE,
    MANAGED_BY,
    NAMESPACE_LABEL,
    same_weight,
    whole_quantity,
)
from scheduling.dialects.kueue.objects import BORROWING, CLASSES, LENDING, NODE_LABEL, NOMINAL, Owner, kueue_object
from scheduling.dialects.kueue.occupied import busy_nodes
from scheduling.plan import NativeObject, Observed

READS: Mapping[str, str] = {
    "Topology": f"/apis/{API}/topologies",
    "ResourceFlavor": f"/apis/{API}/resourceflavors",
    "Cohort": f"/apis/{API}/cohorts",
    "ClusterQueue": f"/apis/{API}/clusterqueues",
    "LocalQueue": f"/apis/{API}/localqueues",
    "Workload": f"/apis/{API}/workloads",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
}


def parse(
    native: Mapping[str, Iterable[Mapping[str, Any]]], *, installation: str, label_prefix: str = "berth.local"
) -> Observed:
    """Objects of all classes; facts: busy_nodes (node -> names of what runs there), terminating (keys).

    Every list of READS must be there, be it empty: a list that was not read raises UnreadableAnswer.
    """
    for kind in READS:
        if not isinstance(native.get(kind), Iterable):
            raise UnreadableAnswer(kind, "this list was not read, and nothing is derived from its absence")
    owner = Owner(installation, label_prefix)
    objects: list[NativeObject] = []
    terminating = []
    with _of_form("Cohort"):
        depths = _depths(native["Cohort"])
    for kind in CLASSES:
        for item in native[kind]:
            with _of_form(kind, item):
                for found in _read(owner, kind, item):
                    objects.append(replace(found, depth=depths[found.name]) if kind == "Cohort" else found)
                    if item["metadata"].get("deletionTimestamp"):
                        terminating.append(found.key)
    with _of_form("Pod"):
        busy = busy_nodes(native["Pod"], native["Workload"])
    facts = {"busy_nodes": busy, "terminating": tuple(terminating)}
    return Observed(tuple(objects), facts)


@contextmanager
def _of_form(kind: str, item: Any = None) -> Iterator[None]:
    """A server holds objects to their schema; a file may hold anything. What breaks the form is refused."""
    try:
        yield
    except DialectError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        metadata = item.get("metadata") if isinstance(item, Mapping) else None
        name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
        raise UnreadableAnswer(kind, f"an object {name[:64]!r} is not of the form that Kueue knows: {error}") from error


def _depths(cohorts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many cohorts stand above each; a cycle, which the server accepts, ends where it closes."""
    above = {
        str((item.get("metadata") or {}).get("name", "")): str((item.get("spec") or {}).get("parentName") or "")
        for item in cohorts
    }
    depths = {}
    for name in above:
        seen: set[str] = set()
        step = name
        while step in above and step not in seen:
            seen.add(step)
            step = above[step]
        depths[name] = len(seen)
    return depths


def _read(owner: Owner, kind: str, item: Mapping[str, Any]) -> Iterator[NativeObject]:
    metadata = item.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if "name" not in metadata:
        raise UnreadableAnswer(kind, "an object without a name")
    name = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    spec = item.get("spec") or {}
    attributes = _ATTRIBUTES[kind](owner, spec)
    if kind == "Node":
        attributes["reservation"] = labels.get(owner.reservation_label)
        if not any(attributes.values()):
            return  # a node without our marks is no object of ours
    elif kind in ("ResourceFlavor", "ClusterQueue", "LocalQueue"):
        marks = {"reservation": owner.reservation_label, "flavor": owner.flavor_label}
        attributes |= {key: labels[label] for key, label in marks.items() if label in labels}
    if metadata.get("deletionTimestamp"):
        attributes["deletionTimestamp"] = metadata["deletionTimestamp"]
    yield kueue_object(owner, kind, name, attributes, kind == "Node" or _is_ours(owner, metadata, labels))


def _is_ours(owner: Owner, metadata: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    marked = labels.get(MANAGED_BY) == FIELD_MANAGER and labels.get(owner.installation_label) == owner.installation
    managers = {entry.get("manager") for entry in metadata.get("managedFields") or []}
    return marked and (not managers or FIELD_MANAGER in managers)


def _topology(owner: Owner, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"levels": tuple(level.get("nodeLabel") for level in spec.get("levels") or [])}


def _node(owner: Owner, spec: Mapping[str, Any]) -> dict[str, Any]:
    ours = [taint for taint in spec.get("taints") or [] if taint.get("key") == owner.reservation_label]
    return {"taint": next((taint.get("value") for taint in ours if taint.get("effect") == "NoSchedule"), None)}


def _flavor(owner: Owner, spec: Mapping[str, Any]) -> dict[str, Any]:
    ours = [each for each in spec.get("tolerations") or [] if each.get("key") == owner.reservation_label]
    labels = {NODE_LABEL + key: value for key, value in (spec.get("nodeLabels") or {}).items()}
    toleration = next((each.get("value") for each in ours), None)
    return {**labels, "topologyName": spec.get("topologyName"), "toleration": toleration}


def _cohort(owner: Owner, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"parentName": spec.get("parentName") or None, "weight": _weight(spec), **_quotas(spec)}


def _cluster_queue(owner: Owner, spec: Mapping[str, Any]) -> dict[str, Any]:
    preemption = spec.get("preemption") or {}
    return {
        "cohortName": spec.get("cohortName") or None,
        "namespaces": _namespaces(spec.get("namespaceSelector")),
        "weight": _weight(spec),
        "reclaimWithinCohort": preemption.get("reclaimWithinCohort", "Never"),
        "withinClusterQueue": preemption.get("withinClusterQueue", "Never"),
        "stopPolicy": spec.get("stopPolicy") or "None",
        **_quotas(spec),
    }


def _local_queue(owner: Owner, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"clusterQueue": spec.get("clusterQueue")}


_ATTRIBUTES = {
    "Topology": _topology,
    "Node": _node,
    "ResourceFlavor": _flavor,
    "Cohort": _cohort,
    "ClusterQueue": _cluster_queue,
    "Namespace": lambda owner, spec: {},
    "LocalQueue": _local_queue,
}


def _weight(spec: Mapping[str, Any]) -> str:
    return same_weight((spec.get("fairSharing") or {}).get("weight", "1"))


def _namespaces(selector: Any) -> Any:
    """The names that our form of selector lists; any other form as it is, so that it differs from ours."""
    match selector:
        case {"matchExpressions": [{"key": key, "operator": "In", "values": [*names]}], **rest} if (
            key == NAMESPACE_LABEL and not any(rest.values())
        ):
            return tuple(sorted(names))
    return selector


def _quotas(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Quotas by flavor; those of other resources, which Berth does not write, under names that differ from ours."""
    quotas: dict[str, Any] = {}
    for group in spec.get("resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            for resource in flavor.get("resources") or []:
                other = "" if resource.get("name") == GPU_RESOURCE else f"{resource.get('name')}:"
                for prefix in (NOMINAL, BORROWING, LENDING):
                    value = resource.get(prefix.rstrip("/"))
                    if value is not None:
                        quotas[f"{prefix}{other}{flavor.get('name')}"] = whole_quantity(value)
    return quotas
