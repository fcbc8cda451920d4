"""Does the page "Reserve" answer before it asks, and ask only by its button?"""

import re
from datetime import timedelta

import pytest

from allocations.models import Allocation, ApprovalPolicy, Event, Flavor
from console.web.answers import in_zone
from console.web.drawings import racks_text
from reservations.models import Hold, Reservation
from reservations.services.submit import submit
from tests.reservations.world import DAY, NOW, make_world, two_racks

ASK = {
    "team": "acme/vision",
    "cluster": "sol",
    "flavor": "gb200",
    "racks": "2",
    "duration": "3 days",
    "purpose": "Scaling run",
}


def rows() -> tuple[int, int, int]:
    return Reservation.objects.count(), Hold.objects.count(), Event.objects.count()


def test_the_page_opens_with_a_whole_form_and_its_answer(visit, words):
    response = visit("lead").get("/reservations/new")
    says = words(response)
    assert response.status_code == 200
    assert "Fits from Mon 4 Jan 09:00 to Tue 5 Jan 09:00" in says
    assert "Request 1 rack from Mon 4 Jan 09:00" in says
    assert "Times in UTC" in says


def test_the_answer_says_where_what_it_costs_and_who_must_agree(visit, words):
    says = words(visit("lead", htmx=True).get("/reservations/new/answer", {**ASK, "spare_nodes": "1"}))
    assert "Fits from Mon 4 Jan 09:00 to Thu 7 Jan 09:00" in says
    assert "r01 and r02 in block b1, 17 of 18 nodes each and one spare." in says
    assert "10,368 GPU-hours from A-" in says and "989,632 are left after it." in says
    assert "Needs one approval (approver); the racks are held for you meanwhile, for 1 d." in says
    assert "136 GPUs, 8 more spare" in says


def test_looking_writes_nothing(visit):
    before = rows()
    visit("lead").get("/reservations/new", ASK)
    visit("lead", htmx=True).get("/reservations/new/answer", {**ASK, "racks": "9"})
    assert rows() == before


def test_the_answer_keeps_the_address_of_the_page_in_step(visit):
    response = visit("lead", htmx=True).get("/reservations/new/answer", ASK)
    assert response["HX-Replace-Url"].startswith("/reservations/new?")
    assert "racks=2" in response["HX-Replace-Url"] and "csrf" not in response["HX-Replace-Url"]


def test_the_button_asks_and_leads_to_the_reservation(world, visit, words):
    client = visit("lead")
    response = client.post("/reservations/new", ASK, follow=True)
    made = Reservation.objects.get()
    assert response.redirect_chain == [(f"/reservations/{made.public_id}", 302)]
    assert made.decision == "requested" and made.spec["racks"] == 2 and made.created_by == world.lead
    assert "The racks are held for you until Tue 5 Jan 09:00." in words(response)


def test_an_ask_that_a_policy_approves_says_so(world, visit, words):
    ApprovalPolicy.objects.create(name="small", automatic="approve")
    says = words(visit("lead").get("/reservations/new", ASK))
    assert "Approved at once by the policy small." in says
    assert "is approved from Mon 4 Jan 09:00" in words(visit("lead").post("/reservations/new", ASK, follow=True))


def test_a_wrong_field_keeps_what_was_typed_and_says_it_beside_the_field(visit):
    before = rows()
    response = visit("lead").post("/reservations/new", {**ASK, "duration": "soon", "racks": "2"})
    page = response.content.decode()
    assert response.status_code == 400 and rows() == before
    assert 'value="soon"' in page and 'value="Scaling run"' in page
    error = page.partition('id="id_duration_error">')[2].partition("</div>")[0]
    assert "is no length of time" in error


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"racks": "0"}, "racks"),
        ({"nodes": "4"}, "racks"),
        ({"earliest_start_at": "2027-01-08T09:00", "latest_end_at": "2027-01-07T09:00"}, "latest_end_at"),
        ({"latest_end_at": "2026-01-07T09:00"}, "latest_end_at"),
        ({"racks": "", "nodes": "4", "nodes_per_rack": "4"}, "nodes_per_rack"),
        ({"purpose": " "}, "purpose"),
        ({"team": "acme/speech"}, "team"),
        ({"flavor": "h100"}, "flavor"),
    ],
)
def test_each_fault_of_the_spec_stands_at_its_own_field(visit, wrong, field):
    response = visit("lead").post("/reservations/new", {**ASK, **wrong})
    page = response.content.decode()
    assert response.status_code == 400
    (focused,) = re.findall(r"<(?:input|select|textarea)[^>]* autofocus[^>]*>", page)
    assert f'name="{field}"' in focused
    error = page.partition(f'id="id_{field}_error">')[2].partition("</div>")[0]
    assert "<span>" in error, f"nothing is said at {field}"
    assert Reservation.objects.count() == 0


