"""Does the Kubernetes driver read whole lists, write only what is ours, and say rightly what went wrong?"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from console.drivers.base import DriverError, Endpoint
from console.drivers.credentials import Credentials
from console.drivers.kubernetes import PAGE, KubernetesApi
from scheduling.desired import DesiredFlavor, DesiredQuota, DesiredReservation, DesiredState, DesiredTeam
from scheduling.dialects import dialect
from scheduling.dialects.kueue.objects import CLASSES, Owner, manifest
from scheduling.inventory import parse as parse_inventory
from scheduling.plan import Plan, Step, diff
from tests.doubles.kube_api import READER, WRITER, KubeApi

OWNER = Owner("test", "berth.local")
NODES = tuple(f"gb{number:03d}" for number in range(1, 37))
DESIRED = DesiredState(
    cluster="luna",
    kind="kueue",
    installation="test",
    generation=1,
    at_minute=1000,
    flavors=(DesiredFlavor("gb200-nvl72", "GB200", 4, 18, node_labels=(("gpu", "gb200"),)),),
    teams=(DesiredTeam("Climate", "climate", quotas=(DesiredQuota("gb200-nvl72", 72),)),),
    reservations=(DesiredReservation("R-131", "gb200-nvl72", ("climate",), NODES[:18], 900, 2000),),
    pool_gpus=(("gb200-nvl72", 0),),
)


@pytest.fixture
def api() -> Iterator[KubeApi]:
    with KubeApi() as double:
        for name in NODES:
            double.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"gpu": "gb200"}}})
        yield double


@pytest.fixture
def driver(api: KubeApi, tmp_path: Path) -> KubernetesApi:
    return opened(api, tmp_path)


def opened(api: KubeApi, folder: Path, token: str = WRITER, seconds: float = 10) -> KubernetesApi:
    config = api.write_kubeconfig(folder / f"{token}.config", token)
    endpoint = Endpoint("luna", "kueue", "kubernetes", kubeconfig=str(config))
    return KubernetesApi(endpoint, Credentials(registered=endpoint.registered), seconds=seconds)


def a_step(verb: Any = "create", kind: str = "ResourceFlavor", name: str = "gb200", **attributes: Any) -> Step:
    return Step(verb, kind, name, (), manifest(OWNER, kind, name, attributes), ())


def plan_of(driver: KubernetesApi, desired: DesiredState = DESIRED) -> Plan:
    words = dialect("kueue")
    observed = words.parse(driver.read(), installation="test")
    return diff(words.render(desired, None), observed)


def error_of(driver: KubernetesApi, step: Step) -> DriverError:
    with pytest.raises(DriverError) as caught:
        driver.apply(step)
    return caught.value


def test_a_whole_plan_applies_and_reads_back_equal(api: KubeApi, driver: KubernetesApi) -> None:
    plan = plan_of(driver)
    assert {step.object_class for step in plan.steps} >= {"Node", "ResourceFlavor", "ClusterQueue", "LocalQueue"}
    assert [applied.sentence for step in plan.steps if not (applied := driver.apply(step)).ok] == []
    assert plan_of(driver).is_empty
    taints = [each["key"] for each in (api.get("Node", "gb001") or {})["spec"]["taints"]]
    assert taints == ["berth.local/reservation"]


def test_an_ended_reservation_is_taken_away_and_other_taints_stay(api: KubeApi, driver: KubernetesApi) -> None:
    theirs = {"key": "maintenance", "effect": "NoSchedule"}
    api.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gb001"}, "spec": {"taints": [theirs]}})
    for step in plan_of(driver).steps:
        driver.apply(step)
    assert len((api.get("Node", "gb001") or {})["spec"]["taints"]) == 2
    ended = replace(DESIRED, reservations=())
    for step in plan_of(driver, ended).steps:
        assert driver.apply(step).ok
    assert plan_of(driver, ended).is_empty
    node = api.get("Node", "gb001") or {}
    assert node["spec"]["taints"] == [theirs]
    assert "berth.local/reservation" not in node["metadata"].get("labels", {})


def test_lists_longer_than_a_page_are_read_whole(api: KubeApi, driver: KubernetesApi) -> None:
    for number in range(PAGE + 5):
        api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number:04d}"}})
    assert len(driver.read()["Namespace"]) == PAGE + 5 + 2
    assert sum(asked == "GET /api/v1/namespaces" for asked in api.requests) == 2


def test_an_edit_by_hand_is_taken_back(api: KubeApi, driver: KubernetesApi) -> None:
    step = a_step(**{"nodeLabels/gpu": "gb200"})
    driver.apply(step)
    url = f"{api.url}/apis/kueue.x-k8s.io/v1beta2/resourceflavors/gb200"
    patch = {"spec": {"nodeLabels": {"gpu": "other"}}}
    headers = {"Authorization": f"Bearer {WRITER}", "Content-Type": "application/merge-patch+json"}
    assert httpx.patch(url, json=patch, headers=headers, params={"fieldManager": "kubectl-edit"}).status_code == 200
    assert driver.apply(replace(step, verb="update")).ok
    assert (api.get("ResourceFlavor", "gb200") or {})["spec"]["nodeLabels"] == {"gpu": "gb200"}


def test_another_applier_that_claims_our_fields_is_named_and_left(api: KubeApi, driver: KubernetesApi) -> None:
    step = a_step(**{"nodeLabels/gpu": "gb200"})
    driver.apply(step)
    url = f"{api.url}/apis/kueue.x-k8s.io/v1beta2/resourceflavors/gb200"
    theirs = {**step.native, "spec": {"nodeLabels": {"gpu": "theirs"}}}
    headers = {"Authorization": f"Bearer {WRITER}", "Content-Type": "application/apply-patch+yaml"}
    params = {"fieldManager": "argocd", "force": "true"}
    assert httpx.patch(url, json=theirs, headers=headers, params=params).status_code == 200
    error = error_of(driver, replace(step, verb="update"))
    assert (error.code, error.retryable) == ("foreign", False)
    assert "argocd" in error.sentence
    assert (api.get("ResourceFlavor", "gb200") or {})["spec"]["nodeLabels"] == {"gpu": "theirs"}


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
def test_an_object_of_somebody_else_is_never_touched(api: KubeApi, driver: KubernetesApi, verb: str) -> None:
    theirs = {"nodeLabels": {"gpu": "theirs"}}
    metadata = {"name": "gb200", "labels": {"app.kubernetes.io/managed-by": "Helm"}}
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor"}
    before = api.add({**head, "metadata": metadata, "spec": theirs})
    assert error_of(driver, a_step(verb, **{"nodeLabels/gpu": "gb200"})).code == "foreign"
    after = api.get("ResourceFlavor", "gb200")
    assert after is not None and after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_an_object_of_another_berth_is_foreign(api: KubeApi, driver: KubernetesApi) -> None:
    other = manifest(Owner("another", "berth.local"), "ResourceFlavor", "gb200", {"nodeLabels/gpu": "gb200"})
    api.add(other)
    assert error_of(driver, a_step("update", **{"nodeLabels/gpu": "gb200"})).code == "foreign"


def test_deleting_what_has_gone_is_done(driver: KubernetesApi) -> None:
    assert driver.apply(a_step("delete")).ok


def test_an_object_that_is_being_deleted_is_not_called_written(api: KubeApi, driver: KubernetesApi) -> None:
    ours = manifest(OWNER, "ResourceFlavor", "gb200", {"nodeLabels/gpu": "gb200"})
    marks = {"deletionTimestamp": "2026-11-30T12:00:00Z", "finalizers": ["kueue.x-k8s.io/resource-in-use"]}
    api.add({**ours, "metadata": {**ours["metadata"], **marks}})
    applied = driver.apply(a_step("update", **{"nodeLabels/gpu": "gb300"}))
    assert not applied.ok
    assert "is being deleted" in applied.sentence


def test_a_node_written_in_between_is_read_again(api: KubeApi, driver: KubernetesApi) -> None:
    api.fail_next("PATCH /api/v1/nodes/gb001", status=409)
    step = a_step("create", "Node", "gb001", taint="r-1", reservation="r-1")
    assert driver.apply(step).ok
    assert [asked for asked in api.requests if asked.endswith("/gb001")] == [
        "GET /api/v1/nodes/gb001",
        "PATCH /api/v1/nodes/gb001",
    ] * 2


def test_a_node_that_is_not_there_cannot_be_marked(driver: KubernetesApi) -> None:
    applied = driver.apply(a_step("create", "Node", "gb999", taint="r-1", reservation="r-1"))
    assert not applied.ok
    assert "gb999 is not there" in applied.sentence


REFUSALS = {
    401: ("credentials", False),
    403: ("credentials", False),
    404: ("refused", False),
    410: ("partial", True),
    429: ("unreachable", True),
    500: ("unreachable", True),
    503: ("unreachable", True),
}


@pytest.mark.parametrize(("status", "meaning"), REFUSALS.items())
def test_a_failing_list_is_named_rightly(
    api: KubeApi, driver: KubernetesApi, status: int, meaning: tuple[str, bool]
) -> None:
    api.fail_next("GET */clusterqueues", status=status)
    with pytest.raises(DriverError) as caught:
        driver.read()
    assert (caught.value.code, caught.value.retryable) == meaning


def test_what_a_webhook_or_the_schema_refuses_is_no_matter_of_credentials_or_retries(driver: KubernetesApi) -> None:
    queue = {"nominalQuota/gb200": -3, "weight": "1", "namespaces": ("a",), "stopPolicy": "None"}
    rights = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    denied = error_of(driver, a_step("create", "ClusterQueue", "a", **queue, **rights))
    assert (denied.code, denied.retryable) == ("refused", False)
    assert "must be greater than or equal to 0" in denied.sentence
    unknown = a_step(**{"nodeLabels/gpu": "gb200"})
    unknown.native["spec"]["nosuch"] = 1
    assert (error_of(driver, unknown).code, error_of(driver, unknown).retryable) == ("refused", False)


def test_a_reader_may_not_write(api: KubeApi, tmp_path: Path) -> None:
    reader = opened(api, tmp_path, READER)
    assert reader.ping().ok
    assert error_of(reader, a_step(**{"nodeLabels/gpu": "gb200"})).code == "credentials"


def test_a_silent_server_times_out_and_a_broken_connection_is_unreachable(api: KubeApi, tmp_path: Path) -> None:
    impatient = opened(api, tmp_path, seconds=0.3)
    released = api.hang_next("GET /version")
    assert "did not answer within 0.3 s" in impatient.ping().sentence
    released.set()
    api.fail_next("GET /version", drop=True)
    ping = impatient.ping()
    assert (ping.ok, ping.sentence) == (False, "luna cannot be reached (ask for the version)")
    assert impatient.ping().ok


def test_a_server_that_is_gone_is_unreachable_and_the_token_is_never_told(tmp_path: Path) -> None:
    with KubeApi() as api:
        driver = opened(api, tmp_path)
    with pytest.raises(DriverError) as caught:
        driver.read()
    assert (caught.value.code, caught.value.retryable) == ("unreachable", True)
    assert WRITER not in f"{caught.value.sentence} {caught.value.raw}"


def test_the_inventory_is_what_import_fleet_reads(driver: KubernetesApi) -> None:
    found = parse_inventory("kubernetes", driver.read_inventory())
    assert len(found.nodes) == len(NODES)


def test_every_class_of_the_dialect_has_a_path(driver: KubernetesApi) -> None:
    assert set(CLASSES) <= set(dialect("kueue").reads)
