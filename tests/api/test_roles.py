"""Who gets what from every endpoint? Each role, each way of having no right, each scope that is missing."""

import inspect
import json
from collections.abc import Callable

import pytest
from django.http import HttpResponse
from django.urls import URLPattern

from allocations.models import Membership, RoleGrant, User
from console.api import urls
from reservations.models import Reservation
from tests.api.callers import Caller, caller, expired, problem, revoked
from tests.api.test_reservations import Of, wanted
from tests.reservations.asks import approved, ask
from tests.reservations.world import World, person

ROLES = ("member", "lead", "outsider", "approver", "operator", "auditor", "admin", "stranger")
Call = Callable[[Caller, World, Reservation], HttpResponse]

READS = (
    "me",
    "tokens",
    "clusters",
    "clusters/sol",
    "flavors",
    "flavors/sol/gb200",
    "racks",
    "racks/sol/r01",
    "nodes",
    "nodes/sol/sol0001",
    "reservations",
    "decisions",
)
# What each role gets for an endpoint about the reservation of acme/vision; a foreign lead is the "outsider".
ABOUT_ONE: dict[str, tuple[Call, str, dict[str, int]]] = {
    "read it": (
        lambda who, world, row: who.get(f"reservations/{row.public_id}"),
        "requested",
        dict.fromkeys(("member", "lead", "approver", "operator", "auditor", "admin"), 200),
    ),
    "read its nodes": (
        lambda who, world, row: who.get(f"reservations/{row.public_id}/nodes"),
        "requested",
        dict.fromkeys(("member", "lead", "approver", "operator", "auditor", "admin"), 200),
    ),
    "preview": (
        lambda who, world, row: who.post(
            "reservations/preview", {k: v for k, v in wanted(world).items() if k != "purpose"}, key=None
        ),
        "requested",
        # One cluster's operator may open its reservations, not every team's page.
        {"member": 200, "lead": 200, **dict.fromkeys(("approver", "auditor", "admin"), 403)},
    ),
    "ask": (
        lambda who, world, row: who.post("reservations", wanted(world)),
        "cancelled",
        {"lead": 201, **dict.fromkeys(("member", "approver", "auditor", "admin"), 403)},
    ),
    "withdraw": (
        lambda who, world, row: who.post(f"reservations/{row.public_id}/withdraw"),
        "requested",
        {"lead": 200, **dict.fromkeys(("member", "approver", "operator", "auditor", "admin"), 403)},
    ),
    "cancel": (
        lambda who, world, row: who.post(f"reservations/{row.public_id}/cancel"),
        "approved",
        {"lead": 200, "operator": 200, **dict.fromkeys(("member", "approver", "auditor", "admin"), 403)},
    ),
    "approve": (
        lambda who, world, row: who.post(
            "decisions", {"subject": row.public_id, "subject_version": row.version, "verdict": "approve"}
        ),
        "requested",
        {"approver": 201, **dict.fromkeys(("member", "lead", "operator", "auditor", "admin"), 403)},
    ),
    "reject": (
        lambda who, world, row: who.post(
            "decisions",
            {"subject": row.public_id, "subject_version": row.version, "verdict": "reject", "reason": "No."},
        ),
        "requested",
        {"approver": 201, **dict.fromkeys(("member", "lead", "operator", "auditor", "admin"), 403)},
    ),
}
WRITES = ("ask", "withdraw", "cancel", "approve", "reject")


def of_role(world: World, role: str) -> User:
    if role != "admin":
        return getattr(world, role)  # type: ignore[no-any-return]
    admin = person("admin")
    RoleGrant.objects.get_or_create(user=admin, role="admin")
    return admin


def standing_at(world: World, decision: str) -> Reservation:
    """A reservation of acme/vision in that decision, asked by a second lead, so that it is nobody's own here."""
    if decision == "requested":
        return ask(world, actor=world.second)
    row = approved(world, actor=world.second)
    if decision == "cancelled":
        caller(world.second).post(f"reservations/{row.public_id}/cancel")
    return row


@pytest.mark.parametrize("role", ROLES)
def test_everybody_reads_what_is_everybodys(world: World, role: str) -> None:
    who = caller(of_role(world, role))
    assert {path: who.get(path).status_code for path in READS} == dict.fromkeys(READS, 200)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("deed", ABOUT_ONE)
def test_each_role_gets_what_it_should(world: World, deed: str, role: str) -> None:
    call, decision, expected = ABOUT_ONE[deed]
    row = standing_at(world, decision)
    before = Reservation.objects.get(pk=row.pk).version
    response = call(caller(of_role(world, role)), world, row)
    status = expected.get(role, 404)
    assert response.status_code == status, response.content
    if status >= 400:
        problem(response, status, {403: "not_allowed", 404: "not_found"}[status])
        assert Reservation.objects.get(pk=row.pk).version == before
        assert Reservation.objects.count() == 1


@pytest.mark.parametrize("role", ROLES)
def test_lists_hold_what_a_role_may_open(world: World, role: str) -> None:
    row = approved(world)
    sees = ABOUT_ONE["read it"][2].get(role) == 200
    who = caller(of_role(world, role))
    assert [one["id"] for one in who.get("reservations").json()["items"]] == [row.public_id] * sees
    decisions = who.get("decisions").json()["items"]
    assert [one["subject"] for one in decisions] == [row.public_id] * sees
    detail = who.get(f"decisions/{row.approval_case.steps.get().decisions.get().public_id}")  # type: ignore[union-attr]
    assert detail.status_code == (200 if sees else 404)


