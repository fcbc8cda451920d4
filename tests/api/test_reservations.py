"""Does the API ask, list, show, take back and give back as the contract says?"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse

from allocations.models import Event
from console.api import reservations as endpoints
from console.models import ClusterEndpoint
from reservations.models import Reservation
from tests.api.callers import Caller, problem
from tests.reservations.asks import approved, ask
from tests.reservations.world import DAY, NOW, World

SPEC = {"flavor": "gb200", "racks": 2, "duration_minutes": 4320}
Of = Callable[..., Caller]


def wanted(world: World, **more: Any) -> dict[str, Any]:
    return {"team": world.team.public_id, "cluster": "sol", "spec": SPEC, "purpose": "Scaling run 1.2T", **more}


def test_a_reservation_is_made_with_location_and_etag(world: World, of: Of) -> None:
    response = of("lead").post("reservations", wanted(world))
    made = response.json()
    row = Reservation.objects.get()
    assert response.status_code == 201
    assert response["Location"] == f"/api/v1/reservations/{row.public_id}"
    assert response["ETag"] == f'"{row.public_id}:1"'
    assert made["id"] == row.public_id
    assert made["spec"] == SPEC
    assert (made["decision"], made["hold"], made["phase"]) == ("requested", "provisional", None)
    assert made["waits_for"] == [{"step": 1, "role": "approver", "needed": 1, "got": 0}]
    assert made["may"] == ["withdraw"]
    assert made["placement"] == {
        "cluster": "sol",
        "racks": ["r01", "r02"],
        "nodes": "sol[0001-0036]",
        "spares": "",
        "node_count": 36,
        "start_at": "2027-01-04T09:00:00Z",
        "end_at": "2027-01-07T09:00:00Z",
        "score": row.score,
    }
    assert made["push"] == {
        "state": "not_due",
        "due_at": "2027-01-04T09:00:00Z",
        "desired_generation": None,
        "applied_generation": 0,
        "verified_at": None,
        "updated_at": None,
        "name_on_cluster": f"berth-{row.public_id}",
    }


def test_list_detail_and_answer_of_a_deed_have_one_shape(world: World, of: Of) -> None:
    lead = of("lead")
    made = lead.post("reservations", wanted(world)).json()
    assert lead.get(f"reservations/{made['id']}").json() == made
    assert lead.get("reservations").json() == {"items": [made], "next": None}


def test_a_team_may_be_named_by_its_path(world: World, of: Of) -> None:
    made = of("lead").post("reservations", wanted(world, team="acme/vision")).json()
    assert (made["team"], made["team_path"]) == (world.team.public_id, "acme/vision")


def test_an_etag_that_is_known_answers_304(world: World, of: Of) -> None:
    row, lead = ask(world), of("lead")
    etag = f'"{row.public_id}:1"'
    known = lead.get(f"reservations/{row.public_id}", If_None_Match=etag)
    assert (known.status_code, known["ETag"], known.content) == (304, etag, b"")
    older = lead.get(f"reservations/{row.public_id}", If_None_Match=f'"{row.public_id}:0"')
    assert older.status_code == 200


def test_withdrawing_answers_the_changed_object(world: World, of: Of) -> None:
    row = ask(world)
    response = of("lead").post(f"reservations/{row.public_id}/withdraw", {"reason": "Not needed"}, key=None)
    assert response.status_code == 200
    assert response["ETag"] == f'"{row.public_id}:2"'
    assert (response.json()["decision"], response.json()["hold"], response.json()["may"]) == ("withdrawn", None, [])
    assert response.json()["placement"]["node_count"] == 36
    assert Event.objects.get(verb="reservation.withdrawn").sentence == "Not needed"


def test_cancelling_needs_no_body(world: World, of: Of) -> None:
    row = approved(world)
    response = of("operator").send("POST", f"reservations/{row.public_id}/cancel")
    assert (response.status_code, response.json()["decision"]) == (200, "cancelled")


def test_a_deed_on_an_older_version_gets_the_current_object(world: World, of: Of) -> None:
    row, lead = approved(world), of("lead")
    stale = lead.post(f"reservations/{row.public_id}/cancel", If_Match=f'"{row.public_id}:1"')
    told = problem(stale, 412, "version_changed")
    assert stale["ETag"] == told["etag"] == f'"{row.public_id}:2"'
    assert told["current"] == lead.get(f"reservations/{row.public_id}").json()
    assert told["retry"] == "after_change"
    fresh = lead.post(f"reservations/{row.public_id}/cancel", If_Match=f'"{row.public_id}:2"')
    assert fresh.json()["decision"] == "cancelled"


def test_any_version_at_all_is_no_condition(world: World, of: Of) -> None:
    row = approved(world)
    problem(of("lead").post(f"reservations/{row.public_id}/cancel", If_Match="*"), 400, "invalid")
    assert Reservation.objects.get().decision == "approved"


def test_a_deed_in_the_wrong_state_says_which(world: World, of: Of) -> None:
    row = approved(world)
    told = problem(of("lead").post(f"reservations/{row.public_id}/withdraw"), 409, "wrong_state")
    assert (told["decision"], told["retry"]) == ("approved", "after_change")


def test_a_reservation_is_never_deleted(world: World, of: Of) -> None:
    row = ask(world)
    refused = of("lead").send("DELETE", f"reservations/{row.public_id}")
    told = problem(refused, 405, "method_not_allowed")
    assert refused["Allow"] == "GET, HEAD"
    assert told["deeds"] == ["withdraw", "cancel"]


def test_what_does_not_fit_is_409_with_what_would(world: World, of: Of) -> None:
    told = problem(of("lead").post("reservations", wanted(world, spec={**SPEC, "racks": 5})), 409, "does_not_fit")
    assert [reason["code"] for reason in told["refusal"]["reasons"]] == ["never_possible"]


def test_a_budget_that_is_short_says_by_how_much(world: World, of: Of) -> None:
    world.allocation.gpu_hours = 10_000
    world.allocation.save()
    told = problem(of("lead").post("reservations", wanted(world)), 409, "budget_short")
    assert told["errors"][0] | {"sentence": ""} == {
        "pointer": "/spec",
        "code": "budget_short",
        "sentence": "",
        "missing": 368.0,
        "unit": "gpu_hours",
    }


@pytest.mark.parametrize(
    ("more", "code", "pointer"),
    [
        ({"colour": "red"}, "unknown_key", "/colour"),
        ({"spec": {**SPEC, "a/b": 1}}, "unknown_key", "/spec/a~1b"),
        ({"spec": {**SPEC, "earliest_start_at": "2027-02-01T00:00:00"}}, "offset_needed", "/spec/earliest_start_at"),
        ({"spec": {**SPEC, "earliest_start_at": "2027-02-01T00:00:01Z"}}, "not_on_minute", "/spec/earliest_start_at"),
        ({"spec": {**SPEC, "latest_end_at": "2026-02-01T00:00:00Z"}}, "in_the_past", "/spec/latest_end_at"),
        ({"spec": {**SPEC, "flavor": "h100"}}, "unknown_flavor", "/spec/flavor"),
        ({"spec": {**SPEC, "racks": True}}, "invalid", "/spec/racks"),
        ({"spec": [1]}, "invalid", "/spec"),
        ({"purpose": 7}, "invalid", "/purpose"),
        ({"purpose": ""}, "invalid", "/purpose"),
        ({"purpose": "a\x00b"}, "invalid", "/purpose"),
        ({"purpose": "a\u202eb"}, "invalid", "/purpose"),
        ({"purpose": "a\ud800b"}, "invalid", "/purpose"),
        ({"team": None}, "invalid", "/team"),
        ({"funding": "loan"}, "invalid", "/funding"),
        ({"run_over_minutes": 5}, "invalid", "/run_over_minutes"),
        ({"run_over_minutes": 10**12}, "invalid", "/run_over_minutes"),
    ],
)
def test_what_is_wrong_in_itself_points_at_its_place(
    world: World, of: Of, more: dict[str, Any], code: str, pointer: str
) -> None:
    told = problem(of("lead").post("reservations", wanted(world, **more)), 400, code)
    assert [fault["pointer"] for fault in told["errors"]] == [pointer]
    assert told["errors"][0]["code"] == code
    assert told["retry"] == "no"


def test_everything_that_is_wrong_is_told_at_once(world: World, of: Of) -> None:
    told = problem(of("lead").post("reservations", {"team": "T-1", "x": 1, "y": 2}), 400, "invalid")
    assert [fault["pointer"] for fault in told["errors"]] == ["/x", "/y", "/cluster", "/spec", "/purpose"]


@pytest.mark.parametrize(("key", "value"), [("team", "T-99"), ("cluster", "luna"), ("allocation", "A-99999")])
def test_what_a_body_names_and_nobody_has_is_not_found_at_its_key(world: World, of: Of, key: str, value: str) -> None:
    told = problem(of("lead").post("reservations", wanted(world, **{key: value})), 404, "not_found")
    assert [fault["pointer"] for fault in told["errors"]] == [f"/{key}"]


def test_nodes_are_listed_one_by_one(world: World, of: Of) -> None:
    row = approved(world)
    items = of("member").get(f"reservations/{row.public_id}/nodes").json()["items"]
    assert len(items) == 36
    assert items[0] == {"name": "sol0001", "rack": "r01", "is_spare": False}


def test_filters_take_what_they_say(world: World, of: Of) -> None:
    running = approved(world)
    waiting = ask(world, team=world.other_team, actor=world.outsider)
    auditor = of("auditor")

    def ids(query: str) -> list[str]:
        return [item["id"] for item in auditor.get(f"reservations?{query}").json()["items"]]

    assert ids("") == [waiting.public_id, running.public_id]
    assert ids("phase=active") == [running.public_id]
    assert ids("phase=scheduled,over") == []
    assert ids("decision=requested,rejected") == [waiting.public_id]
    assert ids(f"team={world.team.public_id}") == ids("team=acme/vision") == [running.public_id]
    assert ids("team_subtree=acme") == [waiting.public_id, running.public_id]
    assert ids(f"team_subtree={world.other_team.public_id}") == [waiting.public_id]
    assert ids("team=T-999") == ids("cluster=luna") == []
    assert ids("end_at_before=2027-01-07T09:00:00Z") == []
    assert ids("start_at_after=2027-01-04T09:00:00Z&order=start_at") == [running.public_id, waiting.public_id]


def test_phase_in_sql_is_phase_of_each(world: World, of: Of) -> None:
    first = approved(world)
    auditor = of("auditor")
    for start, end, released in [(-2, -1, None), (-1, 1, None), (-1, 1, 0), (1, 2, None), (1, 2, 0), (0, 1, None)]:
        Reservation.objects.filter(pk=first.pk).update(
            start_at=NOW + start * DAY,
            end_at=NOW + end * DAY,
            released_at=None if released is None else NOW + released * DAY,
        )
        phase = auditor.get(f"reservations/{first.public_id}").json()["phase"]
        found = {
            word: len(auditor.get(f"reservations?phase={word}").json()["items"])
            for word in ("scheduled", "active", "over")
        }
        assert found == {word: int(word == phase) for word in found}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("colour=red", "unknown_key"),
        ("limit=0", "invalid"),
        ("limit=-1", "invalid"),
        ("limit=ten", "invalid"),
        ("order=purpose", "invalid"),
        ("order=id,id", "invalid"),
        ("decision=maybe", "invalid"),
        ("phase=later", "invalid"),
        ("cursor=abc", "invalid"),
        ("fields=colour", "invalid"),
        ("count=maybe", "invalid"),
        ("start_at_before=2027-01-01T00:00:00", "offset_needed"),
        ("start_at_before=soon", "invalid"),
        ("team=acme&team=other", "invalid"),
        ("team=a%00b", "invalid"),
    ],
)
def test_a_wrong_parameter_is_pointed_at(world: World, of: Of, query: str, code: str) -> None:
    ask(world)
    told = problem(of("lead").get(f"reservations?{query}"), 400, code)
    assert [fault["pointer"] for fault in told["errors"]] == [f"?{query.partition('=')[0]}"]


def put_endpoint(world: World, **more: Any) -> None:
    ClusterEndpoint.objects.update_or_create(cluster=world.cluster, defaults={"driver": "files", **more})


def apply_everything(world: World) -> None:
    """What the push writes down when a cluster was read back and found equal."""
    cluster = type(world.cluster).objects.get(pk=world.cluster.pk)
    cluster.applied_generation = cluster.desired_generation
    cluster.save()
    put_endpoint(world, state="verified", verified_at=NOW, read_at=NOW)


def test_push_goes_from_not_due_to_verified(world: World, of: Of) -> None:
    lead = of("lead")
    row = ask(world)

    def push() -> dict[str, Any]:
        shown: dict[str, Any] = lead.get(f"reservations/{row.public_id}").json()["push"]
        return shown

    assert push()["state"] == "not_due"
    decide(of("approver"), row)
    assert push()["state"] == "waiting"  # nobody connected the cluster
    put_endpoint(world, state="idle")
    assert push()["state"] == "pending"
    put_endpoint(world, state="unreachable")
    assert push()["state"] == "unreachable"
    apply_everything(world)
    assert push() == {
        "state": "verified",
        "due_at": "2027-01-04T09:00:00Z",
        "desired_generation": 1,
        "applied_generation": 1,
        "verified_at": "2027-01-04T09:00:00Z",
        "updated_at": "2027-01-04T09:00:00Z",
        "name_on_cluster": f"berth-{row.public_id}",
    }


def decide(caller: Caller, row: Reservation, **more: Any) -> None:
    content = {"subject": row.public_id, "subject_version": 1, "verdict": "approve", **more}
    assert caller.post("decisions", content).status_code == 201


def test_waiting_for_verified_answers_when_it_is_so(world: World, of: Of, monkeypatch: pytest.MonkeyPatch) -> None:
    row = approved(world)
    put_endpoint(world, state="idle")
    looks: list[float] = []

    def rest(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            apply_everything(world)

    monkeypatch.setattr(endpoints, "rest", rest)
    response = of("lead").get(f"reservations/{row.public_id}?wait_for=verified&timeout_seconds=50")
    assert response.json()["push"]["state"] == "verified"
    assert looks == [1.0] * 3


@pytest.mark.parametrize("given", ["&timeout_seconds=0", ""])
def test_waiting_ends_at_the_time_out_with_the_present_state(
    world: World, of: Of, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    row, seconds = approved(world), iter(range(0, 1000, 20))
    monkeypatch.setattr(endpoints.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(endpoints, "rest", lambda seconds: None)
    known = {"If_None_Match": f'"{row.public_id}:2"'}
    response = of("lead").get(f"reservations/{row.public_id}?wait_for=verified{given}", **known)
    assert (response.status_code, response.json()["push"]["state"]) == (200, "waiting")


def test_nobody_waits_for_what_never_comes(world: World, of: Of, monkeypatch: pytest.MonkeyPatch) -> None:
    row, lead = ask(world), of("lead")
    lead.post(f"reservations/{row.public_id}/withdraw")
    monkeypatch.setattr(endpoints, "rest", lambda seconds: pytest.fail("it waits"))
    shown = lead.get(f"reservations/{row.public_id}?wait_for=verified").json()
    assert shown["decision"] == "withdrawn"


def test_those_who_wait_never_take_every_thread(world: World, of: Of, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one call waits, another one comes; there is room for one more only after the first was answered."""
    row, lead = approved(world), of("lead")
    path = f"reservations/{row.public_id}?wait_for=verified"
    monkeypatch.setattr(endpoints, "_waiting", threading.BoundedSemaphore(1))
    meanwhile: list[HttpResponse] = []

    def rest(seconds: float) -> None:
        meanwhile.append(lead.get(path))
        apply_everything(world)

    monkeypatch.setattr(endpoints, "rest", rest)
    assert lead.get(path).json()["push"]["state"] == "verified"
    told = problem(meanwhile[0], 429, "rate_limited")
    assert (meanwhile[0]["Retry-After"], told["retry"]) == ("5", "same")
    assert lead.get(path).status_code == 200


@pytest.mark.parametrize("query", ["wait_for=approved", "timeout_seconds=5", "wait_for=verified&timeout_seconds=x"])
def test_waiting_for_something_else_is_refused(world: World, of: Of, query: str) -> None:
    row = ask(world)
    problem(of("lead").get(f"reservations/{row.public_id}?{query}"), 400, "invalid")


def test_a_list_can_be_cut_to_some_keys_and_counted(world: World, of: Of) -> None:
    row = ask(world)
    shown = of("lead").get("reservations?fields=id,decision&count=true").json()
    assert shown == {"items": [{"id": row.public_id, "decision": "requested"}], "next": None, "count": 1}


def test_a_head_answers_like_a_get_without_its_body(world: World, of: Of) -> None:
    row = ask(world)
    response = of("lead").send("HEAD", f"reservations/{row.public_id}")
    assert (response.status_code, response["ETag"], response.content) == (200, f'"{row.public_id}:1"', b"")
