"""What happens around each request: a host for probes, an id, an end to idle sessions, text that is kept, a zone."""

import time
import uuid
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone

from allocations.events import request_id
from console.kept_text import SENTENCE, is_kept

Respond = Callable[[HttpRequest], HttpResponse]


class AnyHostForHealth:
    """A probe asks by address or by a name of its own: the two health addresses answer to any.

    Nothing there is built from the name, and no other address answers to one that is not ours.
    """

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info in ("/healthz/live", "/healthz/ready"):
            request.get_host = lambda: "localhost"  # type: ignore[method-assign]  # what was sent is never looked at
        return self.get_response(request)


class RequestId:
    """Each request has an id: in events, in the log, and in the answer."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.META["REQUEST_ID"] = uuid.uuid4().hex  # for what is logged of the request when it is over
        token = request_id.set(request.META["REQUEST_ID"])
        try:
            response = self.get_response(request)
            response["X-Request-ID"] = request_id.get()
            if request.headers.get("HX-Request"):
                response["Cache-Control"] = "no-store"
            response["Vary"] = f"{response['Vary']}, HX-Request" if response.has_header("Vary") else "HX-Request"
            return response
        finally:
            request_id.reset(token)


class IdleSession:
    """A session without a request for an hour is over, and any session after twelve hours, however much it is used."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        now = int(time.time())
        if request.user.is_authenticated and "seen" in request.session:
            seen, began = request.session["seen"], request.session.get("began", now)
            if now - seen > settings.SESSION_IDLE_SECONDS or now - began > settings.SESSION_COOKIE_AGE:
                logout(request)
            elif now - seen > 60:
                request.session["seen"] = now  # this moves the end that Django knows, so the beginning is kept too
        response = self.get_response(request)
        # Not request.user: the API puts a token's owner there, or nobody.
        if SESSION_KEY in request.session and "seen" not in request.session:
            request.session["began"] = request.session["seen"] = now
            request.session["browser"] = request.headers.get("User-Agent", "")[:200]
        return response


class KeepableText:
    """Text that is not kept (console.kept_text) is refused before a page sees it; the API looks by itself."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Raises BadRequest, which handler400 turns into a page."""
        if request.path.startswith("/api/"):
            return
        path_kept = all(is_kept(str(each)) for each in kwargs.values())
        if not (path_kept and _all_kept(request.GET) and _all_kept(request.POST)):
            raise BadRequest(SENTENCE)


def _all_kept(sent: QueryDict) -> bool:
    return all(is_kept(text) for name, texts in sent.lists() for text in (name, *texts))


class PersonZone:
    """People see their own zone; everything inside is UTC."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = getattr(request.user, "zone", "UTC")
        try:
            timezone.activate(ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError):
            timezone.deactivate()
        try:
            return self.get_response(request)
        finally:
            timezone.deactivate()
