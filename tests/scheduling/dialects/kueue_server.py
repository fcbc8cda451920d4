"""What would a Kueue cluster hold after these writes? (a small model, for plans; drivers are tested over real HTTP)

It refuses what the server and its webhooks refuse, fills in defaults as they do, and counts the promised GPUs.
"""

import copy
from typing import Any

from scheduling.dialects.kueue import node_patch
from scheduling.dialects.kueue.names import GPU_RESOURCE, whole_quantity
from scheduling.dialects.kueue.parse import READS
from scheduling.plan import Step


class Refused(Exception):
    """The server answered with an error."""


class KueueServer:
    def __init__(self, nodes: dict[str, list[dict[str, str]]]) -> None:
        """`nodes`: name -> taints that somebody else put on it."""
        self.kept: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in READS}
        for name, taints in nodes.items():
            metadata = {"name": name, "resourceVersion": "1", "labels": {"kubernetes.io/hostname": name}}
            self.kept["Node"][name] = {"metadata": metadata, "spec": {"taints": taints}}

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        return {kind: [copy.deepcopy(each) for each in objects.values()] for kind, objects in self.kept.items()}

    def take(self, step: Step) -> None:
        """Do one step, or raise Refused."""
        if step.object_class == "Node":
            self._patch_node(step)
        elif step.verb == "delete":
            self._delete(step)
        else:
            self._apply(step.object_class, step.name, copy.deepcopy(step.native))

    def run_pod(self, name: str, node: str) -> None:
        container = {"resources": {"requests": {GPU_RESOURCE: "4"}}}
        self.kept["Pod"][name] = {
            "metadata": {"name": name, "namespace": "somewhere", "labels": {}},
            "spec": {"nodeName": node, "containers": [container]},
            "status": {"phase": "Running"},
        }

    def promised(self, base: dict[str, str]) -> dict[str, int]:
        """GPUs by flavor over all nominal quotas; `base` tells the flavor behind a reservation's own."""
        total: dict[str, int] = {}
        for kind in ("Cohort", "ClusterQueue"):
            for item in self.kept[kind].values():
                for group in item["spec"].get("resourceGroups", []):
                    for flavor in group["flavors"]:
                        name = base.get(flavor["name"], flavor["name"])
                        quota = whole_quantity(flavor["resources"][0]["nominalQuota"])
                        total[name] = total.get(name, 0) + quota
        return total

    def _patch_node(self, step: Step) -> None:
        node = self.kept["Node"][step.name]
        patch = node_patch(node, step.native, step.verb)
        assert patch["metadata"].pop("resourceVersion") == node["metadata"]["resourceVersion"]
        for key, value in patch["metadata"]["labels"].items():
            if value is None:
                node["metadata"]["labels"].pop(key, None)
            else:
                node["metadata"]["labels"][key] = value
        node["spec"]["taints"] = patch["spec"]["taints"]

    def _delete(self, step: Step) -> None:
        if step.native["kind"] in ("ResourceFlavor", "Cohort"):
            self._refuse_use(step)
        del self.kept[step.object_class][step.name]

    def _refuse_use(self, step: Step) -> None:
        """What Berth promises of itself: never delete what something else still stands on."""
        for kind in ("Cohort", "ClusterQueue"):
            for item in self.kept[kind].values():
                flavors = [flavor["name"] for group in item["spec"]["resourceGroups"] for flavor in group["flavors"]]
                above = item["spec"].get("cohortName") or item["spec"].get("parentName")
                if step.native["metadata"]["name"] in (flavors if step.object_class == "ResourceFlavor" else [above]):
                    raise Refused(f"{step.name} is still in use by {item['metadata']['name']}")

    def _apply(self, kind: str, name: str, sent: dict[str, Any]) -> None:
        spec = sent.get("spec", {})
        if kind == "LocalQueue":
            if sent["metadata"]["namespace"] not in self.kept["Namespace"]:
                raise Refused("namespace not found")
            if spec["clusterQueue"] not in self.kept["ClusterQueue"]:
                raise Refused("a local queue without its cluster queue")
            before = self.kept[kind].get(name)
            if before and before["spec"]["clusterQueue"] != spec["clusterQueue"]:
                raise Refused("field is immutable")
        above = spec.get("cohortName") or spec.get("parentName")
        if above and above not in self.kept["Cohort"]:
            raise Refused(f"cohort {above} is not there")
        for group in spec.get("resourceGroups", []):
            for flavor in group["flavors"]:
                self._check_flavor(flavor, bool(above))
        if kind == "ClusterQueue":
            spec.setdefault("queueingStrategy", "BestEffortFIFO")
            spec.setdefault("flavorFungibility", {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"})
        sent["metadata"]["managedFields"] = [{"manager": "berth"}, {"manager": "kueue"}]
        self.kept[kind][name] = {**sent, "status": {"conditions": []}}

    def _check_flavor(self, flavor: dict[str, Any], has_parent: bool) -> None:
        if flavor["name"] not in self.kept["ResourceFlavor"]:
            raise Refused(f"flavor {flavor['name']} is not there")
        for quota in flavor["resources"]:
            if not all(isinstance(value, str) for value in quota.values()):
                raise Refused("quantities are strings")
            if not has_parent and ("borrowingLimit" in quota or "lendingLimit" in quota):
                raise Refused("limits without a cohort")
            if int(quota["nominalQuota"]) < 0 or int(quota.get("lendingLimit", 0)) > int(quota["nominalQuota"]):
                raise Refused("must be less than or equal to the nominalQuota")
