"""Does the inbox hold what waits for this person, with what they need to say yes or no?"""

from datetime import timedelta

import pytest
import time_machine

from allocations.models import Allocation, ApprovalPolicy, Decision
from reservations.models import Hold, Reservation
from reservations.services.approve import approve
from reservations.services.submit import submit
from tests.reservations.world import DAY, NOW, two_racks

TOMORROW = int((NOW + DAY).timestamp()) // 60


@pytest.fixture
def asked(world):
    spec = two_racks(earliest_start_minute=TOMORROW)
    return submit(team=world.team, cluster=world.cluster, spec=spec, purpose="Scaling run", actor=world.lead, at=NOW)


def post(client, asked, verdict, **more):
    data = {"verdict": verdict, "version": asked.version, **more}
    return client.post(f"/reservations/{asked.public_id}/decide", data, follow=True)


def test_an_ask_is_shown_with_what_its_approver_needs(visit, asked, words):
    says = words(visit("approver").get("/inbox"))
    assert "1 ask waits for you" in says
    assert "Lead asks for acme/vision, on sol." in says and "Scaling run" in says
    assert "Tue 5 Jan 09:00 to Fri 8 Jan 09:00" in says and "10,368 GPU-hours" in says
    assert "1 d more, then the racks go back" in says
    assert "acme/vision gets 2 racks of sol." in says and "r01 and r02, 36 nodes, 144 GPUs" in says
    assert "989,632 are left after it." in says
    assert "Approve 2 racks" in says


@pytest.mark.parametrize(
    ("who", "status"),
    [("approver", 200), ("lead", 200), ("operator", 200), ("member", 403), ("auditor", 403), ("stranger", 403)],
)
def test_the_inbox_is_for_those_who_decide(visit, who, status):
    assert visit(who).get("/inbox").status_code == status


def test_an_approval_is_told_with_what_comes_next(visit, asked, words):
    response = post(visit("approver"), asked, "approve", reason="Last run before the deadline.")
    says = words(response)
    assert f"{asked.public_id} is approved from " in says and "; sol will show it within a minute." in says
    assert "Nothing waits for you. Last decision:" in says
    assert Reservation.objects.get().decision == "approved"
    assert Decision.objects.get().reason == "Last run before the deadline."


def test_a_rejection_frees_the_racks_and_needs_a_reason(visit, asked, words):
    client = visit("approver")
    response = post(client, asked, "reject", reason=" ")
    assert response.status_code == 400 and f"{asked.public_id} is not decided" in words(response)
    assert Reservation.objects.get().decision == "requested"
    response = post(client, asked, "reject", reason="The fleet is needed for serving.")
    assert f"{asked.public_id} is rejected. The racks are free." in words(response)
    assert not Hold.objects.filter(released_at=None).exists()


def test_a_first_yes_of_two_says_that_another_is_needed(world, visit, words):
    ApprovalPolicy.objects.create(name="two", steps=[{"role": "approver", "quorum": 2}])
    asked = submit(team=world.team, cluster=world.cluster, spec=two_racks(), purpose="x", actor=world.lead, at=NOW)
    assert "It needs 2 yes from this step; yours is one of them." in words(visit("approver").get("/inbox"))
    assert "it waits for another." in words(post(visit("approver"), asked, "approve"))
    assert Reservation.objects.get().decision == "requested"
    assert "is approved" in words(post(visit("colleague"), asked, "approve"))


@pytest.mark.parametrize(
    ("who", "status"), [("lead", 403), ("second", 403), ("member", 403), ("operator", 403), ("auditor", 403)]
)
def test_who_may_see_but_not_decide_is_refused(visit, asked, who, status):
    assert post(visit(who), asked, "approve").status_code == status
    assert Reservation.objects.get().decision == "requested"


def test_who_may_not_even_see_finds_nothing(visit, asked):
    assert post(visit("outsider"), asked, "approve").status_code == 404


def test_deciding_by_a_link_is_not_possible(visit, asked):
    assert visit("approver").get(f"/reservations/{asked.public_id}/decide").status_code == 405


def test_an_ask_that_changed_meanwhile_is_said_with_the_reason_kept(visit, asked, words):
    response = post(visit("approver"), asked, "approve", version=asked.version + 1, reason="Because")
    assert response.status_code == 409
    assert "changed since you looked. Read it again." in words(response)
    assert ">Because</textarea>" in response.content.decode()


def test_two_approvers_at_once_hear_who_was_first(world, visit, asked, words):
    approve(reservation=asked, actor=world.colleague, at=NOW)
    response = post(visit("approver"), asked, "approve")
    assert response.status_code == 409 and "is approved; that cannot be done now." in words(response)


def test_a_budget_that_shrank_is_said_in_the_inbox(visit, asked, words):
    Allocation.objects.update(gpu_hours=100)
    assert "-10,268 are left after it." in words(visit("approver").get("/inbox"))
    response = post(visit("approver"), asked, "approve")
    assert response.status_code == 409 and "10,268 are missing" in words(response)


def test_an_ask_whose_hold_ran_out_waits_for_nobody(visit, asked, words):
    with time_machine.travel(NOW + timedelta(days=1, minutes=1), tick=False):
        assert "Nothing waits for you." in words(visit("approver").get("/inbox"))


def test_the_inbox_costs_few_queries_more_for_each_ask(world, visit, asked, django_assert_max_num_queries):
    client = visit("approver")
    with django_assert_max_num_queries(20):
        client.get("/inbox")
