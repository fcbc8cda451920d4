"""Does a token say whose it is, and can it end?"""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from allocations.errors import Invalid
from allocations.models import Event
from console import tokens
from console.models import ApiToken
from tests.api.callers import Caller, caller, problem
from tests.api.test_reservations import Of
from tests.reservations.world import NOW, World


def prefix(who: Caller) -> str:
    assert who.secret is not None
    return who.secret.split("_")[2]


def test_me_says_roles_scopes_and_what_may_be_approved(world: World, of: Of) -> None:
    who = of("approver", ["read", "approve"])
    assert who.get("me").json() == {
        "id": world.approver.public_id,
        "name": "Approver",
        "email": "approver@example.org",
        "zone": "UTC",
        "teams": [],
        "roles": [{"role": "approver", "team": None, "cluster": None}],
        "scopes": ["approve", "read"],
        "may_approve": [{"team": None, "cluster": None}],
        "token": {"prefix": prefix(who), "name": "a test", "expires_at": "2027-04-04T09:00:00Z"},
        "limits": {"body_bytes": 1_000_000, "json_depth": 20, "list_items": 500},
    }
    assert of("approver", ["read"]).get("me").json()["may_approve"] == []
    shown = of("lead").get("me").json()
    assert shown["teams"] == [{"id": world.team.public_id, "path": "acme/vision", "role": "lead"}]
    shown = of("operator").get("me").json()
    assert shown["roles"] == [{"role": "operator", "team": None, "cluster": "sol"}]


def test_tokens_lists_ones_own_and_no_secret(world: World, of: Of) -> None:
    lead, other = of("lead"), of("approver")
    response = lead.get("tokens")
    assert [item["prefix"] for item in response.json()["items"]] == [prefix(lead)]
    assert lead.secret is not None and lead.secret not in response.content.decode()
    problem(lead.get(f"tokens/{prefix(other)}"), 404, "not_found")
    problem(lead.send("DELETE", f"tokens/{prefix(other)}"), 404, "not_found")
    assert other.get("me").status_code == 200


def test_a_revoked_token_is_over_at_once(world: World, of: Of) -> None:
    one, two = of("lead"), of("lead")
    response = one.send("DELETE", f"tokens/{prefix(two)}")
    assert (response.status_code, response.json()["revoked_at"]) == (200, "2027-01-04T09:00:00Z")
    problem(two.get("me"), 401, "token_revoked")
    assert one.send("DELETE", f"tokens/{prefix(two)}").json() == response.json()
    assert Event.objects.filter(verb="token.revoked").count() == 1


def test_a_reading_token_may_end_itself_and_no_other(world: World, of: Of) -> None:
    reading, other = of("lead", ["read"]), of("lead")
    problem(reading.send("DELETE", f"tokens/{prefix(other)}"), 403, "scope_missing")
    assert reading.send("DELETE", f"tokens/{prefix(reading)}").status_code == 200
    problem(reading.get("me"), 401, "token_revoked")


def test_a_token_ends_when_it_says(world: World, of: Of) -> None:
    lead = of("lead")
    with time_machine.travel(NOW + timedelta(days=90) - timedelta(seconds=1), tick=False):
        assert lead.get("me").status_code == 200
    with time_machine.travel(NOW + timedelta(days=90), tick=False):
        problem(lead.get("me"), 401, "token_expired")


def test_its_last_use_is_noted_once_a_minute(world: World, of: Of) -> None:
    lead = of("lead")
    for seconds in (0, 30, 61):
        with time_machine.travel(NOW + timedelta(seconds=seconds), tick=False):
            lead.get("me")
            noted = ApiToken.objects.get().last_used_at
            assert noted == NOW + timedelta(seconds=61 if seconds == 61 else 0)


@pytest.mark.parametrize(("scopes", "days"), [(["fly"], 90), (["read"], 0), (["read"], 366)])
def test_a_token_that_must_not_be_is_not_made(world: World, scopes: list[str], days: int) -> None:
    with pytest.raises(Invalid):
        tokens.create(owner=world.lead, name="x", scopes=scopes, days=days, at=timezone.now())
    assert not ApiToken.objects.exists()


def test_a_secret_is_stored_as_a_hash_and_found_by_scanners(world: World) -> None:
    secret = caller(world.lead).secret
    assert secret is not None
    row = ApiToken.objects.get()
    assert secret.startswith(f"berth_pat_{row.prefix}_")
    assert secret not in str(vars(row))
    for event in Event.objects.all():
        assert secret not in str(vars(event))
