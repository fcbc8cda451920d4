"""Can everybody use every main page: by axe in both themes and on a phone, without a sideways scroll, and by keys?"""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from django.utils import timezone
from playwright.sync_api import Page, expect

from console.models import PushPlan
from reservations.models import Reservation
from reservations.services.approve import approve
from tests.journeys.place import asked, connect_files, push, visit, world_of_today
from tests.reservations.world import World

pytestmark = pytest.mark.part("chromium")
# What is wider than the box that cuts it off, or stands beyond the edge of its panel. What scrolls on purpose (boards,
# strips, pasted text) is left out, and what is there for readers of the page only.
_CUT_OFF = """() => {
  const left_out = ".sr, .cards thead, .js-plotly-plot, .board, .strip, pre, select, input, [popover]";
  const words = (each) => each.textContent.trim().replace(/\\s+/g, " ").slice(0, 60);
  const found = [];
  for (const each of document.querySelectorAll("body *")) {
    const hidden = each.closest(left_out);
    if (!each.checkVisibility() || (hidden && !(hidden.matches("thead") && innerWidth > 760))) continue;
    const cuts = getComputedStyle(each).overflowX !== "visible" && each.clientWidth > 1;
    if (cuts && each.scrollWidth > each.clientWidth + 1)
      found.push(`${each.scrollWidth} px in a box of ${each.clientWidth} px: ${each.className} "${words(each)}"`);
    const panel = each.parentElement.closest("td, th, .panel, main");
    const beyond = panel && each.getBoundingClientRect().right - panel.getBoundingClientRect().right;
    if (beyond > 1) found.push(`${Math.round(beyond)} px beyond its panel: ${each.className} "${words(each)}"`);
  }
  return found;
}"""
# Who opens what; {approved} and {asked} are reservations.
PAGES = {
    "lead": (
        *("/", "/board", "/reservations", "/reservations/new", "/reservations/{approved}", "/reservations/{asked}"),
        *("/reservations/new?racks=9", "/teams", "/fleet", "/clusters/sol", "/find?q=sol", "/help", "/account"),
        "/help/errors/not_allowed",
    ),
    "approver": ("/", "/inbox", "/reservations/{asked}"),
    "operator": ("/fleet/sol", "/fleet/sol/r01", "/clusters", "/clusters/sol", "/plans/{plan}"),
    "auditor": ("/audit",),
}


@pytest.fixture
def world(live: str) -> World:
    return world_of_today()


@pytest.fixture
def names(world: World, tmp_path: Path) -> dict[str, str]:
    """A reservation that is on its cluster, an open ask, and the plan that wrote the first."""
    endpoint = connect_files(tmp_path)
    approved = approve(reservation=asked(world), actor=world.approver, at=timezone.now())
    assert push(endpoint) == "verified"
    plan = PushPlan.objects.latest("pk")
    waits = asked(world, racks=1)
    Reservation.objects.update(purpose="Pretraining of the vision model, a checkpoint every two hours")
    return {"approved": approved.public_id, "asked": waits.public_id, "plan": plan.public_id}


@pytest.fixture
def open_as(open_page: Callable[..., Page], live: str, world: World) -> Callable[..., Page]:
    return lambda name, **options: visit(open_page, live, world, name, **options)


def every_page(open_as: Callable[..., Page], names: dict[str, str], **options: object) -> Iterator[Page]:
    """Each main page, opened by the person it is for."""
    for name, addresses in PAGES.items():
        page = open_as(name, **options)
        for address in addresses:
            page.goto(address.format(**names))
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            yield page


