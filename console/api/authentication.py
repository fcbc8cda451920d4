"""Who is calling? A bearer token; never a cookie, never a query string."""

from typing import TYPE_CHECKING

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from allocations.errors import DomainError
from allocations.models import User
from console import tokens
from console.models import ApiToken

if TYPE_CHECKING:  # at run time the framework's views would import this module in turn
    from rest_framework.views import APIView

_USED_EVERY_SECONDS = 60


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer berth_pat_...`; expired and revoked tokens have codes of their own."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            return None
        token = tokens.find(secret.strip())
        if token is None or not token.owner.is_active:
            raise DomainError("not_signed_in", "This token is not known here.")
        now = timezone.now()
        if token.revoked_at is not None:
            raise DomainError("token_revoked", "This token was revoked.")
        if token.expires_at <= now:
            raise DomainError("token_expired", "This token has expired: make a new one on your account page.")
        if token.last_used_at is None or (now - token.last_used_at).total_seconds() > _USED_EVERY_SECONDS:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="berth"'


class HasScope(BasePermission):
    """The token carries the scope that the view names for this method (`scopes = {"GET": "read"}`; "" is any)."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not isinstance(request.auth, ApiToken):
            return False
        needed = getattr(view, "scopes", {}).get(request.method or "", "read")
        if needed and needed not in request.auth.scopes:
            raise DomainError("scope_missing", f"This token lacks the scope {needed}.")
        return True
