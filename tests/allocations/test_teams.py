"""Do names, memberships, roles and invitations keep their laws?"""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from allocations.errors import Invalid, NotAllowed, NotFound, WrongState
from allocations.models import Event, Invitation, Membership, RoleGrant, Team
from allocations.permissions import can
from allocations.services import invitations, teams
from tests.allocations.fleets import AT, sol

pytestmark = pytest.mark.django_db
WORD = "a long enough sentence"


def person(name: str):
    return teams.add_person(email=f"{name}@x.example", name=name, actor=None, at=AT)


def test_a_team_gets_its_path_a_plain_account_and_one_event():
    acme = teams.add_team(name="acme", actor=None, at=AT)
    vision = teams.add_team(name="Visión & co".replace("& ", ""), parent=acme, actor=None, at=AT)
    assert (vision.path, vision.account) == ("acme/Visión co", "acme-vision-co")
    assert Event.objects.filter(verb="team.added").count() == 2


def test_two_paths_that_would_share_an_account_get_different_ones():
    first = teams.add_team(name="a-b", actor=None, at=AT)
    other = teams.add_team(name="b", parent=teams.add_team(name="a", actor=None, at=AT), actor=None, at=AT)
    assert (first.account, other.account) == ("a-b", "a-b-2")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00b", "<b>x</b>", "a/b", "x" * 64, "..", "\u202eabc", "---"])
def test_a_name_with_markup_control_characters_or_no_end_is_refused(name):
    with pytest.raises(Invalid):
        teams.add_team(name=name, actor=None, at=AT)
    assert not Team.objects.exists()


def test_siblings_may_not_share_a_name_whatever_its_case():
    teams.add_team(name="acme", actor=None, at=AT)
    with pytest.raises(WrongState) as refused:
        teams.add_team(name="Acme", actor=None, at=AT)
    assert refused.value.code == "name_taken"


def test_new_shares_reach_every_cluster_and_the_same_again_is_silent():
    cluster = sol()
    team = teams.add_team(name="acme", actor=None, at=AT)
    cluster.refresh_from_db()
    before, events = cluster.desired_generation, Event.objects.count()
    changed = teams.change_team(team=team, shares=7, actor=None, at=AT)
    teams.change_team(team=team, shares=7, actor=None, at=AT)
    cluster.refresh_from_db()
    assert (changed.shares, changed.version) == (7, 2)
    assert (cluster.desired_generation, Event.objects.count()) == (before + 1, events + 1)
    with pytest.raises(WrongState) as refused:
        teams.change_team(team=team, title="x", version=1, actor=None, at=AT)
    assert refused.value.code == "version_changed"


def test_a_lead_manages_the_subtree_and_nothing_beside_it():
    acme = teams.add_team(name="acme", actor=None, at=AT)
    vision, speech = (teams.add_team(name=name, parent=acme, actor=None, at=AT) for name in ("vision", "speech"))
    lead, member = person("lea"), person("mio")
    teams.set_member(team=vision, user=lead, role="lead", actor=None, at=AT)
    below = teams.add_team(name="track", parent=vision, actor=lead, at=AT)
    teams.set_member(team=below, user=member, actor=lead, at=AT)
    for deed in (
        lambda: teams.set_member(team=speech, user=member, actor=lead, at=AT),
        lambda: teams.add_team(name="x", parent=acme, actor=lead, at=AT),
        lambda: teams.change_team(team=vision, shares=99, actor=lead, at=AT),
        lambda: teams.add_team(name="y", parent=vision, actor=member, at=AT),
    ):
        with pytest.raises(NotAllowed):
            deed()


def test_a_member_who_becomes_lead_has_one_membership_in_force():
    team, user = teams.add_team(name="acme", actor=None, at=AT), person("mia")
    teams.set_member(team=team, user=user, actor=None, at=AT)
    assert not can(user, "team.manage", team)
    teams.set_member(team=team, user=user, role="lead", actor=None, at=AT)
    assert can(user, "team.manage", team)
    assert Membership.objects.filter(ended_at=None).count() == 1
    teams.end_member(membership=Membership.objects.get(ended_at=None), actor=None, at=AT)
    assert not Membership.objects.filter(ended_at=None).exists()


def test_the_last_admin_cannot_be_removed():
    first, second = person("ada"), person("bea")
    one = teams.grant_role(user=first, role="admin", actor=None, at=AT)
    two = teams.grant_role(user=second, role="admin", actor=first, at=AT)
    teams.end_role(grant=one, actor=second, at=AT)
    with pytest.raises(WrongState) as refused:
        teams.end_role(grant=two, actor=second, at=AT)
    assert refused.value.code == "last_admin"
    assert RoleGrant.objects.get(pk=two.pk).ended_at is None


def test_a_role_is_granted_once_and_only_by_an_admin():
    user = person("ada")
    first = teams.grant_role(user=user, role="approver", actor=None, at=AT)
    assert teams.grant_role(user=user, role="approver", actor=None, at=AT) == first
    with pytest.raises(NotAllowed):
        teams.grant_role(user=user, role="admin", actor=user, at=AT)


def test_the_database_holds_no_role_twice_but_bears_one_that_ended():
    user, acme = person("ada"), teams.add_team(name="acme", actor=None, at=AT)
    for team in (None, acme):
        held = RoleGrant.objects.create(user=user, role="approver", team=team)
        with pytest.raises(IntegrityError, match="role_is_held_once"), transaction.atomic():
            RoleGrant.objects.create(user=user, role="approver", team=team)
        RoleGrant.objects.filter(pk=held.pk).update(ended_at=AT)
        RoleGrant.objects.create(user=user, role="approver", team=team)


def test_a_first_admin_comes_in_by_a_link_once_within_a_day():
    _, token = invitations.create_invitation(email="Boss@x.example", role="admin", actor=None, at=AT)
    assert token not in str(Invitation.objects.values().get())
    with pytest.raises(NotFound):
        invitations.open_invitation(token=token, at=AT + timedelta(hours=24))
    user = invitations.accept_invitation(token=token, name="Boss", password=WORD, at=AT + timedelta(hours=1))
    assert user.check_password(WORD) and can(user, "admin.grant_roles")
    with pytest.raises(NotFound):
        invitations.accept_invitation(token=token, name="Boss", password=WORD, at=AT + timedelta(hours=2))


def test_a_newer_link_ends_the_older_one():
    _, old = invitations.create_invitation(email="a@x.example", role="admin", actor=None, at=AT)
    _, new = invitations.create_invitation(email="a@x.example", role="admin", actor=None, at=AT)
    with pytest.raises(NotFound):
        invitations.open_invitation(token=old, at=AT)
    assert invitations.open_invitation(token=new, at=AT)


def test_a_link_does_not_let_anybody_in_as_a_person_who_has_a_password():
    team = teams.add_team(name="acme", actor=None, at=AT)
    victim = teams.add_person(email="v@x.example", name="Vic", password=WORD, actor=None, at=AT)
    _, token = invitations.create_invitation(email="v@x.example", team=team, actor=None, at=AT)
    with pytest.raises(Invalid):
        invitations.accept_invitation(token=token, name="Me", password="another long sentence", at=AT)
    assert invitations.accept_invitation(token=token, name="Me", password=WORD, at=AT) == victim
    assert Membership.objects.get().user == victim


def test_a_weak_password_is_refused_and_the_link_still_works():
    _, token = invitations.create_invitation(email="a@x.example", role="admin", actor=None, at=AT)
    with pytest.raises(Invalid):
        invitations.accept_invitation(token=token, name="Ada", password="password1234", at=AT)
    assert invitations.open_invitation(token=token, at=AT)
