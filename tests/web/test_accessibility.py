"""Can everybody use the components: axe in both themes and on a phone, no violation of the content policy, keys?"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone

from console.web import ui_examples

STATIC = Path(__file__).resolve().parents[2] / "static"

pytestmark = pytest.mark.part("chromium")


def _policy() -> str:
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    return "; ".join(f"{name} {' '.join(values)}" for name, values in directives.items())


def _static_file(path: str) -> bytes:
    from django.contrib.staticfiles import finders

    found = finders.find(path.removeprefix("/static/"))
    return Path(str(found)).read_bytes() if found else b""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The page /ui/ and the static files on a loopback port, under the content policy of the settings."""
    with timezone.override("Europe/Zurich"):
        page = render_to_string("ui.html", ui_examples.context()).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_static = self.path.startswith("/static/")
            body = _static_file(self.path) if is_static else page
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", guess_type(self.path)[0] or "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", _policy())
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/ui/"
    server.shutdown()
    server.server_close()


def _open(browser, address: str, theme: str = "light", width: int = 1280):
    page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=theme)
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(address)
    page.locator("#burn .main-svg").first.wait_for()
    return page


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_axe_finds_nothing_wrong_with_the_components(browser, address, theme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = _open(browser, address, theme, width)
    result = Axe().run(page, context={"exclude": [[".js-plotly-plot"]]})
    assert result.violations_count == 0, result.generate_report()
    assert page.complaints == []
    page.close()


def test_nothing_but_the_board_and_wide_tables_scrolls_sideways_on_a_phone(browser, address):
    page = _open(browser, address, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_the_theme_is_kept_and_changes_the_charts(browser, address):
    page = _open(browser, address)
    colour = "getComputedStyle(document.querySelector('#burn .js-line')).stroke"
    before = page.evaluate(colour)
    page.get_by_role("button", name="your menu").click()
    page.get_by_role("button", name="Dark").click()
    page.wait_for_function(f"{colour} !== {before!r}")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.close()


def test_arrows_move_inside_the_strip_and_it_is_one_tab_stop(browser, address):
    page = _open(browser, address)
    assert page.locator('.strip button[tabindex="0"]').count() == 1
    page.locator('.strip button[aria-pressed="true"]').focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "7"
    page.close()


def test_a_slash_goes_to_find_and_is_a_letter_while_typing(browser, address):
    page = _open(browser, address)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("r/22")
    assert page.locator("#find").input_value() == "r/22"
    page.close()


def test_keys_that_are_switched_off_do_nothing(browser, address):
    page = _open(browser, address)
    page.keyboard.press("?")
    page.get_by_label("Single keys work on this computer").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") != "find"
    page.close()


def test_a_copied_command_is_the_text_of_its_box(browser, address):
    page = _open(browser, address)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the sbatch line").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("sbatch --reservation=berth-R-131")
    page.close()
