"""What is each object's manifest, given its attributes? (and the rules by which objects of its class are written)

A manifest is a pure function of (class, name, attributes, owner), so that a step may write any state between two.
Manifests are sent by server-side apply with force and field manager `berth`; they hold only what Berth decides, and
quantities as strings. Deletes name apiVersion, kind and metadata alone; its labels are the marks that the object must
carry to be ours. Nodes are different: see nodes.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from scheduling.dialects.kueue.names import API, FIELD_MANAGER, GPU_RESOURCE, MANAGED_BY, NAMESPACE_LABEL, label_value
from scheduling.dialects.kueue.nodes import write_node
from scheduling.plan import Attributes, ClassRules, NativeObject, Verb, Written

Manifest = dict[str, Any]
CLASSES = ("Topology", "Node", "ResourceFlavor", "Cohort", "ClusterQueue", "Namespace", "LocalQueue")
NOMINAL, BORROWING, LENDING = "nominalQuota/", "borrowingLimit/", "lendingLimit/"
NODE_LABEL = "nodeLabels/"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose objects these are: the installation's code and the prefix of our labels."""

    installation: str
    label_prefix: str

    @property
    def installation_label(self) -> str:
        return f"{self.label_prefix}/installation"

    @property
    def reservation_label(self) -> str:
        return f"{self.label_prefix}/reservation"

    @property
    def flavor_label(self) -> str:
        return f"{self.label_prefix}/flavor"


def kueue_object(
    owner: Owner, object_class: str, name: str, attributes: Attributes, owned: bool = True
) -> NativeObject:
    """An object with its manifest; `name` is namespace/name where the class lives in namespaces."""
    native = manifest(owner, object_class, name, attributes)
    return NativeObject(object_class, name, attributes, native, owned, _rules(owner, object_class))


def manifest(owner: Owner, object_class: str, name: str, attributes: Attributes) -> Manifest:
    """The object as Berth applies it."""
    namespace, _, bare = name.rpartition("/")
    metadata: Manifest = {"name": bare, "labels": _labels(owner, object_class, attributes)}
    if namespace:
        metadata["namespace"] = namespace
    head = {"apiVersion": "v1" if object_class in ("Namespace", "Node") else API, "kind": object_class}
    spec = _SPECS[object_class](owner, attributes)
    return {**head, "metadata": metadata, **({"spec": spec} if spec else {})}


def _labels(owner: Owner, object_class: str, attributes: Attributes) -> dict[str, str]:
    """Berth's marks; a node carries only the reservation's, for nodes are nobody's objects."""
    labels = {}
    if object_class != "Node":
        labels = {MANAGED_BY: FIELD_MANAGER, owner.installation_label: label_value(owner.installation)}
    for key, label in (("reservation", owner.reservation_label), ("flavor", owner.flavor_label)):
        if attributes.get(key):
            labels[label] = attributes[key]
    return labels


def _topology(owner: Owner, attributes: Attributes) -> Manifest:
    return {"levels": [{"nodeLabel": label} for label in attributes["levels"]]}


def _node(owner: Owner, attributes: Attributes) -> Manifest:
    value = attributes.get("taint")
    return {"taints": [{"key": owner.reservation_label, "value": value, "effect": "NoSchedule"}]} if value else {}


def _flavor(owner: Owner, attributes: Attributes) -> Manifest:
    spec: Manifest = {"nodeLabels": _under(NODE_LABEL, attributes)}
    if attributes.get("toleration"):
        taint = {"key": owner.reservation_label, "value": attributes["toleration"], "effect": "NoSchedule"}
        spec["tolerations"] = [{**taint, "operator": "Equal"}]
    if attributes.get("topologyName"):
        spec["topologyName"] = attributes["topologyName"]
    return spec


def _cohort(owner: Owner, attributes: Attributes) -> Manifest:
    spec: Manifest = {
        "fairSharing": {"weight": attributes["weight"]},
        "resourceGroups": _resource_groups(attributes),
    }
    return spec | ({"parentName": attributes["parentName"]} if attributes.get("parentName") else {})


def _cluster_queue(owner: Owner, attributes: Attributes) -> Manifest:
    chosen = {"key": NAMESPACE_LABEL, "operator": "In", "values": list(attributes["namespaces"] or ())}
    spec: Manifest = {
        "fairSharing": {"weight": attributes["weight"]},
        "namespaceSelector": {"matchExpressions": [chosen]},
        "preemption": {key: attributes[key] for key in ("reclaimWithinCohort", "withinClusterQueue")},
        "stopPolicy": attributes["stopPolicy"],
        "resourceGroups": _resource_groups(attributes),
    }
    return spec | ({"cohortName": attributes["cohortName"]} if attributes.get("cohortName") else {})


