"""Does a preview say yes and no in one shape, and write nothing?"""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.models import Cluster
from allocations.services import approvals
from tests.api.callers import problem
from tests.api.test_reservations import SPEC, Of
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, two_racks


def about(world: World, **more: Any) -> dict[str, Any]:
    return {"team": world.team.public_id, "cluster": "sol", "spec": {**SPEC, **more}}


def test_a_yes_has_place_cost_and_approval(world: World, of: Of) -> None:
    approvals.set_policy(name="long", steps=[{"role": "approver", "quorum": 2}], actor=None, at=NOW)
    response = of("member").post("reservations/preview", about(world), key=None)
    shown = response.json()
    assert response.status_code == 200
    assert shown["fits"] is True
    assert shown["placement"]["racks"] == ["r01", "r02"]
    assert shown["cost"] == {
        "held_gpus": 144,
        "use_gpus": 144,
        "gpu_hours": 10368.0,
        "allocation": world.allocation.public_id,
        "left_after_gpu_hours": 989632.0,
    }
    assert shown["approval"] == {
        "automatic": False,
        "policy": "long",
        "policy_version": 1,
        "steps": [{"role": "approver", "quorum": 2}],
        "hold_minutes": 1440,
    }
    assert shown["as_of"] == {"generation": 0, "observed_at": None}
    # A member may look; asking is a lead's.
    assert (shown["can_be_asked"], [fault["pointer"] for fault in shown["errors"]]) == (False, ["/team"])


def test_a_lead_can_ask_for_what_was_shown(world: World, of: Of) -> None:
    lead = of("lead")
    shown = lead.post("reservations/preview", about(world), key=None).json()
    made = lead.post("reservations", {**about(world), "purpose": "As shown"}).json()
    assert (shown["can_be_asked"], shown["errors"]) == (True, [])
    assert {**shown["placement"], "jobs": None} == {**made["placement"], "jobs": None}


def test_a_no_is_200_with_reasons_and_what_would_fit(world: World, of: Of) -> None:
    approved(world, spec=two_racks(racks=4))
    window = {"latest_end_at": "2027-01-08T00:00:00Z"}
    response = of("lead").post("reservations/preview", about(world, **window), key=None)
    shown = response.json()
    assert (response.status_code, shown["fits"]) == (200, False)
    assert "placement" not in shown
    reason = shown["refusal"]["reasons"][0]
    assert (reason["code"], reason["unit"]) == ("rack_held", "racks")
    assert reason["by"][0]["team"] == "acme/vision"
    later = shown["refusal"]["alternatives"][0]
    again = of("lead").post("reservations/preview", {**about(world), "spec": later["spec"]}, key=None).json()
    assert again["placement"]["start_at"] == later["placement"]["start_at"]
    quiet = of("lead").post("reservations/preview", {**about(world, **window), "explain": False}, key=None).json()
    assert quiet["refusal"]["alternatives"] == []


def test_what_the_caller_may_not_see_keeps_kind_and_end_alone(world: World, of: Of) -> None:
    Cluster.objects.update(disclosure="bare")
    row = approved(world, spec=two_racks(racks=4), purpose="Secret")
    content = {**about(world, latest_end_at="2027-01-08T00:00:00Z"), "team": world.other_team.public_id}
    response = of("outsider").post("reservations/preview", content, key=None)
    by = response.json()["refusal"]["reasons"][0]["by"][0]
    assert by == {"kind": "reservation", "id": None, "team": None, "until_at": "2027-01-07T09:00:00Z"}
    for hidden in (row.public_id, "vision", "Secret"):
        assert hidden not in response.content.decode()


def test_an_allocation_without_a_limit_is_unlimited(world: World, of: Of) -> None:
    world.allocation.gpu_hours = None
    world.allocation.save()
    shown = of("lead").post("reservations/preview", about(world), key=None).json()
    assert shown["cost"]["left_after_gpu_hours"] == "unlimited"


def test_a_preview_writes_nothing(world: World, of: Of) -> None:
    lead = of("lead")
    lead.get("me")  # the token's last use is noted once a minute
    with CaptureQueriesContext(
        connection,
    ) as seen:
        lead.post("reservations/preview", about(world))
    assert [each["sql"] for each in seen if not each["sql"].startswith("SELECT")] == []


@pytest.mark.parametrize("more", [{"explain": "no"}, {"purpose": "x"}])
def test_what_a_preview_does_not_take_is_refused(world: World, of: Of, more: dict[str, Any]) -> None:
    response = of("lead").post("reservations/preview", {**about(world), **more}, key=None)
    assert problem(response, 400, response.json()["code"])["errors"][0]["pointer"] == f"/{next(iter(more))}"
