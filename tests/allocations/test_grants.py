"""Is a grant written whole, ended once, and heard by its cluster?"""

from datetime import timedelta
from decimal import Decimal

import pytest

from allocations import queries
from allocations.errors import Invalid, NotAllowed, WrongState
from allocations.models import Cluster, Event, Flavor
from allocations.services import fleet, grants, teams
from tests.allocations.fleets import AT, inventory, sol

pytestmark = pytest.mark.django_db


@pytest.fixture
def flavor():
    fleet.import_fleet(cluster=sol(), inventory=inventory(), actor=None, at=AT)
    return Flavor.objects.select_related("cluster").get(name="gb200-nvl12")


def give(team, flavor, days=30, **more):
    facts = {"start_at": AT, "end_at": AT + timedelta(days=days), "guaranteed_gpus": 12, "actor": None, "at": AT}
    return grants.grant(team=team, flavor=flavor, **{**facts, **more})


def test_a_grant_is_on_the_page_of_its_team_and_of_those_below(flavor):
    acme = teams.add_team(name="acme", actor=None, at=AT)
    vision = teams.add_team(name="vision", parent=acme, actor=None, at=AT)
    before = Cluster.objects.get(pk=flavor.cluster_id)
    made = give(acme, flavor, gpu_hours=10.5)
    after = Cluster.objects.get(pk=flavor.cluster_id)
    assert made.gpu_hours == Decimal("10.5")
    assert (after.desired_generation, after.snapshot_version) == (
        before.desired_generation + 1,
        before.snapshot_version + 1,
    )
    assert queries.team_page(acme, AT).allocations == (made,)
    assert queries.team_page(vision, AT).inherited == (made,)
    assert queries.team_page(vision, AT + timedelta(days=30)).inherited == ()


def test_a_revoked_grant_is_not_in_force_and_cannot_be_revoked_again(flavor):
    acme = teams.add_team(name="acme", actor=None, at=AT)
    made = give(acme, flavor)
    later = AT + timedelta(days=1)
    grants.revoke(allocation=made, actor=None, at=later, reason="moved on")
    assert queries.usable_allocations(acme, later) == []
    assert queries.usable_allocations(acme, AT) == [made]
    with pytest.raises(WrongState):
        grants.revoke(allocation=made, actor=None, at=later)
    assert Event.objects.get(verb="allocation.revoked").sentence == "moved on"


@pytest.mark.parametrize(
    "wrong",
    [{"end_at": AT}, {"guaranteed_gpus": -1}, {"borrowing_limit_gpus": -4}, {"start_at": AT.replace(tzinfo=None)}],
)
def test_a_grant_that_makes_no_sense_is_refused(flavor, wrong):
    with pytest.raises(Invalid):
        give(teams.add_team(name="acme", actor=None, at=AT), flavor, **wrong)


def test_a_lead_grants_nothing_to_their_own_team(flavor):
    team = teams.add_team(name="acme", actor=None, at=AT)
    lead = teams.add_person(email="l@x.example", name="Lea", actor=None, at=AT)
    teams.set_member(team=team, user=lead, role="lead", actor=None, at=AT)
    with pytest.raises(NotAllowed):
        give(team, flavor, actor=lead)


def test_a_tier_set_again_is_silent_and_a_changed_one_reaches_every_cluster(flavor):
    grants.set_tier(name="high", priority=9, preempts=["b", "a"], actor=None, at=AT)
    before, events = Cluster.objects.get(pk=flavor.cluster_id).desired_generation, Event.objects.count()
    grants.set_tier(name="high", priority=9, preempts=["a", "b"], actor=None, at=AT)
    assert Event.objects.count() == events
    grants.set_tier(name="high", priority=10, preempts=["a"], actor=None, at=AT)
    assert Cluster.objects.get(pk=flavor.cluster_id).desired_generation == before + 1
    with pytest.raises(Invalid):
        grants.set_tier(name="high", preempts=["high"], actor=None, at=AT)
