"""GET /me: who is calling, in which roles, with which scopes?"""

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from allocations.permissions import rights


class Me(APIView):
    """The token's owner as the API sees them now."""

    scopes: ClassVar[dict[str, str]] = {"GET": "read"}

    def get(self, request: Request) -> Response:
        person = request.user
        held = rights(person)
        answer: dict[str, Any] = {
            "id": person.public_id,
            "name": person.name,
            "email": person.email,
            "zone": person.zone,
            "teams": [
                *({"path": path, "role": "lead"} for path in sorted(held.lead_paths)),
                *({"path": path, "role": "member"} for path in sorted(held.member_paths)),
            ],
            "roles": sorted({role for role, _, _ in held.grants}),
            "scopes": request.auth.scopes,
        }
        return Response(answer)
