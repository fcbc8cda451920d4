"""Do the pages of reservations show the right ones to the right people, and say what a deed does?"""

import re
from datetime import timedelta

import pytest
import time_machine

from allocations.models import Cluster
from console.models import ClusterEndpoint, PushPlan, PushStep
from reservations.models import Hold, Reservation
from reservations.services.approve import approve
from reservations.services.submit import submit
from tests.reservations.world import DAY, NOW, two_racks

TOMORROW = int((NOW + DAY).timestamp()) // 60


@pytest.fixture
def asked(world):
    spec = two_racks(earliest_start_minute=TOMORROW, spare_nodes=1)
    return submit(team=world.team, cluster=world.cluster, spec=spec, purpose="Scaling run", actor=world.lead, at=NOW)


@pytest.fixture
def approved(world, asked):
    return approve(reservation=asked, actor=world.approver, at=NOW, reason="Last run before the deadline.")


@pytest.mark.parametrize(
    ("who", "status"),
    [
        ("lead", 200),
        ("member", 200),
        ("approver", 200),
        ("operator", 200),
        ("auditor", 200),
        ("outsider", 404),
        ("stranger", 404),
    ],
)
def test_a_reservation_is_shown_to_those_who_may_read_it(visit, asked, who, status):
    assert visit(who).get(f"/reservations/{asked.public_id}").status_code == status
    assert visit(who).get(f"/reservations/{asked.public_id}/state").status_code == status


@pytest.mark.parametrize("name", ["R-999999", "R-x", "A-1", "R-", "R-99999999999999999999"])
def test_what_is_not_there_is_nothing_here(visit, name):
    assert visit("auditor").get(f"/reservations/{name}").status_code == 404


def test_the_page_of_an_ask_says_how_long_it_is_held(visit, asked, words):
    says = words(visit("lead").get(f"/reservations/{asked.public_id}"))
    assert "acme/vision asks for 2 racks of sol, Tue 5 Jan 09:00 to Fri 8 Jan 09:00." in says
    assert "waits for an approver" in says and "not yet" in says
    assert "The racks are held until Tue 5 Jan 09:00 , 1 d left; undecided by then, they go back." in says


def test_the_page_of_an_approved_one_shows_three_signs_and_how_to_use_it(visit, approved, words):
    response = visit("lead").get(f"/reservations/{approved.public_id}")
    says = words(response)
    assert "approved" in says and "scheduled" in says and "not connected" in says
    assert f"sbatch --account=vision --reservation=berth-{approved.public_id}" in says
    assert "Grace" not in says and "Last run before the deadline." in says
    assert "sol[0001-0036]" in says and "sol[0018,0036]" in says


def test_what_was_written_is_shown_with_its_exact_command(visit, approved, words):
    ClusterEndpoint.objects.create(cluster=approved.cluster, driver="files", state="verified", verified_at=NOW)
    Cluster.objects.filter(pk=approved.cluster_id).update(applied_generation=approved.wanted_generation)
    told = [{"code": "x", "subject": approved.public_id, "sentence": "MaxWall per user: Berth enforces it."}]
    plan = PushPlan.objects.create(
        cluster=approved.cluster, generation=1, state="verified", created_at=NOW, compromises=told
    )
    step = {"plan": plan, "verb": "create", "object_class": "Reservation", "state": "verified"}
    command = f"scontrol create reservation ReservationName={approved.name_on_cluster}"
    PushStep.objects.create(**step, number=1, name=approved.name_on_cluster, commands=[command])
    PushStep.objects.create(**step, number=2, name="berth-R-77", commands=["scontrol something else"])
    says = words(visit("lead").get(f"/reservations/{approved.public_id}/state"))
    assert command in says and "something else" not in says
    assert "verified 09:00" in says and "Berth enforces it." in says


def test_the_part_that_changes_asks_again_until_it_is_settled(visit, approved):
    ClusterEndpoint.objects.create(cluster=approved.cluster, driver="files", state="applying", verified_at=NOW)
    address = f"/reservations/{approved.public_id}/state"
    assert 'hx-trigger="every 3s"' in visit("lead").get(address).content.decode()
    Cluster.objects.filter(pk=approved.cluster_id).update(applied_generation=approved.wanted_generation)
    ClusterEndpoint.objects.update(state="verified")
    assert "hx-trigger" not in visit("lead").get(address).content.decode()


