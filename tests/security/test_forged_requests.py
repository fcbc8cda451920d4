"""Can another site, an old page or two people at once make Berth do what nobody asked for?"""

import re
import threading
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern

from allocations.models import Decision, Event, RoleGrant
from reservations.models import Hold, Reservation
from tests.house.test_every_url import patterns
from tests.reservations.asks import ask
from tests.reservations.world import World
from tests.security.conftest import Visit


def _pages() -> list[URLPattern]:
    return [each for each in patterns() if not hasattr(each.callback, "cls") and not str(each.name).startswith("api-")]


def _address(pattern: URLPattern) -> str:
    return "/" + re.sub(
        r"<(?:\w+:)?(\w+)>", lambda found: "sol" if found[1] != "public_id" else "R-1", str(pattern.pattern)
    )


def test_no_page_takes_a_post_without_a_token_of_its_own(visit: Visit) -> None:
    client = visit("lead", enforce_csrf_checks=True)
    for pattern in _pages():
        before = Event.objects.count()
        response = client.post(_address(pattern), {"verdict": "approve"})
        assert response.status_code == 403, pattern
        assert b"No page of Berth sent this" in response.content, pattern
        assert Event.objects.count() == before


def test_no_page_is_exempt_from_the_token() -> None:
    assert [each.name for each in _pages() if getattr(each.callback, "csrf_exempt", False)] == []


def test_signing_in_needs_the_token_too(world: World) -> None:
    response = Client(enforce_csrf_checks=True).post("/sign-in", {"username": "a@example.org", "password": "x"})
    assert response.status_code == 403


def test_the_api_takes_no_session(world: World, visit: Visit) -> None:
    assert visit("lead").get("/api/v1/me").status_code == 401
    assert visit("lead").post("/api/v1/reservations", b"{}", content_type="application/json").status_code == 401


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "http:evil.example",
        "javascript:alert(1)",
        "https:/evil.example",
        "/%09/evil.example",
        "\t//evil.example",
        "//evil.example@testserver/",
        "/sign-in",
        "/sign-in?next=/sign-in",
        "https://testserver.evil.example/",
    ],
)
def test_signing_in_leads_to_no_other_site_and_never_in_a_ring(world: World, visit: Visit, wanted: str) -> None:
    person = world.lead
    person.set_password("a long enough sentence")
    person.save()
    sent = {"username": person.email, "password": "a long enough sentence", "next": wanted}
    for response in (Client().post("/sign-in", sent), visit("lead").get("/sign-in", {"next": wanted})):
        assert response.status_code == 302
        assert re.match(r"/(?![/\\])", response["Location"]), response["Location"]
        assert "evil.example" not in response["Location"] or response["Location"].startswith("/%09/")
        assert not response["Location"].startswith("/sign-in")


def test_an_address_of_two_slashes_leads_to_no_other_site(world: World) -> None:
    response = Client().get("//evil.example/reservations")
    assert response.status_code == 404 or response["Location"].startswith("/sign-in")


def test_who_asked_does_not_decide_whatever_they_may_else(world: World, visit: Visit) -> None:
    row = ask(world)
    for role in ("approver", "operator", "admin"):
        RoleGrant.objects.create(user=world.lead, role=role)
    for verdict in ("approve", "reject"):
        sent = {"verdict": verdict, "version": row.version, "reason": "Mine."}
        response = visit("lead").post(f"/reservations/{row.public_id}/decide", sent)
        assert (response.status_code, b"Nobody decides their own request" in response.content) == (403, True)
    row.refresh_from_db()
    assert (row.decision, Decision.objects.count()) == ("requested", 0)


def test_an_old_page_decides_nothing_and_keeps_the_reason(world: World, visit: Visit) -> None:
    row = ask(world)
    Reservation.objects.filter(pk=row.pk).update(version=2)
    sent = {"verdict": "reject", "version": "1", "reason": "Typed with care."}
    response = visit("approver").post(f"/reservations/{row.public_id}/decide", sent)
    assert response.status_code == 409
    assert b"Typed with care." in response.content
    row.refresh_from_db()
    assert row.decision == "requested"


def test_the_same_button_twice_decides_once(world: World, visit: Visit) -> None:
    row, client = ask(world), visit("approver")
    sent = {"verdict": "approve", "version": "1"}
    answers = [client.post(f"/reservations/{row.public_id}/decide", sent).status_code for _ in range(2)]
    assert answers == [302, 409]
    assert Decision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_browsers_at_once_decide_once(world: World, visit: Visit) -> None:
    from django.db import connection

    row = ask(world)
    browsers = [visit("approver"), visit("colleague")]
    start, answers = threading.Barrier(2), []

    def press(client: Client, verdict: str) -> None:
        start.wait(60)
        sent: dict[str, Any] = {"verdict": verdict, "version": "1", "reason": "So."}
        answers.append(client.post(f"/reservations/{row.public_id}/decide", sent).status_code)
        connection.close()

    threads = [threading.Thread(target=press, args=pair) for pair in zip(browsers, ("approve", "reject"), strict=True)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert sorted(answers) == [302, 409]
    row.refresh_from_db()
    held = Hold.objects.filter(reservation=row, released_at=None).exists()
    assert (row.decision, held) in {("approved", True), ("rejected", False)}
