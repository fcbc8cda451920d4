"""Does what was approved come to stand on a Kueue cluster over real HTTP, at its start, and go at its end?"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from allocations.models import Allocation, Cluster, Flavor, Node
from console.models import ClusterEndpoint, PushPlan
from console.push import endpoints, pipeline
from reservations.models import Reservation
from reservations.services.cancel import cancel
from tests.doubles.kube_api import READER, WRITER, KubeApi
from tests.push.passes import fresh, generations, push, seconds_until_next, told
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, two_racks

FENCE = "berth.local/reservation"
START = NOW + timedelta(minutes=30)
END = START + timedelta(minutes=60)


@pytest.fixture
def api(world: World) -> Iterator[KubeApi]:
    """An API server that holds the world's nodes."""
    with KubeApi() as double:
        for name in Node.objects.values_list("name", flat=True):
            double.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"gpu": "gb200"}}})
        yield double


@pytest.fixture
def luna(world: World, api: KubeApi, tmp_path: Path) -> ClusterEndpoint:
    """The world's cluster, run by Kueue; team vision is guaranteed 16 of its 64 GPUs."""
    Cluster.objects.update(kind="kueue")
    Flavor.objects.update(node_labels={"gpu": "gb200"})
    Allocation.objects.filter(team=world.team).update(guaranteed_gpus=16, borrowing_limit_gpus=32)
    return connected(api, tmp_path)


def connected(api: KubeApi, folder: Path, token: str = WRITER) -> ClusterEndpoint:
    config = api.write_kubeconfig(folder / f"{token}.config", token)
    return endpoints.connect(
        name="sol",
        kind="kueue",
        driver="kubernetes",
        options={"kubeconfig": str(config)},
        modes={"*": "enforce"},
        actor=None,
        at=NOW,
    )


def one_rack(world: World) -> Reservation:
    """A rack from START to END."""
    minute = int(START.timestamp()) // 60
    spec = two_racks(racks=1, earliest_start_minute=minute, duration_minutes=60)
    return approved(world, spec=spec)


def fenced(api: KubeApi) -> list[str]:
    """Nodes with our taint."""
    nodes = [api.get("Node", name) or {} for name in api.names("Node")]
    return [
        node["metadata"]["name"]
        for node in nodes
        if any(taint["key"] == FENCE for taint in node.get("spec", {}).get("taints") or [])
    ]


def nominal(api: KubeApi, kind: str, name: str) -> int:
    """The nominal quota of the object's first flavor."""
    (group,) = (api.get(kind, name) or {})["spec"]["resourceGroups"]
    return int(group["flavors"][0]["resources"][0]["nominalQuota"])


def run_on(api: KubeApi, node: str, phase: str = "Running") -> None:
    """A pod with GPUs of some other work on the node."""
    container = {"name": "work", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    api.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"busy-{node}", "namespace": "default"},
            "spec": {"nodeName": node, "containers": [container]},
            "status": {"phase": phase},
        }
    )


def test_teams_become_queues_with_their_guarantees(world: World, api: KubeApi, luna: ClusterEndpoint) -> None:
    assert push(luna).ended == "verified"
    assert api.names("ResourceFlavor") == ["gb200"]
    assert "acme-gb200" in api.names("Cohort")
    assert api.names("ClusterQueue") == ["speech-gb200", "vision-gb200"]
    assert nominal(api, "ClusterQueue", "vision-gb200") == 16
    assert nominal(api, "Cohort", "acme-gb200") == 48
    queue = api.get("LocalQueue", "vision-gb200", next(n for n in api.names("Namespace") if "vision" in n))
    assert queue is not None and queue["spec"]["clusterQueue"] == "vision-gb200"
    desired, applied = generations(luna)
    assert desired == applied
    assert push(luna).ended == "equal"


