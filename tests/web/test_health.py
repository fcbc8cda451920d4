"""Do probes get their answer on plain http and under any name, and nobody else anything under a foreign one?"""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
FOREIGN = ("10.2.0.17:8000", "evil.example", "not a host!", "")


@pytest.fixture
def https_only(settings):
    """As with a BERTH_BASE_URL of https."""
    settings.WHITENOISE_AUTOREFRESH = True  # nothing was collected for tests
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["berth.example"]


@pytest.mark.usefixtures("https_only")
@pytest.mark.parametrize("host", ["berth.example", *FOREIGN])
@pytest.mark.parametrize("address", ["/healthz/live", "/healthz/ready"])
def test_a_probe_is_answered_on_plain_http_under_any_name(address, host):
    answer = Client().get(address, headers={"host": host})
    assert answer.status_code == 200
    assert answer.json()["status"] in ("ok", "degraded")
    assert "no-store" in answer.headers["Cache-Control"]
    assert "Location" not in answer.headers and not answer.cookies
    assert not host or host not in str(answer.headers) + answer.text


@pytest.mark.usefixtures("https_only")
@pytest.mark.parametrize(
    "address", ["/", "/sign-in", "/healthz", "/healthz/", "/healthz/else", "/api/v1/me", "/help?next=/healthz/live"]
)
def test_everything_else_is_sent_to_https_and_refuses_foreign_names(address):
    assert Client().get(address, headers={"host": "berth.example"}).status_code == 301
    assert Client().get(address, headers={"host": "evil.example"}).status_code == 400
