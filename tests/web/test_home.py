"""Does the first page say what needs this person, what is coming, and what they have?"""

import pytest
import time_machine

from allocations.models import Allocation, Cluster
from console.models import ClusterEndpoint, ObservedObject
from reservations.services.approve import approve
from reservations.services.submit import submit
from tests.reservations.world import DAY, NOW, two_racks


@pytest.fixture
def asked(world):
    return submit(
        team=world.team, cluster=world.cluster, spec=two_racks(), purpose="Scaling run", actor=world.lead, at=NOW
    )


@pytest.mark.parametrize("who", ["lead", "member", "outsider", "approver", "operator", "auditor", "stranger"])
def test_everybody_has_a_first_page(visit, asked, who):
    assert visit(who).get("/").status_code == 200


def test_a_lead_sees_their_request_and_what_they_have(visit, asked, words):
    says = words(visit("lead").get("/"))
    assert "Good morning, Lead" in says and "Nothing needs you; 0 reservations of your teams run or come up." in says
    assert f"{asked.public_id} Scaling run" in says and "waits for approval" in says
    assert "gb200 on sol 144 GPUs, no guarantee" in says
    assert "10,368 of 1,000,000" in says and "989,632 left on gb200 on sol" in says


def test_an_active_reservation_says_what_is_left(world, visit, asked, words):
    approve(reservation=asked, actor=world.approver, at=NOW)
    with time_machine.travel(NOW + DAY, tick=False):
        says = words(visit("member").get("/"))
    assert "now, 2 d left" in says and "active" in says


def test_an_approver_sees_what_waits_for_them_and_until_when(visit, asked, words):
    says = words(visit("approver").get("/"))
    assert "1 thing needs you." in says
    assert "Lead asks 2 racks of sol for acme/vision. 1 d left" in says and "Decide" in says


def test_drift_of_ones_own_reservation_needs_a_look(world, visit, asked, words):
    done = approve(reservation=asked, actor=world.approver, at=NOW)
    ClusterEndpoint.objects.create(cluster=world.cluster, driver="files", state="verified", verified_at=NOW)
    Cluster.objects.update(applied_generation=done.wanted_generation)
    ObservedObject.objects.create(
        cluster=world.cluster,
        object_class="Reservation",
        name=done.name_on_cluster,
        state="missing",
        observed_at=NOW,
        since_at=NOW,
    )
    says = words(visit("lead").get("/"))
    assert "1 thing needs you" in says and "drift, 1 object" in says and "missing" in says


def test_a_team_without_an_allocation_is_told_so(world, visit, words):
    Allocation.objects.filter(team=world.team).delete()
    says = words(visit("lead").get("/"))
    assert "acme/vision has no allocation yet, so it can look but not reserve." in says


def test_an_empty_page_says_the_next_deed(visit, words):
    says = words(visit("lead").get("/"))
    assert "Nothing waits for you." in says and "Your team has no reservation. Reserve" in says


def test_an_operator_sees_how_the_clusters_stand(world, visit, words):
    ClusterEndpoint.objects.create(
        cluster=world.cluster, driver="files", state="unreachable", sentence="sol has not answered since 08:52."
    )
    says = words(visit("operator").get("/"))
    assert "sol has not answered since 08:52." in says and "unreachable" in says


def test_the_first_page_costs_a_fixed_number_of_queries(world, visit, asked, django_assert_max_num_queries):
    client = visit("lead")
    with django_assert_max_num_queries(22):
        client.get("/")
