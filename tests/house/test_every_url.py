"""Does every address answer every role as it should, inside and outside its scope? (one table)

A new address needs a row. Invisible is 404, not allowed is 403; whoever is not signed in is sent to sign in (302) by
pages and told so (401) by the API.
"""

import json
import re
import uuid
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
import time_machine
from django.db import InternalError, connection, transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from allocations.models import Cluster, Membership, RoleGrant, User
from allocations.permissions import VERBS
from allocations.services import invitations
from console import tokens
from console.models import ApiToken, ClusterEndpoint, PushPlan
from reservations.models import Reservation
from tests.reservations.asks import approved, ask
from tests.reservations.world import NOW, World, make_world, person

# The lead leads acme/vision, to which everything below belongs; `outside` leads acme/speech. `approver` decides for
# acme/vision, `apart` for acme/speech. `operator` runs sol, where everything lies; `elsewhere` runs luna.
# {R} waits for a yes, {A} is approved and still to come, {P} is a plan that waits for a yes, {T} is acme/vision.
PAGES = """
                                   nobody member lead outside approver apart operator elsewhere auditor admin inactive
GET  /                                302    200  200     200      200   200      200       200     200   200      302
GET  /board                           302    200  200     200      200   200      200       200     200   200      302
GET  /inbox                           302    403  200     200      200   200      200       200     403   403      302
GET  /reservations                    302    200  200     200      200   200      200       200     200   200      302
GET  /reservations/new                302    200  200     200      403   403      403       403     403   403      302
POST /reservations/new                302    403  302     400      403   403      403       403     403   403      302
GET  /reservations/new/answer         302    200  200     200      200   200      200       200     200   200      302
GET  /reservations/{R}                302    200  200     404      200   404      200       404     200   200      302
GET  /reservations/{R}/state          302    200  200     404      200   404      200       404     200   200      302
POST /reservations/{R}/decide         302    403  403     404      302   404      403       404     403   403      302
POST /reservations/{R}/withdraw       302    403  302     404      403   404      403       404     403   403      302
POST /reservations/{A}/cancel         302    403  302     404      403   404      302       404     403   403      302
GET  /teams                           302    200  200     200      200   200      200       200     200   200      302
GET  /teams/{T}                       302    200  200     404      200   404      404       404     200   200      302
GET  /fleet                           302    200  200     200      200   200      200       200     200   200      302
GET  /fleet/sol                       302    200  200     200      200   200      200       200     200   200      302
GET  /fleet/sol/r01                   302    200  200     200      200   200      200       200     200   200      302
GET  /clusters                        302    200  200     200      200   200      200       200     200   200      302
GET  /clusters/sol                    302    200  200     200      200   200      200       200     200   200      302
POST /clusters/sol/mode               302    403  403     403      403   403      302       403     403   403      302
POST /clusters/sol/freeze             302    403  403     403      403   403      302       403     403   403      302
POST /clusters/sol/push               302    403  403     403      403   403      302       403     403   403      302
GET  /plans/{P}                       302    404  404     404      404   404      200       404     200   200      302
POST /plans/{P}/apply                 302    404  404     404      404   404      302       404     403   403      302
POST /plans/{P}/discard               302    404  404     404      404   404      302       404     403   403      302
GET  /audit                           302    403  403     403      403   403      403       403     200   200      302
GET  /find                            302    200  200     200      200   200      200       200     200   200      302
GET  /help                            200    200  200     200      200   200      200       200     200   200      200
GET  /help/errors/not_found           200    200  200     200      200   200      200       200     200   200      200
GET  /sign-in                         200    302  302     302      302   302      302       302     302   302      200
POST /sign-in                         200    302  302     302      302   302      302       302     302   302      200
POST /sign-out                        302    302  302     302      302   302      302       302     302   302      302
GET  /join/{J}                        200    200  200     200      200   200      200       200     200   200      200
POST /join/{J}                        302    302  302     302      302   302      302       302     302   302      302
GET  /account                         302    200  200     200      200   200      200       200     200   200      302
POST /account                         302    200  200     200      200   200      200       200     200   200      302
POST /account/zone                    302    302  302     302      302   302      302       302     302   302      302
POST /account/sessions/none/end       302    404  404     404      404   404      404       404     404   404      302
POST /account/tokens                  302    200  200     200      200   200      200       200     200   200      302
POST /account/tokens/{K}/revoke       302    404  302     404      404   404      404       404     404   404      302
GET  /ui/                             302    200  200     200      200   200      200       200     200   200      302
GET  /healthz/live                    200    200  200     200      200   200      200       200     200   200      200
GET  /healthz/ready                   200    200  200     200      200   200      200       200     200   200      200
"""
API = """
                                   nobody member lead outside approver apart operator elsewhere auditor admin inactive
GET  /api/v1/me                       401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/tokens                   401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/tokens/{K}               401    404  200     404      404   404      404       404     404   404      401
DEL  /api/v1/tokens/{K}               401    404  200     404      404   404      404       404     404   404      401
GET  /api/v1/clusters                 401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/clusters/sol             401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/flavors                  401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/flavors/sol/gb200        401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/racks                    401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/racks/sol/r01            401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/nodes                    401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/nodes/sol/sol0001        401    200  200     200      200   200      200       200     200   200      401
GET  /api/v1/reservations             401    200  200     200      200   200      200       200     200   200      401
POST /api/v1/reservations             401    403  201     404      403   404      404       404     403   403      401
POST /api/v1/reservations/preview     401    200  200     404      403   404      404       404     403   403      401
GET  /api/v1/reservations/{R}         401    200  200     404      200   404      200       404     200   200      401
GET  /api/v1/reservations/{R}/nodes   401    200  200     404      200   404      200       404     200   200      401
POST /api/v1/reservations/{R}/withdraw 401   403  200     404      403   404      403       404     403   403      401
POST /api/v1/reservations/{A}/cancel  401    403  200     404      403   404      200       404     403   403      401
GET  /api/v1/decisions                401    200  200     200      200   200      200       200     200   200      401
POST /api/v1/decisions                401    403  403     404      201   404      403       404     403   403      401
GET  /api/v1/decisions/{D}            401    200  200     404      200   404      200       404     200   200      401
GET  /api/v1/                         404    404  404     404      404   404      404       404     404   404      404
GET  /api/v1/nothing/here             404    404  404     404      404   404      404       404     404   404      404
"""
METHODS = {"GET": "GET", "POST": "POST", "DEL": "DELETE"}
PASSWORD = "a long enough sentence"
SPEC = {"flavor": "gb200", "racks": 1, "duration_minutes": 60}


