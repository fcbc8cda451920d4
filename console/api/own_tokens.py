"""GET and DELETE /tokens: which tokens has the caller, and away with one. They are made in a browser session only."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from allocations.errors import DomainError, NotFound
from console import tokens
from console.api import lists
from console.api.endpoint import Endpoint, person, token
from console.models import ApiToken
from reservations.moments import text_of

_ORDERABLE = {"id": "pk", "created_at": "created_at", "expires_at": "expires_at"}


class Tokens(Endpoint):
    """The caller's own tokens, newest first; never a secret."""

    parameters = lists.PARAMETERS

    def get(self, request: Request) -> Response:
        asked = lists.asked(request, orderable=_ORDERABLE, default="-id")
        return lists.answer(asked, ApiToken.objects.filter(owner=person(request)), shapes)


class OneToken(Endpoint):
    """One of the caller's own tokens, by its prefix."""

    scopes: ClassVar[Mapping[str, str]] = {"GET": "read", "DELETE": ""}

    def get(self, request: Request, prefix: str) -> Response:
        return Response(shapes([_own(request, prefix)])[0])

    def delete(self, request: Request, prefix: str) -> Response:
        """Revoke it at once. A token may always end itself; another one only with the scope request."""
        row = _own(request, prefix)
        if row.pk != token(request).pk and "request" not in token(request).scopes:
            raise DomainError("scope_missing", "This token lacks the scope request: it can revoke only itself.")
        if row.revoked_at is None:
            tokens.revoke(owner=person(request), prefix=prefix, at=self.at)
        return Response(shapes([_own(request, prefix)])[0])


def shapes(rows: Sequence[ApiToken]) -> list[dict[str, Any]]:
    """The JSON objects of tokens."""
    return [
        {
            "prefix": row.prefix,
            "name": row.name,
            "scopes": row.scopes,
            "created_at": text_of(row.created_at),
            "expires_at": text_of(row.expires_at),
            "last_used_at": None if row.last_used_at is None else text_of(row.last_used_at),
            "revoked_at": None if row.revoked_at is None else text_of(row.revoked_at),
        }
        for row in rows
    ]


def _own(request: Request, prefix: str) -> ApiToken:
    row = ApiToken.objects.filter(owner=person(request), prefix=prefix).first()
    if row is None:
        raise NotFound()
    return row