def test_withdrawing_says_its_effect_first_and_then_frees_the_racks(visit, asked, words):
    client = visit("lead")
    page = words(client.get(f"/reservations/{asked.public_id}"))
    assert "2 racks of sol go back to the pool at once." in page
    address = f"/reservations/{asked.public_id}/withdraw"
    response = client.post(address, {"version": asked.version, "reason": "Not needed"}, follow=True)
    assert "is withdrawn. The racks are free." in words(response)
    assert not Hold.objects.filter(released_at=None).exists()


def test_cancelling_says_its_effect_first_and_when_the_cluster_shows_it(visit, approved, words):
    client = visit("lead")
    page = words(client.get(f"/reservations/{approved.public_id}"))
    assert "10,368 GPU-hours are not charged." in page and "r01 and r02, 36 nodes, 144 GPUs" in page
    response = client.post(f"/reservations/{approved.public_id}/cancel", {"version": approved.version}, follow=True)
    assert "Cancelled. The racks are free; sol will show it within a minute." in words(response)
    assert Reservation.objects.get().decision == "cancelled"


def test_an_operator_may_cancel_and_a_member_may_not(visit, approved):
    address = f"/reservations/{approved.public_id}/cancel"
    assert visit("member").post(address).status_code == 403
    assert visit("auditor").post(address).status_code == 403
    assert visit("outsider").post(address).status_code == 404
    assert Reservation.objects.get().decision == "approved"
    assert visit("operator").post(address).status_code == 302


def test_deeds_are_offered_only_to_those_who_may_do_them(visit, asked):
    offered = {
        who: {label for label in ("withdraw", "approve-", "cancel") if f'popovertarget="{label}' in page}
        for who in ("lead", "member", "approver", "operator")
        for page in [visit(who).get(f"/reservations/{asked.public_id}").content.decode()]
    }
    assert offered == {"lead": {"withdraw"}, "member": set(), "approver": {"approve-"}, "operator": set()}


def test_a_deed_on_what_changed_meanwhile_is_refused_on_the_page(visit, approved, words):
    response = visit("lead").post(f"/reservations/{approved.public_id}/cancel", {"version": approved.version - 1})
    assert response.status_code == 409
    assert "changed since you looked. Read it again." in words(response)
    response = visit("lead").post(f"/reservations/{approved.public_id}/withdraw", {"version": approved.version})
    assert response.status_code == 409 and "is approved; that cannot be done now." in words(response)


def test_an_active_one_says_what_is_left_and_that_its_work_loses_its_place(visit, approved, words):
    with time_machine.travel(NOW + 2 * DAY, tick=False):
        says = words(visit("lead").get(f"/reservations/{approved.public_id}"))
    assert "acme/vision has 2 racks of sol now, 2 d left." in says
    assert "Work that runs in it loses its place on sol within a minute." in says
    assert "--time=1-23:59:00" in says
    assert "time left as of" in says


def test_what_is_over_offers_nothing_any_more(visit, approved, words):
    with time_machine.travel(NOW + 9 * DAY, tick=False):
        response = visit("lead").get(f"/reservations/{approved.public_id}")
    assert "acme/vision had 2 racks of sol" in words(response)
    assert 'popovertarget="cancel' not in response.content.decode() and "sbatch" not in words(response)


@pytest.mark.parametrize(
    ("who", "query", "seen"),
    [
        ("lead", "", True),
        ("member", "?state=requested", True),
        ("member", "?state=rejected", False),
        ("outsider", "?whose=all", False),
        ("approver", "", True),
        ("operator", "?cluster=sol", True),
        ("operator", "?cluster=luna", False),
        ("auditor", "?q=scaling", True),
        ("auditor", "?q=nothing", False),
        ("stranger", "", False),
    ],
)
def test_the_list_shows_what_one_may_see_and_asked_for(visit, asked, who, query, seen):
    response = visit(who).get(f"/reservations{query}")
    assert response.status_code == 200
    assert (f"/reservations/{asked.public_id}" in response.content.decode()) is seen


