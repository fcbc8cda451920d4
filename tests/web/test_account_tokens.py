"""Can a person make a token in the browser, see its secret once, and end it?"""

import re
from collections.abc import Callable

import pytest
from django.template.loader import render_to_string
from django.test import Client, RequestFactory

from console import tokens as service
from console.models import ApiToken
from console.web import tokens
from tests.reservations.world import NOW, World

Visit = Callable[..., Client]
FORM = {"name": "laptop", "scopes": ["read", "request"], "days": "30"}


def section(world: World) -> str:
    request = RequestFactory().get("/account")
    return render_to_string("account_tokens.html", tokens.section(world.lead), request=request)


def test_a_secret_is_shown_once_and_works(world: World, visit: Visit) -> None:
    client = visit("lead")
    response = client.post("/account/tokens", FORM)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    found = re.search(r"berth_pat_\w+", response.content.decode())
    assert found is not None
    secret = found.group()
    shown = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()
    assert (shown["id"], shown["scopes"]) == (world.lead.public_id, ["read", "request"])
    assert secret not in section(world)
    assert f"berth_pat_{ApiToken.objects.get().prefix}_…" in section(world)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"days": "366"}, "365"),
        ({"days": "0"}, "1"),
        ({"scopes": ["fly"]}, "fly"),
        ({"scopes": ["sync"]}, "sync"),
        ({"scopes": []}, "required"),
        ({"name": ""}, "required"),
    ],
)
def test_a_wrong_form_makes_nothing_and_keeps_what_was_typed(
    world: World, visit: Visit, wrong: dict[str, object], said: str
) -> None:
    response = visit("lead").post("/account/tokens", {**FORM, **wrong})
    text = response.content.decode()
    assert response.status_code == 400
    assert said in text and 'class="error"' in text
    assert ("name" in wrong) or 'value="laptop"' in text
    assert not ApiToken.objects.exists()


def test_revoking_ends_ones_own_token_and_no_other(world: World, visit: Visit) -> None:
    mine, _ = service.create(owner=world.lead, name="mine", scopes=["read"], days=1, at=NOW)
    other, _ = service.create(owner=world.member, name="other", scopes=["read"], days=1, at=NOW)
    client = visit("lead")
    response = client.post(f"/account/tokens/{mine.prefix}/revoke")
    assert (response.status_code, response["Location"]) == (302, "/account")
    assert client.post(f"/account/tokens/{other.prefix}/revoke").status_code == 404
    mine.refresh_from_db()
    other.refresh_from_db()
    assert mine.revoked_at == NOW
    assert other.revoked_at is None
    assert mine.prefix not in section(world)


@pytest.mark.parametrize("path", ["/account/tokens", "/account/tokens/AAAAAAAA/revoke"])
def test_without_a_session_or_by_a_link_nothing_is_done(world: World, visit: Visit, path: str) -> None:
    assert Client().post(path, FORM)["Location"].startswith("/sign-in")
    assert visit("lead").get(path).status_code == 405
    assert not ApiToken.objects.exists()


def test_a_name_is_text_and_never_markup(world: World) -> None:
    service.create(owner=world.lead, name="<script>x</script>", scopes=["read"], days=1, at=NOW)
    assert "<script>" not in section(world)