def faults_of(page: Page, theme: str, width: int, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe finds on the page as it is shown so, whether it scrolls sideways, and what is cut off."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 860})
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = AxeResults(page.evaluate("options => axe.run({exclude: [['.js-plotly-plot']]}, options)", options))
    wide = page.evaluate("document.documentElement.scrollWidth")
    return [
        *([f"{page.url}, {theme}, {width} px: {found.generate_report()}"] if found.violations_count else []),
        *([f"{page.url} is {wide} px wide on a screen of {width} px"] if wide > width else []),
        *(f"{page.url}, {width} px: {each}" for each in page.evaluate(_CUT_OFF)),
    ]


def test_axe_finds_nothing_wrong_and_nothing_is_cut_off(
    open_as: Callable[..., Page], open_page: Callable[..., Page], names: dict[str, str]
) -> None:
    stranger = open_page()
    stranger.goto("/sign-in")
    wrong = []
    for page in chain((stranger,), every_page(open_as, names)):
        page.evaluate(AXE_SCRIPT)
        wrong += faults_of(page, "light", 1280)
        wrong += faults_of(page, "dark", 1280, ("color-contrast",))  # all that the theme changes
        wrong += faults_of(page, "dark", 390)
        wrong += faults_of(page, "light", 390, ("color-contrast",))
    assert not wrong, "\n\n".join(wrong)


def test_the_tab_key_reaches_the_main_deed_of_a_page(open_as: Callable[..., Page], names: dict[str, str]) -> None:
    lead, approver, operator = open_as("lead"), open_as("approver"), open_as("operator")
    for page, address, deed in (
        (lead, "/", "Request a reservation"),
        (lead, "/reservations/new?duration=1+day", "Request 1 rack"),
        (lead, "/reservations/{approved}", "Cancel R-"),
        (lead, "/reservations/{asked}", "Withdraw R-"),
        (approver, "/inbox", "Approve 1 rack"),
        (operator, "/clusters/sol", "Look at sol now"),
    ):
        page.goto(address.format(**names))
        assert deed in reached_by_tab(page, deed), f"{deed} is not reached on {address}"


def reached_by_tab(page: Page, deed: str, most: int = 60) -> str:
    """The words of what has the focus after as many tabs as it takes."""
    words = ""
    for _ in range(most):
        page.keyboard.press("Tab")
        words = str(page.evaluate("document.activeElement.textContent.trim()"))
        if deed in words and len(words) < 200:
            break
    return words


def test_the_first_tab_skips_to_the_page(open_as: Callable[..., Page], world: World) -> None:
    lead = open_as("lead")
    lead.goto("/")
    lead.keyboard.press("Tab")
    expect(lead.get_by_role("link", name="Skip to the page")).to_be_focused()
    lead.keyboard.press("Enter")
    expect(lead.locator("#main")).to_be_focused()


def test_n_opens_the_form_and_a_opens_the_dialog_of_an_approver(
    open_as: Callable[..., Page], names: dict[str, str]
) -> None:
    lead = open_as("lead")
    lead.goto("/")
    lead.keyboard.press("n")
    expect(lead).to_have_url(re.compile("/reservations/new"))
    approver = open_as("approver")
    approver.goto("/inbox")
    approver.keyboard.press("a")
    expect(approver.locator(f"#approve-{names['asked']}")).to_be_visible()
    approver.keyboard.press("Escape")
    expect(approver.locator(f"#approve-{names['asked']}")).to_be_hidden()


def test_an_ask_is_made_with_the_keyboard_alone(open_as: Callable[..., Page], world: World) -> None:
    lead = open_as("lead")
    lead.goto("/reservations/new")
    lead.get_by_label("Racks", exact=True).focus()
    lead.keyboard.press("ControlOrMeta+a")
    lead.keyboard.type("2")
    lead.keyboard.press("Tab")
    lead.keyboard.press("ControlOrMeta+a")
    lead.keyboard.type("6 hours")
    lead.get_by_label("What for").focus()
    lead.keyboard.type("By keys alone")
    expect(lead.locator("#ask").get_by_role("button")).to_have_text(re.compile("^Request 2 racks from"))
    lead.keyboard.press("Enter")
    expect(lead).to_have_url(re.compile(r"/reservations/R-\d+$"))
