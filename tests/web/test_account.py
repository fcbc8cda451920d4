"""Can a person choose their zone, see in which browsers they are signed in, and end one of them?"""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.test import Client

from allocations.models import Event
from console import sessions, tasks
from console.models import PersonSession
from tests.reservations.world import NOW, World

Visit = Callable[..., Client]
PASSWORD = "a long enough secret"


@pytest.fixture
def sign_in(world: World) -> Callable[[str], Client]:
    """`sign_in("Firefox")`: a browser of that name where the lead signed in."""
    person = world.lead
    person.set_password(PASSWORD)
    person.save()

    def signed_in(browser: str) -> Client:
        client = Client(headers={"User-Agent": browser})
        assert client.post("/sign-in", {"username": world.lead.email, "password": PASSWORD}).status_code == 302
        return client

    return signed_in


def living(world: World, this: Client | None = None) -> list[sessions.LivingSession]:
    return sessions.living(user=world.lead, this_key=this.session.session_key if this else None, at=NOW)


def test_the_account_page_has_zone_password_sessions_and_tokens(visit: Visit, words: Callable[..., str]) -> None:
    text = words(visit("lead").get("/account"))
    for title in ("Your time zone", "Change your password", "Where you are signed in", "Tokens"):
        assert title in text


def test_a_chosen_zone_is_used_from_then_on(world: World, visit: Visit, words: Callable[..., str]) -> None:
    client = visit("lead")
    assert client.post("/account/zone", {"zone": "Asia/Tokyo"}).url == "/account"
    assert "times are shown in Asia/Tokyo." in words(client.get("/account"))
    assert world.lead.zone == "Asia/Tokyo"
    event = Event.objects.get(verb="person.zone_set")
    assert (event.actor, event.after) == (world.lead, {"zone": "Asia/Tokyo"})
    client.post("/account/zone", {"zone": "Asia/Tokyo"})
    assert Event.objects.filter(verb="person.zone_set").count() == 1


@pytest.mark.parametrize("zone", ["", "Mars/Base", "Asia", "../UTC", "x" * 300])
def test_what_is_no_zone_changes_nothing_and_is_said_beside_the_field(world: World, visit: Visit, zone: str) -> None:
    response = visit("lead").post("/account/zone", {"zone": zone})
    assert response.status_code == 400 and 'id="id_zone_error"' in response.content.decode()
    assert world.lead.zone == "UTC" and not Event.objects.filter(verb="person.zone_set").exists()


def test_the_list_of_sessions_names_browsers_and_no_key(sign_in: Callable[[str], Client], world: World) -> None:
    desk, phone = sign_in("Desk"), sign_in("<b>Phone</b>")
    assert [(each.browser, each.is_this) for each in living(world, phone)] == [("<b>Phone</b>", True), ("Desk", False)]
    page = desk.get("/account").content.decode()
    assert "&lt;b&gt;Phone" in page and "<b>Phone" not in page
    assert desk.session.session_key not in page and phone.session.session_key not in page


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
            "Chrome on Linux",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14.5; rv:126.0) Gecko/20100101 Firefox/126.0", "Firefox on Mac OS X"),
        ("curl/8.14.1", "curl"),
        ("Harbour-Desk", "Harbour-Desk"),
        ("", "a browser without a name"),
    ],
)
def test_a_session_is_told_by_its_program_and_system(sign_in: Callable[[str], Client], agent: str, device: str) -> None:
    page = sign_in(agent).get("/account").content.decode()
    table = page.partition('id="sessions"')[2].partition("</table>")[0]
    (row,) = re.findall(r'<th scope="row"([^>]*)>([^<]*)</th>', table)
    assert row == (f' title="{agent}"' if agent else "", device)


def test_ending_a_session_signs_that_browser_out_and_no_other(sign_in: Callable[[str], Client], world: World) -> None:
    desk, phone = sign_in("Desk"), sign_in("Phone")
    (lost,) = [each for each in living(world) if each.browser == "Phone"]
    assert desk.post(f"/account/sessions/{lost.reference}/end").status_code == 302
    assert phone.get("/").status_code == 302
    assert desk.get("/").status_code == 200
    assert Event.objects.get(verb="person.session_ended").actor == world.lead
    assert desk.post(f"/account/sessions/{lost.reference}/end").status_code == 404


def test_nobody_ends_the_session_of_somebody_else(sign_in: Callable[[str], Client], visit: Visit, world: World) -> None:
    desk = sign_in("Desk")
    (mine,) = living(world)
    assert visit("member").post(f"/account/sessions/{mine.reference}/end").status_code == 404
    assert desk.get("/").status_code == 200


def test_a_new_password_leaves_one_session_in_the_list(sign_in: Callable[[str], Client], world: World) -> None:
    desk = sign_in("Desk")
    sign_in("Phone")
    new = "another long secret"
    desk.post("/account", {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    assert [each.browser for each in living(world)] == ["Desk"]


def test_an_idle_session_is_not_in_the_list(sign_in: Callable[[str], Client], world: World) -> None:
    sign_in("Desk")
    late = NOW + timedelta(hours=1, seconds=1)
    assert living(world) != []
    assert sessions.living(user=world.lead, this_key=None, at=late) == []


def test_rows_of_ended_sessions_are_forgotten(sign_in: Callable[[str], Client]) -> None:
    sign_in("Desk")
    tasks.forget_sessions()
    assert PersonSession.objects.count() == 1
    with time_machine.travel(NOW + timedelta(hours=12, seconds=1), tick=False):
        tasks.forget_sessions()
    assert not PersonSession.objects.exists()
