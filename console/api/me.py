"""GET /me: who is calling, in which roles, with which scopes and limits, and what may they approve?"""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from allocations.models import Membership, RoleGrant
from console.api.body import MAX_BODY_BYTES, MAX_DEPTH
from console.api.endpoint import Endpoint, person, token
from console.api.lists import MOST
from reservations.moments import text_of


class Me(Endpoint):
    """The token's owner as the API sees them now; four queries with those of the token."""

    def get(self, request: Request) -> Response:
        who, held = person(request), token(request)
        memberships = Membership.objects.filter(user=who, ended_at=None, team__archived_at=None)
        grants = RoleGrant.objects.filter(user=who, ended_at=None).select_related("team", "cluster")
        roles = [
            {
                "role": grant.role,
                "team": grant.team.path if grant.team else None,
                "cluster": grant.cluster.name if grant.cluster else None,
            }
            for grant in grants.order_by("role", "team__path", "cluster__name", "pk")
        ]
        decides = "approve" in held.scopes
        content: dict[str, Any] = {
            "id": who.public_id,
            "name": who.name,
            "email": who.email,
            "zone": who.zone,
            "teams": [
                {"id": each.team.public_id, "path": each.team.path, "role": each.role}
                for each in memberships.select_related("team").order_by("team__path", "pk")
            ],
            "roles": roles,
            "scopes": held.scopes,
            "may_approve": [
                {"team": each["team"], "cluster": each["cluster"]}
                for each in roles
                if decides and each["role"] == RoleGrant.Role.APPROVER
            ],
            "token": {"prefix": held.prefix, "name": held.name, "expires_at": text_of(held.expires_at)},
            "limits": {"body_bytes": MAX_BODY_BYTES, "json_depth": MAX_DEPTH, "list_items": MOST},
        }
        return Response(content)
