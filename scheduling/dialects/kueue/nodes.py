"""How is a node fenced for a reservation, and how is the fence taken off? (our label and our taint, nothing else)

`spec.taints` is one atomic list in server-side apply, so that applying ours would wipe everybody else's. A driver
therefore reads the node, asks `node_patch()` for a merge patch that carries the resourceVersion, and reads again on a
conflict. On a delete only our label and our taint go; the node stays.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from scheduling.plan import Attributes, Verb, Written


def write_node(
    label: str,
    manifest: Callable[[str, str, Attributes], dict[str, Any]],
    verb: Verb,
    name: str,
    before: Attributes,
    after: Attributes,
) -> Written:
    """Native words of one node: the label and taint to be set, or on a delete those to be removed."""
    node = shlex.quote(name)
    if verb == "delete":
        lines = (f"kubectl taint node {node} {label}-", f"kubectl label node {node} {label}-")
        return Written(manifest("Node", name, before), lines)
    fence = f"{label}={after['taint']}:NoSchedule"
    lines = (
        f"kubectl label node {node} {label}={after['reservation']} --overwrite",
        f"kubectl taint node {node} {fence} --overwrite",
    )
    return Written(manifest("Node", name, after), lines)


def node_patch(live: Mapping[str, Any], step_native: Mapping[str, Any], verb: Verb) -> dict[str, Any]:
    """The JSON merge patch that brings `live` (the node as read) to a step: labels by key, taints by our keys only.

    It carries the resourceVersion of `live`, so that the server answers 409 when somebody wrote in between.
    """
    labels = step_native["metadata"].get("labels", {})
    taints = step_native.get("spec", {}).get("taints", [])
    ours = {taint["key"] for taint in taints} | set(labels)
    others = [taint for taint in live.get("spec", {}).get("taints") or [] if taint["key"] not in ours]
    return {
        "metadata": {
            "resourceVersion": live["metadata"]["resourceVersion"],
            "labels": {key: None if verb == "delete" else value for key, value in labels.items()},
        },
        "spec": {"taints": others if verb == "delete" else [*others, *taints]},
    }