def test_a_reservation_is_found_by_its_name(visit, asked):
    assert (
        f"/reservations/{asked.public_id}" in visit("lead").get(f"/reservations?q={asked.public_id}").content.decode()
    )


@pytest.mark.parametrize(("after", "state"), [(0, "scheduled"), (2, "active"), (9, "over")])
def test_the_phase_that_time_brings_can_be_filtered(visit, approved, after, state):
    with time_machine.travel(NOW + after * DAY, tick=False):
        found = {
            name: f"/reservations/{approved.public_id}"
            in visit("lead").get(f"/reservations?state={name}").content.decode()
            for name in ("scheduled", "active", "over")
        }
    assert found == {name: name == state for name in found}


def test_a_long_list_is_paged(world, visit, asked, monkeypatch, words):
    monkeypatch.setattr("console.web.reservations.PAGE_SIZE", 1)
    late = two_racks(earliest_start_minute=TOMORROW + 9 * 1440)
    approve(reservation=asked, actor=world.approver, at=NOW)
    submit(team=world.team, cluster=world.cluster, spec=late, purpose="Second", actor=world.lead, at=NOW)
    first = visit("lead").get("/reservations")
    assert "2 reservations" in words(first) and "Scaling run" not in words(first)
    assert "Scaling run" in words(visit("lead").get(first.context["next_url"]))


def test_the_empty_list_says_the_next_deed(visit, words):
    assert "Your team has no reservation. Reserve" in words(visit("lead").get("/reservations"))


def test_the_pages_cost_a_fixed_number_of_queries(world, visit, approved, django_assert_max_num_queries):
    client = visit("lead")
    client.get(f"/reservations/{approved.public_id}")  # fills the cache of the inventory
    with django_assert_max_num_queries(37):
        client.get(f"/reservations/{approved.public_id}")
    with django_assert_max_num_queries(18):
        client.get(f"/reservations/{approved.public_id}/state")
    with django_assert_max_num_queries(16):
        client.get("/reservations")


def test_an_ask_whose_hold_ran_out_is_not_said_to_wait(visit, asked):
    with time_machine.travel(NOW + DAY + timedelta(hours=1), tick=False):
        (row,) = visit("lead").get("/reservations").context["rows"]
    signs = " ".join(row["cells"][4:])
    assert "lapsed" in signs and "over" in signs and "never there" in signs and "waits" not in signs


def test_a_page_that_shows_an_older_version_is_told_to_load_again(visit, asked):
    address = f"/reservations/{asked.public_id}/state"
    assert "HX-Refresh" not in visit("lead", htmx=True).get(f"{address}?version={asked.version}")
    assert visit("lead", htmx=True).get(f"{address}?version={asked.version - 1}")["HX-Refresh"] == "true"


def test_what_berth_did_is_told_in_the_persons_zone_and_only_what_a_person_said_stands_in_quotes(world, visit, words):
    reservation = submit(
        team=world.team, cluster=world.cluster, spec=two_racks(), purpose="x", actor=world.lead, at=NOW
    )
    type(world.lead).objects.filter(pk=world.lead.pk).update(zone="Europe/Zurich")
    at = NOW + timedelta(hours=1)
    with time_machine.travel(at, tick=False):
        approve(reservation=reservation, actor=world.approver, at=at, reason="Go on.")
        response = visit("lead").get(f"/reservations/{reservation.public_id}")
    told = words(response)
    assert (
        "Approved. Placed anew, because its start has passed: from Mon 4 Jan 11:00 instead of Mon 4 Jan 10:00." in told
    )
    assert response.content.decode().count('<q class="muted">Go on.</q>') == 2  # beside the decision and in the history
    assert "Placed anew" not in "".join(re.findall(r"<q.*?</q>", response.content.decode()))


@pytest.mark.parametrize(
    ("before_start", "said"),
    [(timedelta(seconds=20), "it starts now."), (timedelta(minutes=3), "it starts in 3 min."), (DAY, "in 1 d.")],
)
def test_a_start_is_told_in_words(visit, approved, words, before_start, said):
    with time_machine.travel(approved.start_at - before_start, tick=False):
        assert said in words(visit("lead").get(f"/reservations/{approved.public_id}"))