@dataclass(frozen=True)
class Row:
    """One line of a table: a method and an address, and the status that each role gets."""

    method: str
    address: str
    expected: dict[str, int] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.method} {self.address}"


def table(text: str) -> list[Row]:
    lines = [line.split() for line in text.strip().splitlines()]
    roles = lines[0]
    assert all(len(line) == len(roles) + 2 for line in lines[1:]), "a row has a status too few or too many"
    return [Row(METHODS[line[0]], line[1], dict(zip(roles, map(int, line[2:]), strict=True))) for line in lines[1:]]


ROWS = table(PAGES) + table(API)
ROLES = list(ROWS[0].expected)


@dataclass
class House:
    """The world of the table: everybody with a session and a token, and the ids of what the addresses name."""

    world: World
    ids: dict[str, str]
    clients: dict[str, Client]
    secrets: dict[str, str]

    def answer(self, row: Row, role: str, **headers: str) -> HttpResponse:
        """What this role gets; whatever it did is undone, and a GET could not have written."""
        path = row.address.format(**self.ids)
        sent: dict[str, Any] = {"headers": {"Idempotency-Key": uuid.uuid4().hex, **headers}}
        client = Client()
        if path.startswith("/api/"):
            if role in self.secrets:
                sent["headers"]["Authorization"] = f"Bearer {self.secrets[role]}"
            sent |= {"data": json.dumps(self._body(row)), "content_type": "application/json"}
        else:
            client.cookies = deepcopy(self.clients[role].cookies)  # else who signs out would stay out
            sent |= {"data": self._form(row)} if row.method == "POST" else {}
        with undone(is_read_only=row.method in ("GET", "HEAD")):
            if row.method in ("GET", "HEAD"):
                sent.pop("data", None)
                sent.pop("content_type", None)
            return getattr(client, row.method.lower())(path, **sent)

    def _body(self, row: Row) -> dict[str, Any]:
        asked = {"team": self.ids["T"], "cluster": "sol", "spec": SPEC}
        return {
            "POST /api/v1/reservations": {**asked, "purpose": "One more"},
            "POST /api/v1/reservations/preview": asked,
            "POST /api/v1/decisions": {"subject": self.ids["R"], "subject_version": 1, "verdict": "approve"},
        }.get(str(row), {})

    def _form(self, row: Row) -> dict[str, str]:
        ask_for = {"team": "acme/vision", "cluster": "sol", "flavor": "gb200", "racks": "1", "duration": "1 hour"}
        return {
            "/reservations/new": {**ask_for, "purpose": "One more"},
            "/reservations/{R}/decide": {"verdict": "approve", "version": "1"},
            "/clusters/sol/mode": {"object_class": "*", "mode": "propose"},
            "/clusters/sol/freeze": {"reason": "Maintenance"},
            "/join/{J}": {"name": "New", "password": PASSWORD},
            "/account/zone": {"zone": "Europe/Zurich"},
            "/account/tokens": {"name": "a script", "scopes": "read", "days": "9"},
            "/account": {"old_password": "not it", "new_password1": PASSWORD, "new_password2": PASSWORD},
        }.get(row.address, {})