def test_while_typing_a_fault_reaches_its_field_without_touching_what_is_typed(visit):
    page = visit("lead", htmx=True).get("/reservations/new/answer", {**ASK, "duration": "3 da"}).content.decode()
    assert 'id="id_duration_error" hx-swap-oob="true">' in page and "is no length of time" in page
    assert 'name="duration"' not in page and "disabled" in page


def test_a_refusal_says_why_and_each_other_way_is_a_link_that_fits(visit, words):
    response = visit("lead").get("/reservations/new", {**ASK, "racks": "9"})
    assert "Never possible" in words(response) and "sol has at most 4 racks" in words(response)
    link = response.context["alternatives"][0]["url"]
    assert "Fits from" in words(visit("lead").get(link))
    assert "latest_end_at" not in link, "an end that nobody typed must not appear in the form"


def test_an_ask_outside_the_window_names_what_is_in_the_way_in_the_persons_zone(world, visit, words):
    submit(team=world.team, cluster=world.cluster, spec=two_racks(racks=4), purpose="x", actor=world.lead, at=NOW)
    type(world.lead).objects.filter(pk=world.lead.pk).update(zone="Europe/Zurich")
    response = visit("lead").get("/reservations/new", {**ASK, "duration": "1 day", "latest_end_at": "2027-01-06T09:00"})
    says = words(response)
    assert "Not in your window" in says and "R-" in says
    assert "Times in Europe/Zurich" in says and "UTC" not in says.partition("Not in your window")[2][:300]
    assert response.context["can_be_asked"] is False


def test_a_limit_is_said_and_the_button_rests(world, visit, words):
    Allocation.objects.filter(team=world.team).update(gpu_hours=100)
    response = visit("lead").get("/reservations/new", ASK)
    assert "10,268 are missing" in words(response)
    assert "disabled" in response.content.decode().partition('id="ask"')[2][:600]
    refused = visit("lead").post("/reservations/new", ASK)
    assert refused.status_code == 409 and "10,268 are missing" in words(refused)
    assert Reservation.objects.count() == 0


def test_without_an_allocation_one_can_look_but_not_reserve(world, visit, words):
    Allocation.objects.filter(team=world.team).delete()
    response = visit("lead").get("/reservations/new", ASK)
    assert "has no allocation of gb200 on sol yet" in words(response)
    assert response.context["can_be_asked"] is False


def test_a_place_that_was_taken_meanwhile_is_not_asked_at_another_time(world, visit, words):
    submit(team=world.team, cluster=world.cluster, spec=two_racks(racks=4), purpose="x", actor=world.lead, at=NOW)
    response = visit("lead").post("/reservations/new", {**ASK, "shown_start_at": NOW.isoformat()})
    assert response.status_code == 409
    assert "is taken since you looked; nothing was asked. Now it would start Thu 7 Jan 09:00." in words(response)
    assert 'value="Scaling run"' in response.content.decode()
    assert Reservation.objects.count() == 1


def test_a_start_that_slips_by_minutes_is_still_what_was_asked(visit):
    shown = (NOW - timedelta(minutes=9)).isoformat()
    assert visit("lead").post("/reservations/new", {**ASK, "shown_start_at": shown}).status_code == 302


def test_a_bar_of_the_strip_sets_the_earliest_start(visit):
    start = NOW + 2 * DAY
    response = visit("lead", htmx=True).get("/reservations/new/answer", {**ASK, "start_at": start.isoformat()})
    page = response.content.decode()
    assert 'value="2027-01-06T09:00"' in page and "Fits from Wed 6 Jan 09:00" in page


