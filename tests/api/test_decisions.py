"""Is a decision over the API the decision of a person who saw what they decide?"""

from typing import Any

import pytest

from allocations.models import Decision
from allocations.services import approvals
from reservations.models import Reservation
from tests.api.callers import problem
from tests.api.test_reservations import Of
from tests.reservations.asks import ask
from tests.reservations.world import NOW, World


def on(row: Reservation, **more: Any) -> dict[str, Any]:
    return {"subject": row.public_id, "subject_version": row.version, "verdict": "approve", **more}


def test_a_yes_is_recorded_and_takes_effect(world: World, of: Of) -> None:
    row, approver = ask(world), of("approver")
    response = approver.post("decisions", on(row, reason="Fine."))
    made = Decision.objects.get()
    assert response.status_code == 201
    assert response["Location"] == f"/api/v1/decisions/{made.public_id}"
    assert response.json() == {
        "id": made.public_id,
        "subject": row.public_id,
        "subject_version": 1,
        "step": 1,
        "role": "approver",
        "verdict": "approve",
        "reason": "Fine.",
        "counter_offer": None,
        "decided_by": world.approver.public_id,
        "decided_at": "2027-01-04T09:00:00Z",
    }
    assert approver.get(f"decisions/{made.public_id}").json() == response.json()
    shown = approver.get(f"reservations/{row.public_id}").json()
    assert (shown["decision"], shown["hold"], shown["phase"], shown["waits_for"]) == ("approved", "firm", "active", [])


def test_a_no_needs_its_reason(world: World, of: Of) -> None:
    row, approver = ask(world), of("approver")
    told = problem(approver.post("decisions", on(row, verdict="reject")), 400, "invalid")
    assert [fault["pointer"] for fault in told["errors"]] == ["/reason"]
    assert approver.post("decisions", on(row, verdict="reject", reason="Too long.")).status_code == 201
    assert Reservation.objects.get().decision == "rejected"


def test_a_yes_to_another_version_is_refused(world: World, of: Of) -> None:
    row = ask(world)
    told = problem(of("approver").post("decisions", on(row, subject_version=7)), 409, "subject_changed")
    assert (told["version"], told["retry"]) == (1, "after_change")
    assert not Decision.objects.exists()


def test_of_two_who_are_needed_the_first_is_counted(world: World, of: Of) -> None:
    approvals.set_policy(name="two", steps=[{"role": "approver", "quorum": 2}], actor=None, at=NOW)
    row, approver = ask(world), of("approver")
    approver.post("decisions", on(row))
    shown = of("lead").get(f"reservations/{row.public_id}").json()
    assert shown["waits_for"] == [{"step": 1, "role": "approver", "needed": 2, "got": 1}]
    assert approver.get(f"reservations/{row.public_id}").json()["may"] == []
    problem(approver.post("decisions", on(row)), 409, "already_decided")
    assert of("colleague").post("decisions", on(row)).status_code == 201
    assert Reservation.objects.get().decision == "approved"


def test_steps_wait_in_their_order(world: World, of: Of) -> None:
    steps = [{"role": "approver", "quorum": 1}, {"role": "operator", "quorum": 1}]
    approvals.set_policy(name="both", steps=steps, actor=None, at=NOW)
    row = ask(world)
    problem(of("operator").post("decisions", on(row)), 403, "not_allowed")
    shown = of("operator").get(f"reservations/{row.public_id}").json()
    assert [(step["step"], step["role"], step["got"]) for step in shown["waits_for"]] == [
        (1, "approver", 0),
        (2, "operator", 0),
    ]
    of("approver").post("decisions", on(row))
    shown = of("operator").get(f"reservations/{row.public_id}").json()
    assert ([step["step"] for step in shown["waits_for"]], shown["may"][-2:]) == ([2], ["approve", "reject"])


@pytest.mark.parametrize(
    ("more", "status", "pointer"),
    [
        ({"verdict": "maybe"}, 400, "/verdict"),
        ({"verdict": 1}, 400, "/verdict"),
        ({"subject_version": "1"}, 400, "/subject_version"),
        ({"subject": "R-999"}, 404, "/subject"),
        ({"subject": "A-1"}, 404, "/subject"),
        ({"mood": "good"}, 400, "/mood"),
    ],
)
def test_a_wrong_decision_points_at_its_place(
    world: World, of: Of, more: dict[str, Any], status: int, pointer: str
) -> None:
    response = of("approver").post("decisions", on(ask(world), **more))
    assert response.status_code == status
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]


def test_decisions_are_listed_by_subject_and_verdict(world: World, of: Of) -> None:
    approver = of("approver")
    first = ask(world)
    approver.post("decisions", on(first))
    second = ask(world)
    approver.post("decisions", on(second, verdict="reject", reason="No."))

    def subjects(query: str) -> list[str]:
        return [one["subject"] for one in approver.get(f"decisions?{query}").json()["items"]]

    assert subjects("") == [second.public_id, first.public_id]
    assert subjects("verdict=approve") == subjects(f"subject={first.public_id}") == [first.public_id]
    assert subjects("subject=R-99999") == []
