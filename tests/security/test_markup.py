"""Does what people, files and clusters write stay text on every page? (no markup, no script, on any of them)"""

import re
from html.parser import HTMLParser

import pytest
from django.test import Client

from allocations.events import record
from allocations.models import Event, RoleGrant
from console.models import ClusterEndpoint, ObservedObject, PushPlan, PushStep
from reservations.models import Reservation
from reservations.services.approve import approve
from reservations.services.reject import reject
from tests.reservations.asks import ask
from tests.reservations.world import NOW, World, two_racks
from tests.security.conftest import Visit

EVIL = """"'><img src=x onerror=alert(1)><script>alert(2)</script></title></textarea>{{7*7}}{%x%}&lt;b&gt;"""


class Elements(HTMLParser):
    """Collects what a browser would run or load from the hostile text."""

    def __init__(self) -> None:
        super().__init__()
        self.hostile: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if (tag == "img" and given.get("src") == "x") or any(name.startswith("on") for name in given):
            self.hostile.append(f"<{tag} {attrs}>")
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.hostile.append("<script>")
        for name in ("href", "src", "action", "hx-get", "hx-post"):
            if (given.get(name) or "").strip().lower().startswith(("javascript:", "data:text", "//")):
                self.hostile.append(f"{name}={given[name]}")


def clean(response: object, path: str) -> str:
    page: str = response.content.decode()  # type: ignore[attr-defined]
    found = Elements()
    found.feed(page)
    assert found.hostile == [], path
    assert "alert(2)</script>" not in page, path
    assert "49" not in re.findall(r"'>(\d+)\{", page), f"{path}: the text was run as a template"
    return page


@pytest.fixture
def hostile(world: World, visit: Visit) -> tuple[Client, list[str]]:
    """Hostile words in every place that holds words, and the addresses of all pages that show them."""
    for role in ("approver", "operator", "auditor", "admin"):
        RoleGrant.objects.create(user=world.second, role=role)
    waiting = ask(world, purpose=EVIL, spec=two_racks(racks=1, duration_minutes=60))
    yes = ask(world, purpose=EVIL, spec=two_racks(racks=1, duration_minutes=60))
    approve(reservation=yes, actor=world.approver, at=NOW, reason=EVIL)
    no = ask(world, purpose=EVIL, spec=two_racks(racks=1, duration_minutes=60))
    reject(reservation=no, actor=world.approver, at=NOW, reason=EVIL)
    cluster, team, rack = world.cluster, world.team, world.racks[0]
    type(team).objects.filter(pk=team.pk).update(title=EVIL, name=EVIL[:60], path=f"acme/{EVIL}")
    type(world.lead).objects.update(name=EVIL)
    cluster.frozen_at, cluster.frozen_reason = NOW, EVIL
    cluster.save()
    rack.name, rack.cabinet = EVIL[:60], EVIL
    rack.save()
    node = rack.node_set.first() if hasattr(rack, "node_set") else rack.nodes.first()
    node.name = EVIL[:60]
    node.save()
    endpoint = {"driver": "files", "modes": {"*": "enforce"}, "state": "failed", "sentence": EVIL}
    ClusterEndpoint.objects.create(cluster=cluster, **endpoint)
    for state in ("drifted", "foreign", "unwanted"):
        changes = [{"attribute": EVIL, "before": EVIL, "after": EVIL}]
        seen = {"observed_at": NOW, "since_at": NOW, "changes": changes, "state": state, "attributes": {EVIL: EVIL}}
        ObservedObject.objects.create(cluster=cluster, object_class="Reservation", name=f"{EVIL}{state}", **seen)
    plan = PushPlan.objects.create(
        cluster=cluster,
        generation=1,
        state="waiting",
        created_at=NOW,
        sentence=EVIL,
        gate_reasons=[{"code": EVIL, "sentence": EVIL}],
        compromises=[{"code": EVIL, "subject": EVIL, "sentence": EVIL}],
    )
    for number, (verb, state) in enumerate((("update", "failed"), ("create", "verified"))):
        PushStep.objects.create(
            plan=plan, number=number, verb=verb, state=state, object_class="Reservation", name=EVIL[:200],
            changes=[{"attribute": EVIL, "before": [EVIL], "after": EVIL}], commands=[EVIL, EVIL], output=EVIL,
        )  # fmt: skip
    record("cluster.frozen", subject=("cluster", EVIL[:60]), actor=world.lead, at=NOW, sentence=EVIL)
    reservations = [f"/reservations/{each.public_id}" for each in (waiting, yes, no)]
    pages = [
        "/",
        "/board",
        "/board?span=day",
        "/inbox",
        "/reservations?whose=all",
        "/teams",
        f"/teams/{team.public_id}",
    ]
    pages += ["/fleet", "/fleet/sol", "/clusters", "/clusters/sol", f"/plans/{plan.public_id}", "/audit", "/account"]
    pages += ["/find?q=img", "/reservations/new", "/reservations/new/answer", *reservations]
    return visit("second"), [*pages, *(f"{each}/state" for each in reservations)]


