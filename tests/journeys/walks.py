"""What does a person do on the way from an ask to racks? The steps that several journeys take, one line each."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.journeys.installation import PASSWORD

# A step through worker, broker and cluster takes seconds; a start "now" the rest of a minute.
SECONDS = 1_000
expect.set_options(timeout=45 * SECONDS)


def sign_in(page: Page, name: str) -> Page:
    """Through the form, as everybody does."""
    page.goto("/sign-in")
    page.get_by_label("E-mail").fill(f"{name}@acme.example")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Main", exact=True)).to_be_visible()
    return page


@dataclass
class People:
    """Browsers of people who are signed in; each signs in once for all journeys of a file."""

    open_page: Callable[..., Page]
    states: dict[str, Any] = field(default_factory=dict)

    def visit(self, name: str, address: str = "/") -> Page:
        """A browser of this person's, on a page."""
        if name in self.states:
            page = self.open_page(storage_state=self.states[name])
        else:
            page = sign_in(self.open_page(), name)
            self.states[name] = page.context.storage_state()
        page.goto(address)
        return page


def verdict(page: Page) -> Locator:
    """The answer's first sentence on the page "Reserve"."""
    return page.locator("#answer .verdict")


def fill(page: Page, **fields: str) -> None:
    """The fields of the page "Reserve" by their names."""
    for name, value in fields.items():
        control = page.locator(f"#reserve-form [name={name}]")
        if control.evaluate("control => control.tagName") == "SELECT":
            control.select_option(value)
        else:
            control.fill(value)


def tomorrow(hour: int = 9) -> datetime:
    """A full hour of tomorrow, in UTC."""
    return datetime.now(UTC).replace(hour=hour, minute=0, second=0, microsecond=0) + timedelta(days=1)


def send(page: Page) -> str:
    """Press the button that asks; the number of the reservation whose page opens."""
    button = page.locator("#ask").get_by_role("button")
    expect(button).to_be_enabled()
    button.click()
    expect(page).to_have_url(re.compile(r"/reservations/R-\d+$"))
    return page.url.rpartition("/")[2]


def ask(page: Page, **fields: str) -> str:
    """Ask for racks; the number of the reservation."""
    page.goto("/reservations/new")
    fill(page, **{"duration": "1 hour", "purpose": "Scaling run", **fields})
    start = fields.get("earliest_start_at", "").partition("T")[2]
    racks = "1 rack" if fields.get("racks") == "1" else f"{fields.get('racks')} racks"
    expect(page.locator("#ask").get_by_role("button")).to_have_text(re.compile(rf"{racks} from .*{start}$"))
    expect(verdict(page)).to_contain_text("Fits from")
    return send(page)


def approve(page: Page, reservation: str) -> None:
    """From the inbox, with the dialog that says what it does."""
    page.goto("/inbox")
    row = page.get_by_role("article").filter(has_text=reservation)
    row.get_by_role("button", name="Approve").first.click()
    dialog = page.locator(f"#approve-{reservation}")
    expect(dialog).to_contain_text("What this does")
    dialog.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status").filter(has_text=f"{reservation} is approved")).to_be_visible()


def cancel(page: Page, reservation: str) -> None:
    """From its page, with the dialog that says what it does."""
    page.goto(f"/reservations/{reservation}")
    page.get_by_role("button", name=f"Cancel {reservation}").first.click()
    dialog = page.locator("#cancel")
    expect(dialog).to_contain_text("What this does")
    dialog.get_by_role("button", name=f"Cancel {reservation}").click()
    expect(page.get_by_role("status").filter(has_text="Cancelled")).to_be_visible()


def sign(page: Page, title: str) -> Locator:
    """One of the three signs of a reservation's page: "Decision", "Phase", "On sol"."""
    return page.locator("#state dl.three > div").filter(has=page.get_by_text(title, exact=True)).locator("dd")
