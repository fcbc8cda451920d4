"""Does the Kubernetes API double answer as a real server did? (replays a recorded transcript)"""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.doubles.kube_api import READER, WRITER, KubeApi
from tests.parts import SHARED

TRANSCRIPT = SHARED / "contracts" / "recorded" / "transcript-real.jsonl"
CLIENT = httpx.Client(trust_env=False, timeout=10, limits=httpx.Limits(max_keepalive_connections=0))
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
# What no driver of ours asks for: discovery documents, watches, tables, and the older version of the API.

NOT_ASKED_FOR = ("discovery", "openapi", "aggregated", "watch from rv", "Table", "v1beta1")


@pytest.fixture(params=["built-in", "real"])
def api(request: pytest.FixtureRequest) -> Any:
    definitions: tuple[Path, ...] | None = () if request.param == "built-in" else None
    if request.param == "real" and not TRANSCRIPT.exists():
        pytest.skip("the real definitions are not beside this checkout (../shared)")
    with KubeApi(tokens=False, definitions=definitions) as double:
        yield double


def ask(api: KubeApi, call: dict[str, Any]) -> httpx.Response:
    kind, body = call.get("content_type"), call.get("body")
    return CLIENT.request(
        call["method"],
        f"{api.url}{call['path']}",
        params=call.get("params") or {},
        headers={"Content-Type": kind} if kind else {},
        content=json.dumps(body) if body is not None else None,
    )


def queue(name: str, amount: str = "8", **spec: Any) -> dict[str, Any]:
    quota = {"name": "nvidia.com/gpu", "nominalQuota": amount}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "gb200", "resources": [quota]}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
    }


def apply(api: KubeApi, document: dict[str, Any], manager: str = "berth", **params: str) -> httpx.Response:
    name = document["metadata"]["name"]
    call = {"method": "PATCH", "path": f"{QUEUES}/{name}", "content_type": "application/apply-patch+yaml"}
    return ask(api, {**call, "params": {"fieldManager": manager, **params}, "body": document})


@pytest.mark.part("shared")
def test_recorded_calls_get_the_same_status(api: KubeApi) -> None:
    differing, replayed = [], 0
    for line in TRANSCRIPT.read_text().splitlines():
        entry = json.loads(line)
        call = entry["request"]
        if any(word in entry["check"] for word in NOT_ASKED_FOR):
            continue
        if (
            call["method"] == "PUT"
            and "stale" not in entry["check"]
            and call["body"]["metadata"].get("resourceVersion")
        ):
            live = ask(api, {"method": "GET", "path": call["path"]}).json()["metadata"]
            call["body"]["metadata"] |= {"resourceVersion": live["resourceVersion"], "uid": live["uid"]}
        elif call["method"] == "PUT":
            call["body"]["metadata"].pop("uid", None)
        answer = ask(api, call)
        replayed += 1
        if answer.status_code != entry["response"]["status"]:
            differing.append(
                (entry["check"], call["method"], entry["response"]["status"], answer.status_code, answer.text)
            )
    assert differing == []
    assert replayed > 55


def test_applying_the_same_again_changes_nothing(api: KubeApi) -> None:
    first = apply(api, queue("a"))
    again = apply(api, queue("a"))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["metadata"]["resourceVersion"] == again.json()["metadata"]["resourceVersion"]


def test_another_manager_conflicts_until_it_forces(api: KubeApi) -> None:
    apply(api, queue("a"))
    refused = apply(api, queue("a", "9"), manager="rogue")
    assert refused.status_code == 409
    assert refused.json()["details"]["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "berth"',
        "field": ".spec.resourceGroups",
    }
    assert apply(api, queue("a", "9"), manager="rogue", force="true").status_code == 200
    assert apply(api, queue("a", "8")).status_code == 409


def test_a_field_left_out_of_the_next_apply_goes(api: KubeApi) -> None:
    apply(api, queue("a", cohortName="root"))
    left = apply(api, queue("a")).json()
    assert "cohortName" not in left["spec"]


@pytest.mark.parametrize(
    ("document", "status"),
    [
        (queue("a", "-3"), 403),
        (queue("a", "eight"), 400),
        (queue("a", nosuch=1), 500),
        (queue("a", stopPolicy="Maybe"), 422),
        (queue("Bad_Name"), 422),
    ],
)
def test_a_wrong_queue_is_refused_with_the_status_of_a_real_server(
    api: KubeApi, document: dict[str, Any], status: int
) -> None:
    assert apply(api, document).status_code == status
    assert apply(api, document, dryRun="All").status_code == status
    assert api.names("ClusterQueue") == []


def test_a_list_comes_in_pages(api: KubeApi) -> None:
    for number in range(5):
        apply(api, queue(f"q{number}"))
    names, token = [], ""
    for _ in range(3):
        page = CLIENT.get(f"{api.url}{QUEUES}", params={"limit": "2", "continue": token}).json()
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert names == ["q0", "q1", "q2", "q3", "q4"]
    assert token == ""


def test_a_delete_with_another_uid_is_refused(api: KubeApi) -> None:
    apply(api, queue("a"))
    refused = ask(api, {"method": "DELETE", "path": f"{QUEUES}/a", "body": {"preconditions": {"uid": "other"}}})
    assert refused.status_code == 409
    assert api.names("ClusterQueue") == ["a"]


def test_tokens_decide_who_reads_and_who_writes() -> None:
    with KubeApi() as api:
        url = f"{api.url}/api/v1/nodes"
        asked = {
            token: CLIENT.get(url, headers={"Authorization": f"Bearer {token}"}) for token in (WRITER, READER, "no")
        }
        assert [answer.status_code for answer in asked.values()] == [200, 200, 401]
        assert CLIENT.get(url).status_code == 403
        write = CLIENT.post(url, headers={"Authorization": f"Bearer {READER}"}, json={"metadata": {"name": "gb001"}})
        assert write.status_code == 403


def test_faults_hit_as_many_requests_as_were_asked_for() -> None:
    with KubeApi(tokens=False) as api:
        api.fail_next("GET /api/v1/nodes", times=2, status=503)
        assert [CLIENT.get(f"{api.url}/api/v1/nodes").status_code for _ in range(3)] == [503, 503, 200]
        api.fail_next("GET /api/v1/nodes", drop=True)
        with pytest.raises(httpx.TransportError):
            CLIENT.get(f"{api.url}/api/v1/nodes")
        assert CLIENT.get(f"{api.url}/api/v1/nodes").status_code == 200
