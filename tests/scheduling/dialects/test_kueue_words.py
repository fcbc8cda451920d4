"""Are Kueue's objects read by value, drawn as the policy means them, and accepted by the real schemas?"""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import yaml

from scheduling.desired import DesiredFlavor, DesiredQuota
from scheduling.dialects import dialect
from scheduling.dialects.demo import demo_state
from scheduling.dialects.errors import DialectError, NameClash, NameNotAllowed, UnknownReference
from scheduling.dialects.kueue import node_patch
from scheduling.dialects.kueue.names import same_weight, whole_quantity
from scheduling.dialects.kueue.occupied import busy_nodes
from scheduling.plan import diff
from tests.parts import SHARED

KUEUE = dialect("kueue")
CRDS = SHARED / "contracts" / "crds"
FILES = {
    "ClusterQueue": "clusterqueues",
    "Cohort": "cohorts",
    "LocalQueue": "localqueues",
    "ResourceFlavor": "resourceflavors",
    "Topology": "topologies",
}


def rendered_objects(state=None) -> dict[tuple[str, str], dict[str, Any]]:
    return {item.key: item.native for item in KUEUE.render(state or demo_state("kueue"), None).objects}


def quota(manifest: dict[str, Any], flavor: str) -> dict[str, str]:
    (group,) = manifest["spec"]["resourceGroups"]
    (found,) = [each["resources"] for each in group["flavors"] if each["name"] == flavor]
    return {key: value for key, value in found[0].items() if key != "name"}


