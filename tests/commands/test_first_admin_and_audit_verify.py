"""Do the one-time link and the audit tell the truth?"""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.utils import timezone

from allocations.models import Invitation
from allocations.permissions import can
from allocations.services import invitations, teams


@pytest.mark.django_db
def test_first_admin_prints_a_link_that_makes_an_admin(settings, capsys):
    settings.BERTH_BASE_URL = "https://berth.example/"
    call_command("first_admin", "boss@x.example")
    link = capsys.readouterr().out.strip()
    assert link.startswith("https://berth.example/join/")
    token = link.rpartition("/")[2]
    person = invitations.accept_invitation(
        token=token, name="Boss", password="a long enough sentence", at=timezone.now()
    )
    assert can(person, "admin.grant_roles")


@pytest.mark.django_db
def test_first_admin_refuses_what_is_no_address():
    with pytest.raises(CommandError, match="not an e-mail address"):
        call_command("first_admin", "nobody")
    assert not Invitation.objects.exists()


@pytest.mark.django_db
def test_invite_lets_somebody_known_choose_a_first_password_and_gives_no_role(capsys):
    teams.add_person(email="ada@x.example", name="Ada", actor=None, at=timezone.now())
    call_command("invite", "ada@x.example")
    token = capsys.readouterr().out.strip().rpartition("/")[2]
    person = invitations.accept_invitation(
        token=token, name="Ada", password="a long enough sentence", at=timezone.now()
    )
    assert person.check_password("a long enough sentence")
    assert not person.role_grants.exists()


@pytest.mark.django_db
def test_invite_refuses_who_is_not_known_here():
    with pytest.raises(CommandError, match="Nobody here has the address"):
        call_command("invite", "stranger@x.example")
    assert not Invitation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_audit_verify_seals_holds_and_then_finds_what_was_changed(capsys):
    teams.add_team(name="acme", actor=None, at=timezone.now())
    call_command("audit_verify")
    assert "0 seals over 0 events hold; 1 more sealed" in capsys.readouterr().out
    call_command("audit_verify")
    assert "1 seals over 1 events hold; 0 more sealed" in capsys.readouterr().out
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE allocations_event SET sentence = 'nothing'")
    with pytest.raises(SystemExit) as ended:
        call_command("audit_verify")
    assert ended.value.code == 1
    assert "was changed" in capsys.readouterr().err
