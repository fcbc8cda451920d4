"""How does a team use its reservation on Kueue? (a Job to copy, and the commands around it)"""

from typing import Any

from scheduling.desired import DesiredReservation, DesiredState
from scheduling.dialects.contract import UsageText
from scheduling.dialects.errors import UnknownReference
from scheduling.dialects.kueue.names import GPU_RESOURCE, namespace_name, reservation_name, reservation_value
from scheduling.dialects.kueue.objects import as_yaml

_QUEUE = "kueue.x-k8s.io/queue-name"
_LONGEST = "kueue.x-k8s.io/max-exec-time-seconds"
_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"


def usage(desired: DesiredState, wanted: DesiredReservation, account: str) -> tuple[UsageText, ...]:
    """A Job over all working nodes with the longest time that still fits at `at_minute`, and how to start it."""
    namespace, queue = namespace_name(account), reservation_name(wanted.id)
    shell = f"kubectl --namespace={namespace} get localqueue {queue}\nkubectl create --filename=job.yaml"
    return (
        UsageText("Job", as_yaml(_job(desired, wanted, namespace, queue)), "yaml"),
        UsageText("Start it", shell),
    )


def _job(desired: DesiredState, wanted: DesiredReservation, namespace: str, queue: str) -> dict[str, Any]:
    seconds = 60 * wanted.longest_minutes(desired.at_minute)
    nodes = len(set(wanted.nodes) - set(wanted.spares))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{queue}-",
            "namespace": namespace,
            "labels": {_QUEUE: queue, _LONGEST: str(seconds)},
        },
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            "template": {"metadata": {"annotations": _topology(desired, wanted)}, "spec": _pod(desired, wanted)},
        },
    }


def _topology(desired: DesiredState, wanted: DesiredReservation) -> dict[str, str]:
    """One rack: all pods inside it. Several: as close as the racks lie."""
    if not desired.topology_labels:
        return {}
    return {_REQUIRED if len(wanted.racks) == 1 else _PREFERRED: desired.topology_labels[-1]}


def _pod(desired: DesiredState, wanted: DesiredReservation) -> dict[str, Any]:
    flavor = next((known for known in desired.flavors if known.name == wanted.flavor), None)
    if flavor is None:
        raise UnknownReference("flavor", wanted.flavor, f"reservation {wanted.id}")
    fence = {"key": f"{desired.label_prefix}/reservation", "operator": "Equal", "effect": "NoSchedule"}
    container = {
        "name": "work",
        "image": "YOUR_IMAGE",
        "command": ["YOUR_COMMAND"],
        "resources": {"limits": {GPU_RESOURCE: str(flavor.gpus_per_node)}},
    }
    return {
        "restartPolicy": "Never",
        "tolerations": [{**fence, "value": reservation_value(wanted.id)}],
        "containers": [container],
    }
