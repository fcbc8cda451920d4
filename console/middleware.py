"""What happens around each request: an id for the log, an end to idle sessions, the person's time zone."""

import time
import uuid
from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from allocations.events import request_id

Respond = Callable[[HttpRequest], HttpResponse]


class RequestId:
    """Each request has an id: in events, in the log, and in the answer."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = request_id.set(uuid.uuid4().hex)
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
    """A session without a request for an hour is over."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            now, seen = int(time.time()), request.session.get("seen")
            if seen is not None and now - seen > settings.SESSION_IDLE_SECONDS:
                logout(request)
            elif seen is None or now - seen > 60:
                request.session["seen"] = now
        return self.get_response(request)


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
