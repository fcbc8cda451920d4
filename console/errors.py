"""How does a refusal leave the house? One table: domain error -> HTTP status, retry, problem+json."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from allocations.errors import DomainError
from allocations.events import request_id

logger = logging.getLogger(__name__)
STATUS: dict[str, int] = {
    "malformed": 400,
    "invalid": 400,
    "unknown_key": 400,
    "offset_needed": 400,
    "not_on_minute": 400,
    "period_reversed": 400,
    "in_the_past": 400,
    "too_many_occurrences": 400,
    "unknown_flavor": 400,
    "idempotency_key_missing": 400,
    "inventory_refused": 400,
    "not_signed_in": 401,
    "token_expired": 401,
    "token_revoked": 401,
    "not_allowed": 403,
    "own_request": 403,
    "scope_missing": 403,
    "elevation_needed": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "does_not_fit": 409,
    "placement_gone": 409,
    "quote_used": 409,
    "wrong_state": 409,
    "subject_changed": 409,
    "budget_short": 409,
    "policy_limit": 409,
    "no_allocation": 409,
    "cluster_frozen": 409,
    "name_taken": 409,
    "push_in_progress": 409,
    "sync_in_progress": 409,
    "too_many_removals": 409,
    "sync_refused": 409,
    "in_flight": 409,
    "already_decided": 409,
    "last_admin": 409,
    "cursor_expired": 410,
    "quote_expired": 410,
    "version_changed": 412,
    "too_large": 413,
    "media_type": 415,
    "idempotency_key_reused": 422,
    "if_match_missing": 428,
    "rate_limited": 429,
    "unavailable": 503,
    "read_only": 503,
}
_SAME = frozenset({"in_flight", "push_in_progress", "rate_limited", "unavailable", "read_only"})
_RETRY_AFTER_SECONDS = {"in_flight": 1, "rate_limited": 5, "unavailable": 5, "read_only": 60}
_TITLES = {
    "not_signed_in": "Not signed in",
    "not_allowed": "Not yours to do",
    "own_request": "Your own request",
    "not_found": "Nothing here",
    "wrong_state": "Not in this state",
    "does_not_fit": "It does not fit",
    "placement_gone": "The place is gone",
    "budget_short": "Not enough GPU-hours",
    "policy_limit": "Above the limit",
    "no_allocation": "No allocation",
    "unknown_key": "Unknown key",
    "in_flight": "Being answered just now",
    "idempotency_key_reused": "This key was used for something else",
    "version_changed": "It changed since you looked",
}


def retry(code: str) -> str:
    """no: wrong in itself; after_change: wrong now; same: send the same again later."""
    if code in _SAME:
        return "same"
    return "after_change" if STATUS.get(code, 500) in (409, 412) else "no"


def body(code: str, sentence: str, **more: Any) -> dict[str, Any]:
    """The problem+json object for a code and its sentence."""
    return {
        "type": f"/help/errors/{code}",
        "code": code,
        "title": _TITLES.get(code, code.replace("_", " ").capitalize()),
        "status": STATUS.get(code, 500),
        "sentence": sentence,
        "retry": retry(code),
        "request_id": request_id.get(),
        **more,
    }


def problem_of(error: DomainError) -> dict[str, Any]:
    """problem+json of a domain error, with the place of each fault."""
    faults = [{k: v for k, v in vars(fault).items() if v is not None} for fault in error.faults]
    more: dict[str, Any] = {"errors": faults} if faults else {}
    return body(error.code, error.sentence, **more, **error.detail)


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """The exception handler of the API: everything that leaves it as an error is application/problem+json.

    None for a fault of our own: handler500 answers that, and the log has it.
    """
    content = _content(error, context)
    if content is None:
        return None
    response = Response(content, status=content["status"], content_type="application/problem+json")
    if content["status"] == 401:
        response["WWW-Authenticate"] = 'Bearer realm="berth"'
    if content["code"] in _RETRY_AFTER_SECONDS:
        response["Retry-After"] = str(_RETRY_AFTER_SECONDS[content["code"]])
    if content["code"] == "version_changed":
        response["ETag"] = content["etag"]
    return response


def _content(error: Exception, context: dict[str, Any]) -> dict[str, Any] | None:
    """The problem of each kind of exception that the API knows."""
    if isinstance(error, DomainError):
        return problem_of(error)
    if isinstance(error, Http404):
        return body("not_found", "There is nothing here that you may see.")
    if isinstance(error, exceptions.MethodNotAllowed):
        return _method_not_allowed(context)
    if isinstance(error, (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)):
        return body("not_signed_in", "Send a token: Authorization: Bearer berth_pat_...")
    if isinstance(error, (exceptions.PermissionDenied, PermissionDenied)):
        return body("not_allowed", "This is not yours to do.")
    if isinstance(error, exceptions.ParseError):
        return body("malformed", f"The body is not JSON: {error.detail}.")
    if isinstance(error, exceptions.UnsupportedMediaType):
        return body("media_type", "Send application/json.")
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database did not answer: %s", error)
        return body("unavailable", "The database does not answer just now. Nothing was half done.")
    return None


def _method_not_allowed(context: dict[str, Any]) -> dict[str, Any]:
    """What can be done instead: what has a history is never deleted, it has deeds."""
    view = context["view"]
    deeds = list(getattr(view, "deeds", ()))
    more = f" Its deeds, each a POST below it: {', '.join(deeds)}." if deeds else ""
    sentence = f"{context['request'].method} is not for this address; {', '.join(view.allowed_methods)} are.{more}"
    return body("method_not_allowed", sentence, **({"deeds": deeds} if deeds else {}))


def problem_response(request: HttpRequest, code: str, sentence: str) -> JsonResponse:
    """The same object for places where DRF does not reach (unknown routes, crashes)."""
    content = body(code, sentence)
    return JsonResponse(content, status=content["status"], content_type="application/problem+json")