class undone(transaction.Atomic):
    """A savepoint that is always rolled back; read-only where nothing may be written."""

    def __init__(self, *, is_read_only: bool) -> None:
        super().__init__(using=None, savepoint=True, durable=False)
        self.is_read_only = is_read_only

    def __enter__(self) -> None:
        super().__enter__()
        if self.is_read_only:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL transaction_read_only = on")

    def __exit__(self, *fault: Any) -> None:
        transaction.set_rollback(True)
        super().__exit__(*fault)


@pytest.fixture
def house(db: None, settings: Any) -> Iterator[House]:
    settings.WHITENOISE_AUTOREFRESH = True
    with time_machine.travel(NOW, tick=False):
        world = make_world()
        yield House(world, *_things(world))


def _things(world: World) -> tuple[dict[str, str], dict[str, Client], dict[str, str]]:
    people = _people(world)
    clients = {role: Client() for role in ROLES}
    secrets = {}
    for role, user in people.items():
        clients[role].force_login(user, "django.contrib.auth.backends.ModelBackend")
        session = clients[role].session
        session["seen"] = int(NOW.timestamp())  # else the first request of a session notes when it was
        session.save()
        secrets[role] = tokens.create(owner=user, name=role, scopes=["read", "request", "approve"], days=30, at=NOW)[1]
    ApiToken.objects.update(last_used_at=NOW)  # else the first use would be noted
    User.objects.filter(pk=people["inactive"].pk).update(is_active=False)
    return _ids(world, people["lead"]), clients, secrets


def _people(world: World) -> dict[str, User]:
    """Everybody of the table; `inactive` would be a lead and an admin."""
    luna = Cluster.objects.create(name="luna", kind="kueue", inventory_mark="luna")
    people = {role: person(f"{role}-here") for role in ROLES if role != "nobody"}
    for role, team, held in (
        ("member", world.team, "member"),
        ("lead", world.team, "lead"),
        ("outside", world.other_team, "lead"),
        ("inactive", world.team, "lead"),
    ):
        Membership.objects.create(team=team, user=people[role], role=held)
    for role, held, scope in (
        ("approver", "approver", {"team": world.team}),
        ("apart", "approver", {"team": world.other_team}),
        ("operator", "operator", {"cluster": world.cluster}),
        ("elsewhere", "operator", {"cluster": luna}),
        ("auditor", "auditor", {}),
        ("admin", "admin", {}),
        ("inactive", "admin", {}),
    ):
        RoleGrant.objects.create(user=people[role], role=held, **scope)
    return people


def _ids(world: World, lead: User) -> dict[str, str]:
    waiting = ask(world, actor=lead)
    coming = approved(world, actor=lead)
    assert (waiting.version, coming.decision) == (1, Reservation.Decision.APPROVED)
    ClusterEndpoint.objects.create(cluster=world.cluster, driver="files", modes={"*": "enforce"}, state="waiting")
    plan = PushPlan.objects.create(cluster=world.cluster, generation=1, state="waiting", created_at=NOW)
    case = coming.approval_case
    assert case is not None
    decision = case.steps.get().decisions.get()
    _, token = invitations.create_invitation(
        email="new@example.org", team=world.team, role="member", actor=None, at=NOW
    )
    return {
        "R": waiting.public_id,
        "A": coming.public_id,
        "P": plan.public_id,
        "T": world.team.public_id,
        "D": decision.public_id,
        "J": token,
        "K": ApiToken.objects.get(owner=lead).prefix,
    }


def patterns() -> list[URLPattern]:
    """Every pattern that console.urls knows, however deep."""

    def below(entries: Any) -> Iterator[URLPattern]:
        for entry in entries:
            if isinstance(entry, URLResolver):
                yield from below(entry.url_patterns)
            else:
                yield entry

    return list(below(get_resolver().url_patterns))


@pytest.mark.parametrize("rows", [table(PAGES), table(API)], ids=["pages", "API"])
def test_every_role_gets_what_the_table_says(house: House, rows: list[Row]) -> None:
    wrong = {}
    for row in rows:
        got = {role: house.answer(row, role).status_code for role in row.expected}
        if got != row.expected:
            wrong[str(row)] = {
                role: f"{got[role]}, not {row.expected[role]}" for role in got if got[role] != row.expected[role]
            }
    assert wrong == {}, wrong