def _local_queue(owner: Owner, attributes: Attributes) -> Manifest:
    return {"clusterQueue": attributes["clusterQueue"]}


def _resource_groups(attributes: Attributes) -> list[Manifest]:
    """All quotas in one group of GPUs; one list that Berth writes whole (it is atomic in server-side apply)."""
    flavors = []
    for flavor, nominal in sorted(_under(NOMINAL, attributes).items()):
        quota = {"name": GPU_RESOURCE, "nominalQuota": str(nominal)}
        for prefix in (BORROWING, LENDING):
            if attributes.get(prefix + flavor) is not None:
                quota[prefix.rstrip("/")] = str(attributes[prefix + flavor])
        flavors.append({"name": flavor, "resources": [quota]})
    return [{"coveredResources": [GPU_RESOURCE], "flavors": flavors}] if flavors else []


_SPECS: Mapping[str, Callable[[Owner, Attributes], Manifest]] = {
    "Topology": _topology,
    "Node": _node,
    "ResourceFlavor": _flavor,
    "Cohort": _cohort,
    "ClusterQueue": _cluster_queue,
    "Namespace": lambda owner, attributes: {},
    "LocalQueue": _local_queue,
}


def _under(prefix: str, attributes: Attributes) -> dict[str, Any]:
    found = {key.removeprefix(prefix): value for key, value in attributes.items() if key.startswith(prefix)}
    return {key: value for key, value in found.items() if value is not None}


def _rules(owner: Owner, object_class: str) -> ClassRules:
    """Queues and fences of nodes go before anything is given to others; what they stand on goes last."""
    rank = CLASSES.index(object_class)
    if object_class == "Node":
        return ClassRules(rank, partial(write_node, owner.reservation_label, partial(manifest, owner)), deletes="early")
    write = partial(_write, owner, object_class)
    if object_class == "Namespace":
        return ClassRules(rank, write, deletes="never", adopts=True)
    if object_class in ("Cohort", "ClusterQueue"):
        return ClassRules(rank, write, _give_back, deletes="early" if object_class == "ClusterQueue" else "late")
    if object_class == "LocalQueue":  # clusterQueue is immutable: another queue is another object
        return ClassRules(rank, write, release=lambda before, after, rivals: {}, deletes="early")
    return ClassRules(rank, write)


def _write(owner: Owner, object_class: str, verb: Verb, name: str, before: Attributes, after: Attributes) -> Written:
    if verb != "delete":
        sent = manifest(owner, object_class, name, after)
        return Written(sent, (as_yaml(sent),))
    sent = manifest(owner, object_class, name, before)
    metadata = sent["metadata"]
    group = ".kueue.x-k8s.io" if sent["apiVersion"] == API else ""
    place = f" --namespace={metadata['namespace']}" if "namespace" in metadata else ""
    line = f"kubectl delete {object_class.lower()}{group} {metadata['name']}{place} --wait=false"
    return Written({"apiVersion": sent["apiVersion"], "kind": object_class, "metadata": metadata}, (line,))


# libyaml's safe dumper where it is there: ten times faster, and the same bytes for what is written here
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def as_yaml(document: Manifest) -> str:
    """One YAML document, the same bytes for the same content."""
    return str(yaml.dump(document, Dumper=_DUMPER, sort_keys=True, default_flow_style=False, width=120))


def _give_back(before: Attributes, after: Attributes, rivals: Sequence[Attributes]) -> Attributes:
    """Lower every nominal quota that shall be lower, and leave the rest as it is.

    The whole change where no quota rises and the place in the tree stays: then nothing has to wait.
    """
    lowered: dict[str, Any] = dict(before)
    for flavor, nominal in _under(NOMINAL, before).items():
        lowered[NOMINAL + flavor] = min(nominal, after.get(NOMINAL + flavor) or 0)
        lending = lowered.get(LENDING + flavor)
        if lending is not None:  # never above the nominal quota, which the webhook refuses
            lowered[LENDING + flavor] = min(lending, lowered[NOMINAL + flavor])
    rises = any(nominal > (lowered.get(NOMINAL + flavor) or 0) for flavor, nominal in _under(NOMINAL, after).items())
    new_flavors = not set(_under(NOMINAL, after)) <= set(_under(NOMINAL, before))
    stays = all(before.get(key) == after.get(key) for key in ("parentName", "cohortName"))
    falls = any(lowered[key] != before[key] for key in lowered if key.startswith(NOMINAL))
    return after if after and stays and falls and not rises and not new_flavors else lowered
