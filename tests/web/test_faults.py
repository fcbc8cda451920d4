"""What does a fault leave behind: a page with a way home, and one line of the log with the request's id?"""

import io
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from console.log_lines import Line
from console.web import help as helping

Visit = Callable[..., Client]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the server would write."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(Line(settings.LOGGING["formatters"]["line"]["format"]))
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def break_help(monkeypatch: pytest.MonkeyPatch, visit: Visit) -> Client:
    """The browser of somebody whose page of help breaks."""

    def broken(*_: Any) -> None:
        raise RuntimeError("the fault")

    client = visit("lead")
    client.raise_request_exception = False
    monkeypatch.setattr(helping, "render", broken)
    return client


def test_a_fault_of_ours_is_a_styled_page_with_the_request_and_a_way_home(break_help: Client, log: io.StringIO) -> None:
    response = break_help.get("/help")
    page = response.content.decode()
    assert response.status_code == 500
    assert "console.css" in page and 'href="/"' in page
    assert f"<code>{response['X-Request-ID']}</code>" in page
    (line,) = [line for line in log.getvalue().splitlines() if "Internal Server Error" in line]
    assert f" django.request {response['X-Request-ID']} Internal" in line
    assert "RuntimeError: the fault" in log.getvalue()


def test_the_page_of_a_fault_asks_the_database_nothing(rf: Any) -> None:
    assert helping.broken(rf.get("/help")).status_code == 500


def test_an_answer_that_is_logged_after_all_middleware_has_its_id_too(visit: Visit, log: io.StringIO) -> None:
    response = visit("lead").get("/audit")
    assert response.status_code == 403
    assert f"{response['X-Request-ID']} Forbidden: /audit" in log.getvalue()


def test_a_line_outside_of_requests_has_a_dash(log: io.StringIO) -> None:
    logging.getLogger("console").warning("alone")
    assert log.getvalue().endswith("WARNING console - alone\n")


@pytest.mark.parametrize(
    ("address", "headers"), [("/find?q=%00", {}), ("/sign-in", {"Host": "evil.example"}), ("/sign-in", {"Host": "a b"})]
)
def test_what_a_stranger_sends_is_one_line_of_the_log(
    visit: Visit, log: io.StringIO, address: str, headers: dict[str, str]
) -> None:
    assert Client(headers=headers).get(address).status_code == 400
    assert re.fullmatch(r"[^\n]* (WARNING django\.request|ERROR django\.security\.\w+) [^\n]+\n", log.getvalue())