def test_what_a_read_may_do_is_held_by_the_database(house: House) -> None:
    """Else the table would say nothing about a GET that writes."""
    with pytest.raises(InternalError, match="read-only"), undone(is_read_only=True):
        Cluster.objects.update(zone="Europe/Zurich")


def test_every_address_has_a_row() -> None:
    """A pattern that no row reaches fails here: write down who may open it."""
    ids = {"R": "R-1", "A": "R-1", "P": "P-1", "T": "T-1", "D": "D-1", "J": "token", "K": "prefix"}
    reached = {resolve(row.address.format(**ids)).url_name for row in ROWS}
    assert {pattern.name for pattern in patterns()} - reached == set()


def test_every_view_has_a_known_verb() -> None:
    """`page(verb)` sets it on pages; endpoints carry it, with a scope for each of their methods."""
    for pattern in patterns():
        assert getattr(pattern.callback, "verb", None) in {*VERBS, "open"}, pattern
        endpoint = getattr(pattern.callback, "cls", None)
        if endpoint is None:
            continue
        methods = {name.upper() for name in endpoint.http_method_names if hasattr(endpoint, name)} - {"HEAD"}
        assert methods == set(endpoint.scopes), f"{pattern}: a method without a scope, or a scope without a method"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_a_method_without_a_row_is_refused_with_a_sentence(house: House, method: str) -> None:
    for role in ("admin", "auditor", "operator", "approver"):  # somebody who may do everything that there is
        RoleGrant.objects.create(user=User.objects.get(email="lead-here@example.org"), role=role)
    known = {(row.method, resolve(row.address.format(**house.ids)).url_name) for row in ROWS}
    for row in ROWS:
        name = resolve(row.address.format(**house.ids)).url_name
        if (method, name) in known or name in ("api-root", "api-nothing"):
            continue
        response = house.answer(Row(method, row.address, {}), "lead")
        assert response.status_code == 405, f"{method} {row.address} answers {response.status_code}"
        assert response["Allow"], f"{method} {row.address} does not say what is allowed"
        assert b"is not for this address" in response.content, f"{method} {row.address} has no sentence"


def test_head_is_answered_wherever_get_is(house: House) -> None:
    for row in ROWS:
        if row.method == "GET":
            response = house.answer(Row("HEAD", row.address, {}), "lead")
            assert (response.status_code, response.content) == (row.expected["lead"], b""), f"HEAD {row.address}"


def test_a_refusal_of_a_page_says_why_and_one_of_the_api_is_a_problem(house: House) -> None:
    for row in ROWS:
        for role, status in row.expected.items():
            if status < 400 or row.method != "GET" or role not in ("nobody", "member", "outside", "apart"):
                continue
            response = house.answer(row, role)
            if row.address.startswith("/api/"):
                assert response["Content-Type"] == "application/problem+json", f"{row} {role}"
                assert json.loads(response.content)["sentence"]
            else:
                sentence = b"that you may see" if status == 404 else b"needs the"
                assert sentence in response.content or b"invite you" in response.content, f"{row} {role}"


def test_the_way_to_sign_in_leads_back(house: House) -> None:
    response = house.answer(Row("GET", "/reservations/{R}", {}), "nobody")
    assert response["Location"] == f"/sign-in?next=/reservations/{house.ids['R']}"


def test_no_page_tells_a_stranger_from_nothing(house: House) -> None:
    """What is invisible and what does not exist are the same page, but for the id in the address."""
    for address, id_of in (("/reservations/{}", "R"), ("/teams/{}", "T"), ("/plans/{}", "P")):
        real, none = house.ids[id_of], f"{house.ids[id_of][:2]}999999"
        hidden = house.clients["outside"].get(address.format(real))
        absent = house.clients["outside"].get(address.format(none))
        assert (hidden.status_code, absent.status_code) == (404, 404)
        pages = [
            re.sub(r'"[A-Za-z0-9]{64}"', "token", response.content.decode().replace(id_in, "X"))
            for response, id_in in ((hidden, real), (absent, none))
        ]
        assert pages[0] == pages[1]


def test_nobody_decides_their_own_request_even_with_the_role(house: House) -> None:
    lead = User.objects.get(email="lead-here@example.org")
    RoleGrant.objects.create(user=lead, role="approver")
    page = house.answer(Row("POST", "/reservations/{R}/decide", {}), "lead")
    assert page.status_code == 403
    assert b"Nobody decides their own request" in page.content
    told = house.answer(Row("POST", "/api/v1/decisions", {}), "lead")
    assert (told.status_code, json.loads(told.content)["code"]) == (403, "own_request")
    assert Reservation.objects.get(pk=int(house.ids["R"][2:])).decision == "requested"