@pytest.mark.parametrize("deed", ["preview", *WRITES])
def test_what_nobody_may_see_is_not_told_apart_from_what_is_not_there(world: World, deed: str) -> None:
    call, decision, _ = ABOUT_ONE[deed]
    row = standing_at(world, decision)
    there = json.loads(call(caller(world.stranger), world, row).content)
    Reservation.objects.filter(pk=row.pk)
    row.pk, world.team.pk = row.pk + 1000, world.team.pk + 1000
    missing = json.loads(call(caller(world.stranger), world, row).content)
    for told in (there, missing):
        told.pop("request_id")
    text = json.dumps(missing).replace(world.team.public_id, f"T-{world.team.pk - 1000}")
    assert json.loads(text) == there


def every_call(who: Caller, world: World, row: Reservation) -> dict[str, HttpResponse]:
    reads = {path: who.get(path) for path in READS}
    return reads | {deed: call(who, world, row) for deed, (call, _, _) in ABOUT_ONE.items()}


@pytest.mark.parametrize(
    ("of_lead", "code"),
    [
        (lambda lead: Caller(None), "not_signed_in"),
        (lambda lead: Caller("berth_pat_AAAAAAAA_x_y"), "not_signed_in"),
        (lambda lead: Caller("hello"), "not_signed_in"),
        (expired, "token_expired"),
        (revoked, "token_revoked"),
    ],
)
def test_without_a_living_token_nothing_is_answered(world: World, of_lead: Callable[[User], Caller], code: str) -> None:
    row = ask(world)
    for response in every_call(of_lead(world.lead), world, row).values():
        problem(response, 401, code)
        assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_person_who_left_calls_no_more(world: World, of: Of) -> None:
    lead = of("lead")
    User.objects.filter(pk=world.people["lead"].pk).update(is_active=False)
    problem(lead.get("me"), 401, "not_signed_in")


def test_a_browser_session_is_no_token(world: World) -> None:
    who = Caller(None)
    who.client.force_login(world.lead, backend="django.contrib.auth.backends.ModelBackend")
    problem(who.get("me"), 401, "not_signed_in")


def test_a_token_in_the_query_is_no_token(world: World, of: Of) -> None:
    secret = of("lead").secret
    problem(Caller(None).get(f"me?token={secret}"), 401, "not_signed_in")


@pytest.mark.parametrize("scope", ["read", "request", "approve", "sync", "operate"])
def test_a_scope_opens_what_it_names_and_nothing_else(world: World, scope: str) -> None:
    """A person with every role: whatever is refused is refused for the scope."""
    almighty = person("almighty")
    Membership.objects.create(team=world.team, user=almighty, role="lead")
    for role in ("approver", "operator", "admin"):
        RoleGrant.objects.create(user=almighty, role=role)
    needs = {**dict.fromkeys((*READS, "read it", "read its nodes", "preview"), "read")}
    needs |= {"ask": "request", "withdraw": "request", "cancel": "request", "approve": "approve", "reject": "approve"}
    row = ask(world)
    for name, response in every_call(caller(almighty, [scope]), world, row).items():
        if needs[name] == scope:
            assert response.status_code not in (401, 403), (name, response.content)
        else:
            problem(response, 403, "scope_missing")


def test_may_says_what_the_token_can_and_not_only_the_person(world: World) -> None:
    row = ask(world)
    shown = {
        (role, scope): caller(of_role(world, role), ["read", scope]).get(f"reservations/{row.public_id}").json()["may"]
        for role in ("member", "second", "approver")
        for scope in ("request", "approve")
    }
    assert {key: may for key, may in shown.items() if may} == {
        ("second", "request"): ["withdraw"],
        ("approver", "approve"): ["approve", "reject"],
    }


def test_a_right_that_ended_ends_for_every_token(world: World, of: Of) -> None:
    row, lead = ask(world), of("lead")
    assert lead.get(f"reservations/{row.public_id}").status_code == 200
    Membership.objects.filter(user=world.people["lead"]).delete()
    problem(lead.get(f"reservations/{row.public_id}"), 404, "not_found")
    problem(lead.post(f"reservations/{row.public_id}/withdraw"), 404, "not_found")


def test_nobody_decides_their_own_ask_not_even_by_token(world: World) -> None:
    Membership.objects.create(team=world.team, user=world.approver, role="lead")
    row = ask(world, actor=world.approver)
    who = caller(world.approver)
    content = {"subject": row.public_id, "subject_version": 1, "verdict": "approve"}
    problem(who.post("decisions", content), 403, "own_request")
    assert who.get(f"reservations/{row.public_id}").json()["may"] == ["withdraw"]


def test_every_address_of_the_api_is_walked_here() -> None:
    """A new endpoint comes with its rows in these tables."""
    walked = {
        "api-me", "api-tokens", "api-clusters", "api-cluster", "api-flavors", "api-flavor", "api-racks", "api-rack",
        "api-nodes", "api-node", "api-reservations", "api-reservation", "api-reservation-nodes", "api-preview",
        "api-withdraw", "api-cancel", "api-decisions", "api-decision",
    }  # fmt: skip
    elsewhere = {"api-token", "api-root", "api-nothing"}  # tests/api/test_tokens.py, tests/api/test_errors.py
    patterns = [each for each in urls.urlpatterns if isinstance(each, URLPattern)]
    assert {each.name for each in patterns} == walked | elsewhere
    assert all(getattr(inspect.unwrap(each.callback), "verb", None) or each.callback.verb for each in patterns)
