"""How does a refusal leave the house? One table: domain error -> HTTP status, retry, problem+json."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from allocations.errors import DomainError
from allocations.events import request_id

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
    faults = [
        {k: v for k, v in vars(fault).items() if v is not None}
        for fault in error.faults
    ]
    more: dict[str, Any] = {"errors": faults} if faults else {}
    return body(error.code, error.sentence, **more, **error.detail)


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: everything that leaves the API as an error is application/problem+json."""
    if isinstance(error, DomainError):
        content = problem_of(error)
    elif isinstance(error, Http404):
        content = body("not_found", "There is nothing here that you may see.")
    elif isinstance(error, exceptions.MethodNotAllowed):
        content = body("method_not_allowed", str(error.detail))
    elif isinstance(error, (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)):
        content = body("not_signed_in", "Send a token: Authorization: Bearer berth_pat_...")
    elif isinstance(error, (exceptions.PermissionDenied, PermissionDenied)):
        content = body("not_allowed", "This is not yours to do.")
    elif isinstance(error, exceptions.ParseError):
        content = body("malformed", f"The body is not JSON: {error.detail}")
    elif isinstance(error, exceptions.UnsupportedMediaType):
        content = body("media_type", "Send application/json.")
    else:
        return None
    return Response(content, status=content["status"], content_type="application/problem+json")


def problem_response(request: HttpRequest, code: str, sentence: str) -> JsonResponse:
    """The same object for places where DRF does not reach (unknown routes, crashes)."""
    content = body(code, sentence)
    return JsonResponse(content, status=content["status"], content_type="application/problem+json")
