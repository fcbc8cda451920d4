"""Can a person come in, stay themselves, and leave nothing behind? (the pages around the session)"""

from datetime import timedelta

import pytest
from django.test import Client

from allocations.models import User
from allocations.services.invitations import create_invitation
from tests.reservations.world import NOW

PASSWORD = "a long enough secret"


@pytest.fixture
def known(world) -> User:
    person = world.lead
    person.set_password(PASSWORD)
    person.save()
    return person


def sign_in(client: Client, password: str = PASSWORD, **more):
    return client.post("/sign-in", {"username": "lead@example.org", "password": password, **more})


def test_a_page_asks_to_sign_in_and_comes_back(known):
    client = Client()
    response = client.get("/reservations?whose=all")
    assert response.url == "/sign-in?next=/reservations%3Fwhose%3Dall"
    assert 'name="next" value="/reservations?whose=all"' in client.get(response.url).content.decode()
    assert sign_in(client, next="/reservations?whose=all").url == "/reservations?whose=all"


def test_a_wrong_pair_keeps_the_address_and_says_so(known, words):
    response = sign_in(Client(), "not this one")
    assert "That e-mail and password do not belong together." in words(response)
    assert 'value="lead@example.org"' in response.content.decode()


def test_nobody_is_sent_to_a_foreign_site(known):
    assert sign_in(Client(), next="https://example.org/").url == "/"


def test_too_many_tries_rest_for_a_while(known, words):
    client = Client()
    for _ in range(8):
        response = sign_in(client, "not this one")
    assert response.status_code == 429 and "Too many tries" in words(response)
    assert sign_in(client).status_code == 429


def test_password_fields_can_be_pasted_into_and_filled(known):
    page = Client().get("/sign-in").content.decode()
    assert 'autocomplete="username"' in page and 'autocomplete="current-password"' in page


def test_signing_out_clears_the_browser(visit):
    client = visit("lead")
    response = client.post("/sign-out")
    assert response["Clear-Site-Data"] == '"cache", "storage"'
    assert client.get("/").status_code == 302


def test_an_invitation_makes_a_person_once(world, words):
    _, token = create_invitation(email="new@example.org", team=world.team, actor=world.lead, at=NOW)
    client = Client()
    assert "new@example.org is invited into acme/vision as member." in words(client.get(f"/join/{token}"))
    response = client.post(f"/join/{token}", {"name": "Nia", "password": PASSWORD})
    assert response.url == "/" and client.get("/").status_code == 200
    again = Client().get(f"/join/{token}")
    assert again.status_code == 404 and "Ask for a new one." in words(again)


def test_a_short_password_is_said_beside_its_field(world):
    _, token = create_invitation(email="new@example.org", team=world.team, actor=world.lead, at=NOW)
    page = Client().post(f"/join/{token}", {"name": "Nia", "password": "short"}).content.decode()
    assert "at least 12 characters" in page and 'value="Nia"' in page
    assert not User.objects.filter(email="new@example.org").exists()


def test_the_account_page_changes_the_password_and_ends_other_sessions(known):
    here, there = Client(), Client()
    sign_in(here)
    sign_in(there)
    new = "another long secret"
    fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post("/account", fields).status_code == 302
    assert here.get("/account").status_code == 200
    assert there.get("/account").status_code == 302


def test_a_wrong_old_password_changes_nothing(known, words):
    client = Client()
    sign_in(client)
    new = "another long secret"
    response = client.post("/account", {"old_password": "wrong", "new_password1": new, "new_password2": new})
    assert response.status_code == 200 and "old password" in words(response).lower()
    assert User.objects.get(pk=known.pk).check_password(PASSWORD)


def test_an_idle_session_is_over(visit, settings):
    import time_machine

    client = visit("lead")
    assert client.get("/").status_code == 200
    with time_machine.travel(NOW + timedelta(hours=1, minutes=1), tick=False):
        assert client.get("/").status_code == 302
