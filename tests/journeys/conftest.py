"""With what does a journey drive the console? A real Chromium on Django's own live server.

Every page fails its test, at the end, on a violation of the Content-Security-Policy, an uncaught error, or an error on
the browser's console. `page` is one person's browser; `open_page` opens another one, with cookies of its own.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: manage.py test installs it")
from playwright.sync_api import Browser, ConsoleMessage, Page

# The browser reports each refused answer as a failed load; to a person these are the page's answer to wrong input.
_ANSWERS = tuple(
    f"Failed to load resource: the server responded with a status of {status}" for status in (400, 409, 422)
)
# htmx names a request that a newer one replaced, or that the next page cut off, like a fault; real ones say sendError.
_ABORTED = ("htmx:afterRequest", "htmx:sendAbort")
# Told through the console, so that it arrives the same way as any other fault.
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP: ${event.violatedDirective} refused ${event.blockedURI || event.sample} on ${location.pathname}`));
"""


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_found() -> Iterator[None]:
    """Nothing was collected for tests, which the server of static files would complain about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "WHITENOISE_AUTOREFRESH", True, raising=False)
        yield


@pytest.fixture
def live(live_server: Any) -> str:
    """The console's address; the database is emptied after the test."""
    address: str = live_server.url
    return address


@pytest.fixture
def open_page(browser: Browser, live: str) -> Iterator[Callable[..., Page]]:
    """Opens a browser of one more person; keyword arguments go to Playwright's `new_context`."""
    faults: list[str] = []
    contexts = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith((*_ANSWERS, *_ABORTED)):
            faults.append(message.text)

    def open_one(**options: Any) -> Page:
        context = browser.new_context(**{"base_url": live, "viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.add_init_script(_REPORT_VIOLATIONS)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not faults, "the browser complained:\n" + "\n".join(faults)


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """One person's browser."""
    return open_page()
