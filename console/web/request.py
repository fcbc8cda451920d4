"""What does a view receive? A request with a signed-in person and htmx's details."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from allocations.models import User


class PersonRequest(HttpRequest):
    """Typing only: the person is signed in (the @page decorator saw to it)."""

    user: User
    htmx: HtmxDetails