def strict(schema: Any) -> Any:
    """The schema as the API server reads it with strict fields: nothing unknown is let through."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if isinstance(closed.get("properties"), dict) and not closed.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    return closed


def schema_of(kind: str) -> dict[str, Any]:
    if kind not in FILES:
        return json.loads((CRDS / "kubernetes" / f"{kind}.v1.34.schema.json").read_text(encoding="utf-8"))
    crd = yaml.safe_load((CRDS / "kueue" / f"kueue.x-k8s.io_{FILES[kind]}.yaml").read_text(encoding="utf-8"))
    (version,) = [each for each in crd["spec"]["versions"] if each["name"] == "v1beta2"]
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


@pytest.mark.part("shared")
@pytest.mark.parametrize("kind", [*FILES, "Namespace", "Node"])
def test_every_rendered_object_is_valid_under_the_real_schema(kind):
    found = [manifest for (object_class, _), manifest in rendered_objects().items() if object_class == kind]
    assert found
    schema = schema_of(kind)
    for manifest in found:
        jsonschema.validate(manifest, schema)
    with pytest.raises(jsonschema.ValidationError):  # the schema is closed: a misspelt field would be seen
        jsonschema.validate({**found[0], "spec": {**found[0].get("spec", {}), "cohort": "x"}}, schema)


def test_guarantees_stand_on_leaf_queues_and_the_pool_on_the_root():
    objects = rendered_objects()
    assert quota(objects["ClusterQueue", "climate-gb200"], "gb200-nvl72") == {
        "nominalQuota": "72",
        "borrowingLimit": "72",
    }
    assert quota(objects["ClusterQueue", "vision-gb200"], "gb200-nvl72") == {"nominalQuota": "36", "lendingLimit": "0"}
    assert quota(objects["Cohort", "observatory-gb200"], "gb200-nvl72") == {"nominalQuota": "108"}
    assert "parentName" not in objects["Cohort", "observatory-gb200"]["spec"]


def test_a_group_is_a_cohort_with_its_cap_and_a_queue_for_what_it_holds_itself():
    objects = rendered_objects()
    group = objects["Cohort", "research-gb200"]
    assert group["spec"]["parentName"] == "observatory-gb200" and group["spec"]["fairSharing"]["weight"] == "60"
    assert quota(group, "gb200-nvl72") == {"nominalQuota": "0", "borrowingLimit": "144"}
    own = objects["ClusterQueue", "research-gb200"]
    assert own["spec"]["cohortName"] == "research-gb200" and quota(own, "gb200-nvl72") == {"nominalQuota": "0"}


def test_several_teams_without_a_parent_stand_below_one_cohort_of_berths():
    state = demo_state("kueue")
    tops = tuple(replace(team, parent="") if team.account == "platform" else team for team in state.teams)
    objects = rendered_objects(replace(state, teams=tops))
    assert quota(objects["Cohort", "berth-h200"], "h200-hgx8") == {"nominalQuota": "72"}
    assert objects["ClusterQueue", "platform-h200"]["spec"]["cohortName"] == "berth-h200"
    assert objects["Cohort", "research-h200"]["spec"]["parentName"] == "observatory-h200"
    assert objects["Cohort", "observatory-h200"]["spec"]["parentName"] == "berth-h200"


def test_a_reservation_has_its_own_flavor_and_a_queue_outside_every_cohort():
    objects = rendered_objects()
    queue, flavor = objects["ClusterQueue", "rsv-r-131"], objects["ResourceFlavor", "rsv-r-131"]
    assert "cohortName" not in queue["spec"] and quota(queue, "rsv-r-131") == {"nominalQuota": "72"}
    assert flavor["spec"]["nodeLabels"]["berth.local/reservation"] == "r-131"
    assert flavor["spec"]["tolerations"][0]["value"] == "r-131"
    assert queue["spec"]["namespaceSelector"]["matchExpressions"][0]["values"] == ["climate"]
    assert objects["LocalQueue", "climate/rsv-r-131"]["spec"] == {"clusterQueue": "rsv-r-131"}


def test_a_reservation_to_come_is_only_a_note():
    rendered = KUEUE.render(demo_state("kueue"), None)
    assert not any("r-140" in item.name for item in rendered.objects)
    (note,) = rendered.compromises
    assert (note.code, note.subject) == ("reservation_not_due", "R-140")


def test_a_reservation_is_there_from_its_first_minute_to_its_last():
    state = demo_state("kueue")
    first = state.reservations[0]
    for at, there in (
        (first.start_minute - 1, False),
        (first.start_minute, True),
        (first.end_minute - 1, True),
        (first.end_minute, False),
    ):
        assert (("ClusterQueue", "rsv-r-131") in rendered_objects(replace(state, at_minute=at))) is there


def test_quantities_and_weights_are_compared_by_value():
    assert [whole_quantity(text) for text in ("8", 8, "8000m", "0.5", "1k", "1Ki", "1e3", "500m")] == [
        8, 8, 8, 1, 1000, 1024, 1000, 1
    ]  # fmt: skip
    assert same_weight("500m") == same_weight("0.5") and same_weight(2) == same_weight("2") == "2"
    with pytest.raises(DialectError, match="not a quantity"):
        whole_quantity("eight")


def test_the_servers_defaults_and_spellings_are_no_drift():
    state = demo_state("kueue")
    rendered = KUEUE.render(state, None)
    native = KUEUE.parse_files(KUEUE.files(rendered))
    for queue in native["ClusterQueue"]:
        queue["spec"]["queueingStrategy"] = "BestEffortFIFO"
        queue["spec"]["flavorFungibility"] = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
        queue["spec"]["preemption"]["borrowWithinCohort"] = {"policy": "Never"}
        queue["status"] = {"pendingWorkloads": 3}
        queue["metadata"] |= {"uid": "1", "managedFields": [{"manager": "berth"}, {"manager": "kueue"}]}
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]:
            flavor["resources"][0]["nominalQuota"] += "000m"
    assert diff(rendered, KUEUE.parse(native, installation="demo")).is_empty


@pytest.mark.parametrize(
    ("change", "attribute"),
    [
        ({"stopPolicy": "Hold"}, "stopPolicy"),
        ({"cohortName": "elsewhere"}, "cohortName"),
        ({"namespaceSelector": {}}, "namespaces"),
        ({"fairSharing": {"weight": "500m"}}, "weight"),
        ({"resourceGroups": []}, "nominalQuota/gb200-nvl72"),
    ],
)
def test_a_change_by_hand_is_drift_and_named(change, attribute):
    rendered = KUEUE.render(demo_state("kueue"), None)
    native = KUEUE.parse_files(KUEUE.files(rendered))
    (queue,) = [each for each in native["ClusterQueue"] if each["metadata"]["name"] == "climate-gb200"]
    queue["spec"].update(change)
    plan = diff(rendered, KUEUE.parse(native, installation="demo"))
    assert {step.name for step in plan.steps} == {"climate-gb200"}
    assert attribute in {changed.attribute for step in plan.steps for changed in step.changes}


def test_objects_of_another_berth_and_of_other_managers_are_foreign():
    rendered = KUEUE.render(demo_state("kueue"), None)
    native = KUEUE.parse_files(KUEUE.files(rendered))
    others = KUEUE.parse(native, installation="another")
    kueue_kinds = [item for item in others.objects if item.object_class not in ("Node",)]
    assert not any(item.owned for item in kueue_kinds)
    for cohort in native["Cohort"]:
        cohort["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    mine = KUEUE.parse(native, installation="demo")
    assert {item.owned for item in mine.objects if item.object_class == "Cohort"} == {False}
    assert ("Cohort", "research-gb200") in diff(rendered, mine).foreign


def test_a_namespace_that_somebody_else_made_serves_as_well():
    rendered = KUEUE.render(demo_state("kueue"), None)
    native = KUEUE.parse_files({})
    native["Namespace"] = [{"metadata": {"name": "climate"}}]
    plan = diff(rendered, KUEUE.parse(native, installation="demo"))
    assert plan.foreign == () and "climate" not in {s.name for s in plan.steps if s.object_class == "Namespace"}


def test_a_list_that_was_not_read_raises_and_deletes_nothing():
    native = KUEUE.parse_files({})
    del native["ClusterQueue"]
    with pytest.raises(DialectError) as caught:
        KUEUE.parse(native, installation="demo")
    assert (caught.value.code, caught.value.missing) == ("unreadable_answer", "ClusterQueue")


def test_a_nodes_other_labels_and_taints_are_left_alone():
    other = {"key": "maintenance", "value": "soon", "effect": "NoExecute"}
    stale = {"key": "berth.local/reservation", "value": "r-1", "effect": "NoSchedule"}
    live = {"metadata": {"name": "gb001", "resourceVersion": "77"}, "spec": {"taints": [other, stale]}}
    fence = rendered_objects()["Node", "gb001"]
    assert node_patch(live, fence, "update") == {
        "metadata": {"resourceVersion": "77", "labels": {"berth.local/reservation": "r-131"}},
        "spec": {"taints": [other, {**stale, "value": "r-131"}]},
    }
    assert node_patch(live, fence, "delete") == {
        "metadata": {"resourceVersion": "77", "labels": {"berth.local/reservation": None}},
        "spec": {"taints": [other]},
    }


def test_work_is_what_asks_for_gpus_or_was_started_by_kueue_and_has_not_ended():
    def pod(name: str, node: str | None, phase: str = "Running", gpus: str | None = None, **labels: str):
        resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
        spec = {"nodeName": node, "containers": [{"resources": resources}]}
        return {
            "metadata": {"name": name, "namespace": "ns", "labels": labels},
            "spec": spec,
            "status": {"phase": phase},
        }

    pods = [
        pod("train", "n1", gpus="4"),
        pod("done", "n2", "Succeeded", "4"),
        pod("agent", "n3"),
        pod("cpu-part", "n4", **{"kueue.x-k8s.io/podset": "main"}),
        pod("waiting", None, "Pending", "4"),
    ]
    values = [{"universal": "rack-1"}, {"individual": {"prefix": "n", "roots": ["8", "9"], "suffix": ".x"}}]
    assignment = {
        "levels": ["rack", "kubernetes.io/hostname"],
        "slices": [{"domainCount": 2, "podCounts": {"universal": 1}, "valuesPerLevel": values}],
    }
    workload = {
        "metadata": {"name": "job-x", "namespace": "ns"},
        "status": {"admission": {"podSetAssignments": [{"topologyAssignment": assignment}]}},
    }
    finished = {**workload, "status": {**workload["status"], "conditions": [{"type": "Finished", "status": "True"}]}}
    assert busy_nodes(pods, [workload, finished]) == {
        "n1": ("ns/train",),
        "n4": ("ns/cpu-part",),
        "n8.x": ("ns/job-x",),
        "n9.x": ("ns/job-x",),
    }


def test_names_that_kubernetes_would_refuse_are_refused_before_anything_is_sent():
    state = demo_state("kueue")
    first, second = state.reservations
    for changed in (
        replace(state, reservations=(replace(first, id="R 1"), second)),
        replace(state, reservations=(replace(first, nodes=("Bad_Node",)), second)),
        replace(state, teams=(*state.teams, replace(state.teams[-1], account="a.b"))),
        replace(state, label_prefix="bad prefix"),
    ):
        with pytest.raises(NameNotAllowed):
            KUEUE.render(changed, None)


def test_what_a_state_names_but_does_not_hold_is_refused():
    state = demo_state("kueue")
    first = state.reservations[0]
    for changed in (
        replace(state, reservations=(replace(first, flavor="b300"),)),
        replace(state, reservations=(replace(first, teams=("nobody",)),)),
        replace(state, teams=(replace(state.teams[1], parent="nobody"),)),
        replace(state, teams=(replace(state.teams[1], parent="research"),)),
    ):
        with pytest.raises(UnknownReference):
            KUEUE.render(changed, None)
    with pytest.raises(NameClash):
        KUEUE.render(replace(state, teams=(*state.teams, state.teams[0])), None)


def test_nodes_without_gpus_are_a_stated_compromise():
    state = demo_state("kueue")
    plain = DesiredFlavor("cpu", "", 0, 32)
    teams = (*state.teams[:-1], replace(state.teams[-1], quotas=(DesiredQuota("cpu", 4),)))
    rendered = KUEUE.render(replace(state, flavors=(*state.flavors, plain), teams=teams), None)
    assert ("nodes_without_gpus", "cpu") in {(each.code, each.subject) for each in rendered.compromises}
    assert ("ResourceFlavor", "cpu") not in {item.key for item in rendered.objects}


def test_what_nobody_can_tell_apart_by_labels_is_a_stated_compromise():
    state = demo_state("kueue")
    first, second = state.flavors
    bare = replace(state, flavors=(replace(first, node_labels=()), second), topology_labels=())
    said = {(each.code, each.subject) for each in KUEUE.render(bare, None).compromises}
    assert {("flavor_without_labels", "gb200-nvl72"), ("topology_without_labels", "demo-kueue")} <= said


def test_the_job_to_copy_names_namespace_queue_toleration_rack_and_the_longest_time_that_fits():
    state = demo_state("kueue")
    text, start = KUEUE.usage(state, state.reservations[0], "climate")
    job = yaml.safe_load(text.text)
    assert job["metadata"]["namespace"] == "climate"
    assert job["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "rsv-r-131",
        "kueue.x-k8s.io/max-exec-time-seconds": str(64 * 3600 - 60),
    }
    assert job["spec"]["parallelism"] == 17
    template = job["spec"]["template"]
    assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-required-topology": "nvidia.com/gpu.clique"}
    assert template["spec"]["tolerations"][0]["value"] == "r-131"
    assert "kubectl create --filename=job.yaml" in start.text


def test_a_file_that_is_no_yaml_or_holds_other_kinds_is_refused():
    for text in ("a: [", "kind: Secret\n", "- 1\n"):
        with pytest.raises(DialectError) as caught:
            KUEUE.parse_files({"kueue.yaml": text})
        assert caught.value.code == "unreadable_answer"


def test_no_cohort_stands_for_a_model_that_no_team_uses():
    state = replace(demo_state("kueue"), teams=(), reservations=())
    drawn = {(item.object_class, item.name) for item in KUEUE.render(state, None).objects}
    assert not {name for object_class, name in drawn if object_class in ("Cohort", "ClusterQueue")}
    assert ("ResourceFlavor", "gb200-nvl72") in drawn