def test_hostile_words_stay_words_on_every_page(hostile: tuple[Client, list[str]]) -> None:
    client, pages = hostile
    shown = set()
    for path in pages:
        for headers in ({}, {"HX-Request": "true"}):
            response = client.get(path, headers=headers, follow=True)
            assert response.status_code == 200, path
            if "onerror" in clean(response, path):
                shown.add(path)
    # The words really are there: a page that showed none of them would prove nothing.
    wanted = {"/board", "/inbox", "/reservations?whose=all", "/teams", "/clusters/sol", "/audit", "/fleet/sol", "/"}
    assert wanted <= shown
    assert any(path.startswith("/plans/") for path in shown)
    assert any(path.endswith("/state") for path in shown) or Reservation.objects.exists()


@pytest.mark.parametrize("path", ["/board?cluster={}", "/find?q={}", "/reservations?q={}&cluster={}&state={}"])
def test_hostile_words_in_a_query_come_back_as_words(visit: Visit, path: str) -> None:
    from urllib.parse import quote

    clean(visit("lead").get(path.replace("{}", quote(EVIL))), path)


def test_hostile_words_in_an_address_come_back_as_words(visit: Visit) -> None:
    from urllib.parse import quote

    for path in ("/clusters/{}", "/teams/{}", "/reservations/{}", "/help/errors/{}", "/fleet/sol/{}", "/{}"):
        response = visit("lead").get(path.format(quote(EVIL, safe="")))
        assert response.status_code == 404
        clean(response, path)


def test_a_refused_form_gives_hostile_words_back_as_words(world: World, visit: Visit) -> None:
    row = ask(world)
    client = visit("approver")
    clean(client.post(f"/reservations/{row.public_id}/decide", {"verdict": "reject", "version": 9, "reason": EVIL}), "")
    fields = ("team", "cluster", "flavor", "racks", "duration", "purpose", "avoid_racks", "earliest_start_at")
    clean(visit("lead").post("/reservations/new", dict.fromkeys(fields, EVIL)), "/reservations/new")
    clean(Client().post("/sign-in", {"username": EVIL, "password": EVIL}), "/sign-in")


def test_words_of_events_are_kept_as_they_were(hostile: tuple[Client, list[str]]) -> None:
    assert Event.objects.filter(sentence=EVIL).exists()


@pytest.mark.parametrize("mark", ["\x00", "\u202e", "\u2066"])
def test_no_page_takes_a_text_that_reads_otherwise_than_it_is(visit: Visit, world: World, mark: str) -> None:
    """An approver decides by what they read: nothing may turn it around."""
    reservation = ask(world)
    for response in (
        visit("lead").post("/reservations/new", {"purpose": f"for {mark}elihw a"}),
        visit("approver").post(
            f"/reservations/{reservation.public_id}/decide", {"verdict": "reject", "reason": f"no{mark}"}
        ),
        visit("lead").get("/find", {"q": mark}),
    ):
        assert response.status_code == 400
        assert "turns its direction" in response.content.decode()
    reservation.refresh_from_db()
    assert reservation.decision == "requested"


def test_other_scripts_and_joined_signs_are_kept(visit: Visit, world: World) -> None:
    for text in ("\u05d0\u05d1\u05d2", "\u0645\u0631\u062d\u0628\u0627", "\U0001f469\u200d\U0001f680"):
        assert visit("lead").get("/find", {"q": text}).status_code == 200