def test_a_reservation_is_fenced_at_its_start_and_opened_at_its_end(
    world: World, api: KubeApi, luna: ClusterEndpoint, clock: time_machine.Traveller
) -> None:
    reservation = one_rack(world)
    name = f"rsv-{reservation.public_id.lower()}"
    outcome = push(luna)
    assert outcome.ended == "verified"
    assert fenced(api) == [] and name not in api.names("ClusterQueue")
    assert any(each.subject == reservation.public_id for each in outcome.compromises)
    generation = generations(luna)

    assert luna.cluster_id in pipeline.due(at=START)
    clock.move_to(START)
    started = push(luna)
    assert started.ended == "verified" and started.plan is not None and not started.plan.is_drift
    assert fenced(api) == [f"sol{number:04}" for number in range(1, 5)]
    assert nominal(api, "ClusterQueue", name) == 16
    assert nominal(api, "Cohort", "acme-gb200") == 32
    assert push(luna).ended == "equal"

    assert luna.cluster_id in pipeline.due(at=END)
    clock.move_to(END)
    assert push(luna).ended == "verified"
    assert fenced(api) == [] and name not in api.names("ClusterQueue") + api.names("ResourceFlavor")
    assert nominal(api, "Cohort", "acme-gb200") == 48
    assert generations(luna) == generation
    assert told("push.drift_found") == []


def test_nodes_that_still_run_work_converge_and_count_as_applied_only_when_fenced(
    world: World, api: KubeApi, luna: ClusterEndpoint, clock: time_machine.Traveller
) -> None:
    run_on(api, "sol0002")
    reservation = approved(world, spec=two_racks(racks=1, duration_minutes=60))
    for _ in range(2):
        outcome = push(luna)
        assert outcome.ended == "converging"
        assert reservation.public_id in outcome.sentence and "sol0002" in outcome.sentence
        assert fenced(api) == []
        assert generations(luna)[1] < generations(luna)[0]
        assert (fresh(luna).state, fresh(luna).failures) == ("converging", 0)
        assert seconds_until_next(luna) <= 60
    run_on(api, "sol0002", phase="Succeeded")
    clock.shift(60)
    assert push(luna).ended == "verified"
    assert len(fenced(api)) == 4
    assert generations(luna)[1] == generations(luna)[0]


def test_cancelling_while_its_own_work_runs_keeps_the_fence_until_that_ends(
    world: World, api: KubeApi, luna: ClusterEndpoint, clock: time_machine.Traveller
) -> None:
    reservation = approved(world, spec=two_racks(racks=1, duration_minutes=60))
    push(luna)
    run_on(api, "sol0001")
    cancel(reservation=reservation, actor=world.lead, at=NOW)
    clock.shift(60)
    assert push(luna).ended == "converging"
    assert fenced(api) == ["sol0001"]
    run_on(api, "sol0001", phase="Succeeded")
    assert push(luna).ended == "verified"
    assert fenced(api) == []


def test_foreign_objects_and_taints_are_left(
    world: World, api: KubeApi, luna: ClusterEndpoint, clock: time_machine.Traveller
) -> None:
    theirs: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "site-cpu"},
        "spec": {"nodeLabels": {"kind": "cpu"}},
    }
    api.add(theirs)
    node = api.get("Node", "sol0001") or {}
    api.add({**node, "spec": {"taints": [{"key": "site/burn-in", "value": "yes", "effect": "NoExecute"}]}})
    before = api.get("ResourceFlavor", "site-cpu")
    approved(world, spec=two_racks(racks=1, duration_minutes=60))
    push(luna)
    clock.move_to(NOW + timedelta(hours=2))
    assert push(luna).ended == "verified"
    assert api.get("ResourceFlavor", "site-cpu") == before
    (taint,) = (api.get("Node", "sol0001") or {})["spec"]["taints"]
    assert taint["key"] == "site/burn-in"
    assert not any(request.startswith("DELETE") and "site" in request for request in api.requests)


def test_a_fence_taken_off_by_hand_is_told_and_put_back(world: World, api: KubeApi, luna: ClusterEndpoint) -> None:
    approved(world, spec=two_racks(racks=1, duration_minutes=60))
    push(luna)
    api.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "sol0003", "labels": {"gpu": "gb200"}}})
    assert push(luna).ended == "verified"
    assert len(fenced(api)) == 4
    (sentence,) = told("push.drift_found")
    assert "Node sol0003" in sentence


