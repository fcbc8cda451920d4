"""Do the settings hold what they promise? (cookies, headers, sessions, throttling, and no secret in a log)"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import settings as berth
from django.contrib.auth.hashers import make_password
from django.test import Client

from allocations.models import Event, User
from console import tokens
from console.drivers.credentials import Credentials

CHECKOUT = Path(__file__).resolve().parents[2]
PASSWORD = "a long enough sentence"
START = "2027-01-04T09:00:00Z"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


@pytest.fixture(autouse=True)
def _no_collected_files(settings: Any) -> None:
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def ann(db: None) -> User:
    return User.objects.create(email="ann@example.org", name="Ann Ask", password=make_password(PASSWORD))


def signed_in(password: str = PASSWORD, client: Client | None = None) -> Client:
    client = client or Client()
    response = client.post("/sign-in", {"username": "ann@example.org", "password": password})
    assert response.status_code == 302, response.content
    return client


def under_https(code: str) -> str:
    """What Python prints with the settings of an installation on https."""
    environment = {
        **os.environ,
        "BERTH_BASE_URL": "https://berth.example",
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)  # set for the browser's tests, and no installation has it
    line = [sys.executable, "-c", f"import django; django.setup()\n{code}"]
    ran = subprocess.run(line, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_deployment_check_finds_nothing_on_https() -> None:
    said = under_https(
        "from django.core.management import call_command as c; c('check', deploy=True, fail_level='WARNING')"
    )
    assert "no issues" in said


def test_cookies_on_https_are_bound_to_the_host_and_secure() -> None:
    names = [f"{cookie}_COOKIE_{what}" for what in ("NAME", "SECURE") for cookie in ("SESSION", "CSRF")]
    names += ["SESSION_COOKIE_DOMAIN", "SESSION_COOKIE_PATH", "SECURE_SSL_REDIRECT"]
    code = f"import json; from django.conf import settings as s; print(json.dumps([getattr(s, n) for n in {names}]))"
    said = json.loads(under_https(code))
    assert said == ["__Host-berth-session", "__Host-berth-csrf", True, True, None, "/", True]


def test_plain_http_on_this_machine_has_cookies_that_browsers_keep(ann: User) -> None:
    client = signed_in()
    session = client.cookies[berth.SESSION_COOKIE_NAME]
    assert (session["httponly"], session["samesite"], session["secure"], session["path"]) == (True, "Lax", "", "/")
    assert not berth.SESSION_COOKIE_NAME.startswith("__Host-")
    assert client.cookies[berth.CSRF_COOKIE_NAME]["samesite"] == "Lax"
    assert session["max-age"] == 12 * 3600


@pytest.mark.parametrize("path", ["/", "/sign-in", "/help", "/ui/", "/nowhere", "/api/v1/me", "/reservations/R-1"])
def test_every_answer_carries_the_same_guards(ann: User, path: str) -> None:
    response = signed_in().get(path)
    rules = {part.strip() for part in response["Content-Security-Policy"].split(";")}
    assert rules == {part.strip() for part in CSP.split(";")}
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert "HX-Request" in response["Vary"]
    assert response["X-Request-ID"]


def test_no_page_holds_a_script_or_a_style_that_the_policy_refuses(ann: User) -> None:
    client = signed_in()
    for path in ("/", "/board", "/ui/", "/account", "/help", "/teams", "/nowhere"):
        page = client.get(path).content.decode()
        assert "<style" not in page
        assert " onclick=" not in page
        for tag in page.split("<script")[1:]:
            assert "src=" in tag.partition(">")[0] or 'type="application/json"' in tag.partition(">")[0], path


def test_signing_in_changes_the_session_key(ann: User) -> None:
    client = Client()
    client.get("/sign-in")
    session = client.session
    session["before"] = 1
    session.save()
    client.cookies[berth.SESSION_COOKIE_NAME] = planted = session.session_key
    signed_in(client=client)
    assert client.cookies[berth.SESSION_COOKIE_NAME].value != planted
    stale = Client()
    stale.cookies[berth.SESSION_COOKIE_NAME] = planted
    assert stale.get("/account").status_code == 302


def test_signing_out_ends_the_session_and_clears_the_browser(ann: User) -> None:
    client = signed_in()
    key = client.cookies[berth.SESSION_COOKIE_NAME].value
    response = client.post("/sign-out")
    assert response["Clear-Site-Data"] == '"cache", "storage"'
    client.cookies[berth.SESSION_COOKIE_NAME] = key
    assert client.get("/account").status_code == 302
    assert Event.objects.filter(verb="person.signed_out", actor=ann).count() == 1


def test_a_link_does_not_sign_anybody_out(ann: User) -> None:
    client = signed_in()
    assert client.get("/sign-out").status_code == 405
    assert client.get("/account").status_code == 200


def test_an_idle_session_ends_and_a_used_one_goes_on(ann: User, clock: time_machine.Traveller) -> None:
    client = signed_in()
    for _ in range(3):
        clock.shift(timedelta(minutes=50))
        assert client.get("/account").status_code == 200
    clock.shift(timedelta(minutes=62))
    assert client.get("/account").status_code == 302


def test_no_session_outlives_twelve_hours(ann: User, clock: time_machine.Traveller) -> None:
    client = signed_in()
    for _ in range(14):
        clock.shift(timedelta(minutes=50))
        answer = client.get("/account").status_code
    assert answer in (200, 302)
    clock.shift(timedelta(minutes=50))
    assert client.get("/account").status_code == 302


def test_a_new_password_ends_the_other_sessions_and_keeps_this_one(ann: User) -> None:
    here, there = signed_in(), signed_in()
    new = "another sentence of some length"
    sent = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post("/account", sent).status_code == 302
    assert (here.get("/account").status_code, there.get("/account").status_code) == (200, 302)
    signed_in(new)


def test_a_switched_off_person_is_out_at_once(ann: User) -> None:
    client = signed_in()
    User.objects.update(is_active=False)
    assert client.get("/account").status_code == 302


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "a b", "[::1"])
def test_another_name_than_berths_own_is_refused(ann: User, settings: Any, host: str) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]  # without the test client's own name
    response = Client(headers={"Host": host}).get("/sign-in")
    assert response.status_code == 400
    assert b"sent to another name" in response.content
    assert host.encode() not in response.content
    told = Client(headers={"Host": host}).get("/api/v1/me")
    assert (told.status_code, told["Content-Type"]) == (400, "application/problem+json")


def test_a_link_that_is_printed_uses_the_base_address_and_never_the_host(ann: User, settings: Any) -> None:
    from io import StringIO

    from django.core.management import call_command

    settings.BERTH_BASE_URL = "https://berth.example"
    out = StringIO()
    call_command("first_admin", "new@example.org", stdout=out, stderr=StringIO())
    assert out.getvalue().startswith("https://berth.example/join/")


def test_eight_wrong_passwords_rest_the_account_from_there(ann: User, clock: time_machine.Traveller) -> None:
    client = Client()
    ways = ("ann@example.org", "ANN@example.org", " ann@Example.org ")
    for number in range(8):  # an address written in another way is the same account
        answer = client.post("/sign-in", {"username": ways[number % 3], "password": "wrong"})
    assert answer.status_code == 429
    assert b"Too many tries" in answer.content
    right = {"username": "ann@example.org", "password": PASSWORD}
    assert client.post("/sign-in", right).status_code == 429
    assert Client(REMOTE_ADDR="192.0.2.9").post("/sign-in", right).status_code == 302
    clock.shift(timedelta(minutes=16))
    assert client.post("/sign-in", right).status_code == 302


@pytest.mark.parametrize(
    "name", ["x" * 400 + "@example.org", "a@" + "b." * 150 + "org", "", "\x00@example.org", "ünï@x.org"]
)
def test_a_strange_address_fails_like_any_other(ann: User, name: str) -> None:
    response = Client(raise_request_exception=False).post("/sign-in", {"username": name, "password": "wrong"})
    assert response.status_code in (200, 400)
    assert b"<form" in response.content or b"NUL" in response.content


def test_an_unknown_address_reads_like_a_wrong_password(ann: User) -> None:
    answers = [
        Client().post("/sign-in", {"username": name, "password": "wrong"}).content.decode()
        for name in ("ann@example.org", "bob@example.org")
    ]
    assert all("do not belong together" in answer for answer in answers)


def test_no_secret_reaches_a_log(ann: User, caplog: pytest.LogCaptureFixture) -> None:
    """Signing in right and wrong, a token at work and a broken one, a dead link: none of them is written down."""
    caplog.set_level(logging.DEBUG)
    from django.utils import timezone

    _, secret = tokens.create(owner=ann, name="x", scopes=["read"], days=3, at=timezone.now())
    signed_in()
    Client().post("/sign-in", {"username": ann.email, "password": "a-wrong-secret-77"})
    for each in (secret, f"{secret}x"):
        for path in ("me", "nowhere", "reservations/R-1"):
            Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {each}"})
    Client().post("/join/a-dead-link-secret", {"name": "x", "password": "a-join-secret-99"})
    written = caplog.text + json.dumps(list(Event.objects.values_list("sentence", "before", "after")), default=str)
    for each in (PASSWORD, "a-wrong-secret-77", secret, "a-join-secret-99", ann.password):
        assert each not in written


def test_what_a_cluster_says_about_a_credential_is_struck_out() -> None:
    held = Credentials(environ={"SOL_TOKEN": "a-secret-of-the-environment"})
    held.secret("env:SOL_TOKEN")
    said = "401 for Bearer eyJhbGciOi.J9; SLURM_JWT=abc.def.ghi password: hunter22 and a-secret-of-the-environment"
    struck = held.scrubbed(said)
    for secret in ("eyJhbGciOi.J9", "abc.def.ghi", "hunter22", "a-secret-of-the-environment"):
        assert secret not in struck