def test_flavors_follow_the_cluster(world, visit):
    luna = make_world(racks=2, name="luna").cluster
    Flavor.objects.filter(cluster=luna).update(name="h200")
    page = visit("lead", htmx=True).get("/reservations/new/answer", {**ASK, "cluster": "luna"}).content.decode()
    field = page.partition('id="id_flavor_field" hx-swap-oob="true"')[2].partition("</select>")[0]
    assert '<option value="h200" selected>' in field and "gb200" not in field


def test_flavors_follow_a_cluster_that_has_one_of_the_same_name(visit):
    answer, swapped = "/reservations/new/answer", b'id="id_flavor_field" hx-swap-oob'
    assert swapped in visit("lead", htmx=True).get(answer, {**ASK, "shown_cluster": "luna"}).content
    assert swapped not in visit("lead", htmx=True).get(answer, {**ASK, "shown_cluster": "sol"}).content


def test_a_cluster_alone_starts_with_a_flavor_that_has_gpus(world, visit):
    Flavor.objects.create(cluster=world.cluster, name="a-cpu", gpus_per_node=0, nodes_per_rack=1)
    page = visit("lead").get("/reservations/new", {"cluster": "sol", "racks": "2"}).content.decode()
    assert '<option value="gb200" selected>' in page


def test_moments_in_a_link_are_shown_in_the_persons_zone(world, visit):
    type(world.lead).objects.filter(pk=world.lead.pk).update(zone="Asia/Tokyo")
    response = visit("lead").get("/reservations/new", {**ASK, "earliest_start_at": "2027-01-06T09:00:00Z"})
    assert 'value="2027-01-06T18:00"' in response.content.decode()
    assert "Fits from Wed 6 Jan 18:00" in response.content.decode()


def test_a_member_sees_the_answer_and_that_a_lead_must_ask(visit, words):
    response = visit("member").get("/reservations/new", ASK)
    assert "Only a lead of acme/vision may ask for racks in its name." in words(response)
    assert response.context["can_be_asked"] is False
    assert visit("member").post("/reservations/new", ASK).status_code == 403
    assert Reservation.objects.count() == 0


def test_a_lead_of_another_team_cannot_ask_in_this_ones_name(visit):
    assert visit("outsider").post("/reservations/new", ASK).status_code == 400
    assert Reservation.objects.count() == 0


@pytest.mark.parametrize("who", ["approver", "operator", "auditor", "stranger"])
def test_who_is_in_no_team_cannot_reserve(visit, who, words):
    response = visit(who).get("/reservations/new")
    assert response.status_code == 403 and "you belong to none" in words(response)


def test_the_token_never_stands_in_an_address(visit):
    page = visit("lead").get("/reservations/new").content.decode()
    form = page.partition('id="reserve-form"')[2].partition("</form>")[0]
    assert 'type="hidden" name="csrfmiddlewaretoken"' not in form
    assert 'formmethod="post" name="csrfmiddlewaretoken"' in form


def test_the_page_and_the_answer_cost_a_fixed_number_of_queries(world, visit, django_assert_max_num_queries):
    submit(team=world.team, cluster=world.cluster, spec=two_racks(), purpose="x", actor=world.lead, at=NOW)
    page, fragment = visit("lead"), visit("lead", htmx=True)
    page.get("/reservations/new", ASK)  # fills the cache of the inventory
    with django_assert_max_num_queries(28):
        page.get("/reservations/new", ASK)
    with django_assert_max_num_queries(28):
        fragment.get("/reservations/new/answer", ASK)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["r22"], "r22"),
        (["r21", "r24"], "r21 and r24"),
        (["r9", "r10", "r11"], "r9 to r11"),
        (["r1", "r3", "r4"], "r1, r3 and r4"),
        ([f"r{n}" for n in range(1, 20, 2)], "r[1,3,5,7,9,11,13,15,17,19]"),
        ([], "no whole rack"),
    ],
)
def test_racks_are_named_as_people_name_them(names, said):
    assert racks_text(names) == said


def test_moments_in_a_sentence_of_the_planner_are_told_in_the_zone():
    from zoneinfo import ZoneInfo

    sentence = "Free from 2027-01-09 12:00 UTC."
    assert in_zone(sentence, ZoneInfo("Europe/Zurich")) == "Free from Sat 9 Jan 13:00."
