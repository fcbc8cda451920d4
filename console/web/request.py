"""What does a view receive? A request with a signed-in person, htmx's details, and the version that a form shows."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from allocations.errors import Invalid
from allocations.models import User


class PersonRequest(HttpRequest):
    """Typing only: the person is signed in (the @page decorator saw to it)."""

    user: User
    htmx: HtmxDetails


def version_of(request: HttpRequest) -> int | None:
    """The version of the thing as the form showed it; None without one. Raises Invalid for what is no number."""
    sent = request.POST.get("version", "")
    if not sent:
        return None
    if not sent.isascii() or not sent.isdigit() or len(sent) > 9:
        raise Invalid("The version that was sent is no number. Open the page again and send it from there.")
    return int(sent)
