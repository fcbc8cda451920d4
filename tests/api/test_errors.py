"""Is everything that goes wrong application/problem+json, with its code?"""

import re
from pathlib import Path

import pytest
from django.db import OperationalError

from console import errors
from console.api import me
from tests.api.callers import Caller, caller, problem
from tests.reservations.world import person

ROOMS = Path(__file__).resolve().parents[2]


@pytest.fixture
def someone(db: None) -> Caller:
    """Anybody with a token; most of what goes wrong here is wrong before anything is looked at."""
    return caller(person("lead"))


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["", "nothing", "nothing/at/all", "me/", "reservations/R-1/fly"])
def test_an_address_that_leads_nowhere(path: str, method: str) -> None:
    problem(Caller(None).send(method, path), 404, "not_found")


def test_outside_of_v1_too() -> None:
    problem(Caller(None).send("GET", "../v2/me"), 404, "not_found")


@pytest.mark.parametrize("public_id", ["R-0", "R-x", "R-", "131", "A-1", "R-99999999999999999999", "R-١", "R-a%00"])
def test_an_id_that_nobody_has(someone: Caller, public_id: str) -> None:
    problem(someone.get(f"reservations/{public_id}"), 404, "not_found")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b'{"a": NaN}', "malformed"),
        (b'{"a": -Infinity}', "malformed"),
        (b'{"team": "T-1", "team": "T-2"}', "malformed"),
        (b"[" * 50_000, "malformed"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "malformed"),
        (b'{"a":' * 20 + b"1" + b"}" * 20, "unknown_key"),
        (b'{"a":' * 21 + b"1" + b"}" * 21, "invalid"),
        (b"[]", "invalid"),
        (b'"text"', "invalid"),
        (b"null", "invalid"),
        (b'{"a\\u0000b": 1}', "invalid"),
    ],
)
def test_a_body_that_is_no_object(someone: Caller, content: bytes, code: str) -> None:
    problem(someone.send("POST", "reservations/R-1/withdraw", content), 400, code)


def test_a_body_that_is_too_large(someone: Caller) -> None:
    padding = b" " * (1_000_000 - 2)
    problem(someone.send("POST", "reservations/R-1/withdraw", b"{}" + padding), 404, "not_found")
    problem(someone.send("POST", "reservations/R-1/withdraw", b"{}" + padding + b" "), 413, "too_large")


@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
def test_a_media_type_that_is_not_json(someone: Caller, media_type: str) -> None:
    response = someone.send("POST", "reservations/R-1/withdraw", b"reason=x", **{"Content-Type": media_type})
    problem(response, 415, "media_type")


def test_json_with_a_charset_is_json_whatever_is_accepted(someone: Caller) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8", "Accept": "text/html"}
    problem(someone.send("POST", "reservations/R-1/withdraw", b'{"reason": "x"}', **headers), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "reservations", "GET, HEAD, POST"),
        ("PATCH", "me", "GET, HEAD"),
        ("PUT", "reservations/R-1", "GET, HEAD"),
        ("GET", "reservations/R-1/cancel", "POST"),
        ("POST", "tokens", "GET, HEAD"),
        ("OPTIONS", "me", "GET, HEAD"),
    ],
)
def test_a_method_that_an_address_does_not_take(someone: Caller, method: str, path: str, allowed: str) -> None:
    response = someone.send(method, path)
    problem(response, 405, "method_not_allowed")
    assert response["Allow"] == allowed


def test_a_database_that_is_away_is_503_with_when_to_come_again(
    someone: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*given: object, **more: object) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(me.Me, "get", away)
    response = someone.get("me")
    told = problem(response, 503, "unavailable")
    assert (response["Retry-After"], told["retry"]) == ("5", "same")
    assert "server closed" not in response.content.decode()


def test_a_fault_of_our_own_is_a_problem_too(someone: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object, **more: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(me.Me, "get", broken)
    response = someone.get("me")
    assert (response.status_code, response["Content-Type"]) == (500, "application/problem+json")
    assert response.json()["status"] == 500
    assert "secret detail" not in response.content.decode()


def test_every_code_that_a_service_raises_has_its_status() -> None:
    """A code without a row in the table would leave as a 500."""
    raised = set()
    for room in ("allocations", "reservations", "console/api", "console/push", "console"):
        for path in (ROOMS / room).glob("**/*.py"):
            raised |= set(re.findall(r'\bcode="([a-z_]+)"', path.read_text()))
            raised |= set(
                re.findall(r'(?:WrongState|DomainError)\(\s*(?:f?"[^"]*",\s*)?"([a-z]+_[a-z_]+)"', path.read_text())
            )
    assert len(raised) > 10
    assert raised - set(errors.STATUS) == set()
