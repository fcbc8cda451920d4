"""Does anything that can be typed, sent or put into an address make Berth break off? (a coded sentence, never 500)"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.http import HttpResponse
from django.test import Client

from allocations.models import Cluster, Event, RoleGrant
from console.models import ClusterEndpoint, PushPlan
from reservations.models import Reservation
from tests.api.callers import caller
from tests.reservations.asks import ask
from tests.reservations.world import NOW, World
from tests.security.conftest import Visit

IDS = (
    "R-0",
    "R-",
    "R--1",
    "R-+1",
    "R-1'",
    "R-1 OR 1=1",
    "R-99999999999999999999",
    "R-999999999999999999",
    "R-１",
    "R-²",
    "R-٣",
    "r-1",
    "1",
    "%00",
    "R-1%00",
    "..%2F..%2Fetc",
    "%F0%9F%92%A3",
    "%FF%FE",
    "R-" + "9" * 6000,
    "{{7*7}}",
    "<script>",
)
WORDS = (
    "",
    "\x00",
    "a\x00b",
    "²",
    "１",
    "9" * 5000,
    "-1",
    "1e9",
    "NaN",
    "inf",
    "'; DROP TABLE reservations_reservation; --",
    "%s%n",
    "{0.__class__}",
    "\ud7ff\U0010ffff\u202e",
    "<img src=x onerror=alert(1)>",
    "a" * 20_000,
    "9999-12-31T23:59",
    "0001-01-01T00:00",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "2027-03-28T02:30",
    "2027-10-31T02:30",
    "gb[001-999999999]",
    "gb[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]",
    "r[1-9999999999999999999999]",
    "@all",
    "r01!r02",
    "/../../",
    "//evil.example",
)
MOST_HARM = ("teams", "plans", "reservations")


def spoken(response: HttpResponse, what: str) -> None:
    """The server did not break off, and a refusal has words."""
    assert response.status_code < 500, f"{what}: {response.status_code}"
    if response.status_code >= 400:
        assert response.content.strip(), f"{what}: {response.status_code} without a word"


@pytest.fixture
def everybody(world: World, visit: Visit) -> Iterator[Client]:
    """The lead of the team, with every role besides, so that every branch of a page is reached."""
    for role in ("approver", "operator", "auditor", "admin"):
        RoleGrant.objects.create(user=world.lead, role=role)
    yield visit("lead")


def test_no_id_in_an_address_makes_a_page_break_off(everybody: Client) -> None:
    for each in IDS:
        for kind in MOST_HARM:
            mine = each if kind == "reservations" else each.replace("R-", {"teams": "T-", "plans": "P-"}[kind], 1)
            path = f"/{kind}/{mine if '%' in mine else quote(mine)}"
            response = everybody.get(path)
            spoken(response, path)
            assert response.status_code in (400, 404), path
            for deed in {"reservations": ("state",), "plans": (), "teams": ()}[kind]:
                spoken(everybody.get(f"{path}/{deed}"), f"{path}/{deed}")
            for deed in {"reservations": ("decide", "withdraw", "cancel"), "plans": ("apply",), "teams": ()}[kind]:
                spoken(everybody.post(f"{path}/{deed}"), f"POST {path}/{deed}")


def test_no_name_in_an_address_makes_a_page_break_off(everybody: Client) -> None:
    for each in (*WORDS, *IDS):
        name = each if "%" in each and each.isascii() and "\x00" not in each else quote(each, safe="")
        for address in ("/fleet/{}", "/fleet/sol/{}", "/clusters/{}", "/help/errors/{}", "/join/{}"):
            spoken(everybody.get(address.format(name)), address.format(name[:60]))


def test_no_id_or_name_makes_an_endpoint_break_off(world: World) -> None:
    api = caller(world.lead)
    for each in IDS:
        name = each if "%" in each else quote(each, safe="")
        for address in ("reservations/{}", "reservations/{}/nodes", "decisions/{}", "tokens/{}", "clusters/{}"):
            response = api.get(address.format(name))
            assert response.status_code == 404, f"{address} {each[:40]}: {response.status_code}"
            assert response["Content-Type"] == "application/problem+json"
        for address in ("racks/sol/{}", "nodes/sol/{}", "flavors/sol/{}", "flavors/{}/gb200"):
            assert api.get(address.format(name)).status_code == 404, f"{address} {each[:40]}"


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/board", ("cluster", "span", "from", "open")),
        ("/reservations", ("whose", "cluster", "state", "q", "page")),
        ("/audit", ("verb", "subject", "before")),
        ("/find", ("q",)),
        ("/sign-in", ("next",)),
        (
            "/reservations/new",
            ("team", "cluster", "flavor", "racks", "nodes", "gpus", "duration", "earliest_start_at", "latest_end_at"),
        ),
        (
            "/reservations/new/answer",
            (
                "start_at",
                "earliest_start_at",
                "avoid_racks",
                "prefer_racks",
                "nodes_per_rack",
                "spare_nodes",
                "purpose",
            ),
        ),
    ],
)
def test_no_query_makes_a_page_break_off(everybody: Client, path: str, names: tuple[str, ...]) -> None:
    for name in names:
        for word in WORDS:
            spoken(everybody.get(path, {name: word}), f"{path}?{name}={word[:40]!r}")
        spoken(everybody.get(path, {name: ["sol", "luna", ""]}), f"{path} with {name} three times")
    spoken(everybody.get(path, dict.fromkeys(names, "a" * 3000)), f"{path} with everything long")


@pytest.mark.parametrize("zone", ["Europe/Zurich", "Pacific/Kiritimati", "Etc/GMT+12", "nowhere/at/all"])
def test_no_moment_in_no_zone_makes_the_form_break_off(world: World, visit: Visit, zone: str) -> None:
    lead = world.lead
    lead.zone = zone
    lead.save()
    client = visit("lead")
    for word in (word for word in WORDS if ":" in word):
        for name in ("earliest_start_at", "latest_end_at", "start_at"):
            query = {"team": "acme/vision", "cluster": "sol", "flavor": "gb200", "racks": "1", "duration": "1 hour"}
            for path in ("/reservations/new", "/reservations/new/answer"):
                spoken(client.get(path, {**query, name: word}), f"{zone} {name}={word}")
            spoken(
                client.post("/reservations/new", {**query, "purpose": "x", name: word, "shown_start_at": word}), word
            )
    spoken(client.get("/board", {"from": "2027-03-28"}), zone)


def test_no_form_makes_a_deed_break_off(world: World, everybody: Client) -> None:
    """Each field of each form with each hostile word. Nothing that was refused may have left a trace."""
    row = ask(world, actor=world.second)
    ClusterEndpoint.objects.create(cluster=world.cluster, driver="files", modes={"*": "enforce"})
    plan = PushPlan.objects.create(cluster=world.cluster, generation=1, state="verified", created_at=NOW)
    luna = Cluster.objects.create(name="luna", kind="volcano", inventory_mark="luna")
    forms = {
        f"/reservations/{row.public_id}/decide": ("verdict", "version"),
        f"/reservations/{row.public_id}/withdraw": ("version",),
        f"/reservations/{row.public_id}/cancel": ("version", "reason"),
        "/clusters/sol/mode": ("mode", "object_class"),
        f"/clusters/{luna.name}/mode": ("mode", "object_class"),
        f"/plans/{plan.public_id}/apply": ("reason",),
        "/account": ("old_password", "new_password1"),
    }
    before = Event.objects.count()
    for path, names in forms.items():
        for name in names:
            for word in WORDS if name != "version" else WORDS[1:]:  # without a version the present one is meant
                given = {"verdict": "approve", "version": "77", "mode": "enforce", "object_class": "*"}
                response = everybody.post(path, {**given, name: word})
                spoken(response, f"POST {path} {name}={word[:40]!r}")
    spoken(everybody.post(f"/clusters/{luna.name}/mode", {"mode": "enforce", "object_class": "*"}), "no endpoint")
    told = Event.objects.order_by("id")[before:].values_list("verb", "sentence")
    assert list(told) == []
    row.refresh_from_db()
    assert (row.decision, row.version) == ("requested", 1)


def test_an_ask_with_hostile_fields_is_refused_or_kept_as_typed(world: World, visit: Visit) -> None:
    client = visit("lead")
    good = {"team": "acme/vision", "cluster": "sol", "flavor": "gb200", "racks": "1", "duration": "1 hour"}
    fields = (
        "team",
        "cluster",
        "flavor",
        "racks",
        "duration",
        "purpose",
        "avoid_racks",
        "nodes_per_rack",
        "max_blocks",
    )
    for name in fields:
        for word in WORDS:
            response = client.post("/reservations/new", {**good, "purpose": "Fine", name: word})
            spoken(response, f"{name}={word[:40]!r}")
    for row in Reservation.objects.all():
        assert row.purpose.strip() and "\x00" not in row.purpose


def test_a_verdict_that_is_none_decides_nothing(world: World, visit: Visit) -> None:
    row = ask(world)
    for verdict in ("", "yes", "REJECT", "approve "):
        response = visit("approver").post(
            f"/reservations/{row.public_id}/decide", {"verdict": verdict, "version": "1", "reason": "x"}
        )
        assert response.status_code == 400
    row.refresh_from_db()
    assert row.decision == "requested"


@pytest.mark.parametrize("version", ["7", "x", "１", "-1", "9" * 5000])
def test_a_version_that_is_not_the_present_one_decides_nothing(world: World, visit: Visit, version: str) -> None:
    row = ask(world)
    sent = {"verdict": "approve", "version": version}
    assert visit("approver").post(f"/reservations/{row.public_id}/decide", sent).status_code in (400, 409)
    assert visit("lead").post(f"/reservations/{row.public_id}/withdraw", sent).status_code in (400, 409)
    row.refresh_from_db()
    assert row.decision == "requested"


def test_no_body_makes_an_endpoint_break_off(world: World) -> None:
    api = caller(world.lead)
    asked = {"team": world.team.public_id, "cluster": "sol", "purpose": "x"}
    spec = {"flavor": "gb200", "racks": 1, "duration_minutes": 60}
    odd: tuple[Any, ...] = (*WORDS, None, True, [], {}, -1, 1e300, 10**30, 0.5, [[]], {"a": {}}, ["r01"] * 5000)
    for value in odd:
        for key in ("flavor", "racks", "nodes", "gpus", "duration_minutes", "earliest_start_at", "latest_end_at"):
            _sent(api, {**asked, "spec": {**spec, key: value}}, f"spec.{key}={str(value)[:40]!r}")
        for key in ("avoid", "prefer", "avoid_racks", "same_block", "nvlink", "max_blocks", "spare_nodes"):
            _sent(api, {**asked, "spec": {**spec, key: value}}, f"spec.{key}={str(value)[:40]!r}")
        for key in ("team", "cluster", "purpose", "spec", "allocation", "funding", "at_end", "run_over_minutes"):
            _sent(api, {**asked, "spec": spec, key: value}, f"{key}={str(value)[:40]!r}")


def _sent(api: Any, content: Any, what: str) -> None:
    response = api.post("reservations/preview", {k: v for k, v in content.items() if k != "purpose"}, key=None)
    assert response.status_code < 500, f"preview {what}"
    if response.status_code >= 400:
        assert json.loads(response.content)["sentence"], what
    if not (response.status_code == 200 and "purpose" not in what):  # else the racks would be full soon
        assert api.post("reservations", content).status_code < 500, f"reservations {what}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"{",
        b"\x00",
        b"\xff\xfe{}",
        b'{"spec":1e999}',
        b'{"cluster":"sol","spec":{"flavor":"gb200","racks":1e999,"duration_minutes":60},"team":"T-1","purpose":"x"}',
        b'{"a":' + b"9" * 6000 + b"}",
        b'{"team":"\\ud800"}',
        b'{"team":"a","team":"b"}',
        b"[" * 50_000,
        b'{"spec":' * 500 + b"1" + b"}" * 500,
        b"{" + b" " * 1_100_000 + b"}",
    ],
    ids=lambda content: repr(content[:24]),
)
def test_no_raw_body_makes_an_endpoint_break_off(world: World, content: bytes) -> None:
    api = caller(world.lead)
    for path in ("reservations", "reservations/preview", "decisions", "reservations/R-1/cancel"):
        response = api.send("POST", path, content, Idempotency_Key="one")
        assert 400 <= response.status_code < 500, f"{path}: {response.status_code}"
        assert json.loads(response.content)["code"]


@pytest.mark.parametrize("media", ["", "text/plain", "multipart/form-data; boundary=x", "application/xml", "a\xe9/b"])
def test_another_media_type_is_refused_by_its_code(world: World, media: str) -> None:
    api = caller(world.lead)
    response = api.send("POST", "decisions", b'{"a":1}', Content_Type=media, Idempotency_Key="one")
    assert response.status_code == 415
    assert json.loads(response.content)["code"] == "media_type"


def test_a_page_takes_no_megabytes_and_no_thousands_of_fields(visit: Visit) -> None:
    client = visit("lead")
    huge = client.post("/reservations/new", {"purpose": "x" * 2_000_000})
    assert (huge.status_code, b"larger than this page takes" in huge.content) == (413, True)
    many = client.post("/reservations/new", {f"field{number}": "" for number in range(2000)})
    assert many.status_code in (400, 413)
    assert b"<h1" in many.content


def test_a_broken_multipart_form_is_refused_with_a_sentence(visit: Visit) -> None:
    client = visit("lead")
    response = client.generic("POST", "/reservations/new", b"--x\r\nnonsense", "multipart/form-data; boundary=")
    spoken(response, "multipart")
    assert response.status_code in (400, 403)


def test_a_very_long_address_is_answered(visit: Visit) -> None:
    spoken(visit("lead").get("/board", {"open": ["b" * 500] * 100}), "a long address")
    spoken(visit("lead").get("/" + "a" * 60_000), "a long path")