def test_a_quota_changed_by_hand_is_put_back(world: World, api: KubeApi, luna: ClusterEndpoint) -> None:
    push(luna)
    queue = api.get("ClusterQueue", "vision-gb200") or {}
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "60"
    api.add(queue)
    assert push(luna).ended == "verified"
    assert nominal(api, "ClusterQueue", "vision-gb200") == 16
    assert len(told("push.drift_found")) == 1


def test_a_queue_whose_team_lost_its_allocation_is_deleted_by_a_person_only(
    world: World, api: KubeApi, luna: ClusterEndpoint
) -> None:
    push(luna)
    Allocation.objects.filter(team=world.other_team).update(revoked_at=NOW)
    Cluster.objects.update(desired_generation=world.cluster.desired_generation + 5)
    outcome = push(luna)
    assert outcome.ended == "waiting"
    assert "speech-gb200" in api.names("ClusterQueue")


def test_the_end_of_a_reservation_of_many_nodes_needs_nobody(
    world: World, api: KubeApi, luna: ClusterEndpoint, clock: time_machine.Traveller
) -> None:
    """Sixteen fences and three queues are most of what Berth owns there, and still one reservation."""
    approved(world, spec=two_racks(racks=4, duration_minutes=60))
    push(luna)
    assert len(fenced(api)) == 16
    clock.shift(timedelta(minutes=60))
    assert push(luna).ended == "verified"
    assert fenced(api) == []


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ({"status": 409}, "failed"),
        ({"status": 403}, "failed"),
        ({"status": 500}, "unreachable"),
        ({"status": 503}, "unreachable"),
        ({"drop": True}, "unreachable"),
    ],
)
@pytest.mark.parametrize("where", ["GET *", "PATCH *"])
def test_a_cluster_that_fails_is_tried_again_later_and_recovers(
    world: World, api: KubeApi, luna: ClusterEndpoint, fault: dict[str, Any], state: str, where: str
) -> None:
    for failures, wait in ((1, 10), (2, 20)):
        api.fail_next(where, times=1 if fault.get("status") != 409 else 4, **fault)
        outcome = push(luna)
        assert outcome.ended in ("failed", "unreachable")
        assert outcome.sentence
        endpoint = fresh(luna)
        assert (endpoint.state, endpoint.failures, endpoint.sentence) == (state, failures, outcome.sentence)
        assert endpoint.lease_until is None
        assert seconds_until_next(luna) == wait
        clear_faults(api)
    assert generations(luna)[1] == 0
    assert push(luna).ended == "verified"
    assert (fresh(luna).failures, fresh(luna).sentence) == (0, "")
    assert not PushPlan.objects.filter(state__in=("applying", "applied", "waiting")).exists()


def clear_faults(api: KubeApi) -> None:
    api._server.faults.clear()


def test_a_cluster_that_does_not_answer_in_time_is_unreachable(
    world: World, api: KubeApi, luna: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.drivers import kubernetes

    monkeypatch.setattr(kubernetes.KubernetesApi.__init__, "__kwdefaults__", {"seconds": 0.3})
    released = api.hang_next("GET *")
    outcome = push(luna)
    released.set()
    assert outcome.ended == "unreachable"
    assert "did not answer within" in outcome.sentence
    assert push(luna).ended == "verified"


def test_a_credential_that_may_only_read_is_said(
    world: World, api: KubeApi, luna: ClusterEndpoint, tmp_path: Path
) -> None:
    endpoint = connected(api, tmp_path, READER)
    outcome = push(endpoint)
    assert outcome.ended == "failed"
    assert "credential" in outcome.sentence
    assert api.names("ClusterQueue") == []


def test_the_same_failure_is_told_once_and_another_one_anew(world: World, api: KubeApi, luna: ClusterEndpoint) -> None:
    for _ in range(3):
        api.fail_next("GET *", status=503)
        push(luna)
    assert len(told("push.failed")) == 1
    api.fail_next("GET *", status=403)
    push(luna)
    assert len(told("push.failed")) == 2


def test_a_cluster_that_is_not_there_at_all_never_blocks_an_approval(
    world: World, luna: ClusterEndpoint, api: KubeApi
) -> None:
    api.stop()
    reservation = one_rack(world)
    assert reservation.decision == "approved"
    assert push(luna).ended == "unreachable"
