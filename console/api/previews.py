"""POST /reservations/preview: would it fit, where, at what cost, who decides; or why not, and what would fit?"""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from console.api import asks, body
from console.api.clusters import or_null
from console.api.endpoint import Endpoint, person
from reservations.answers_json import placement_to, refusal_to
from reservations.budget import Cost
from reservations.services.preview import ApprovalPreview, Preview, preview


class Previews(Endpoint):
    """Writes nothing; 200 for yes and for no."""

    verb = "reservation.preview"
    scopes: ClassVar[Mapping[str, str]] = {"POST": "read"}

    def post(self, request: Request) -> Response:
        content = body.sent(request, required=("team", "cluster", "spec"), optional=("allocation", "explain"))
        found = preview(
            **asks.subject(person(request), content, self.at),
            user=person(request),
            at=self.at,
            with_drawings=False,
        )
        return Response(shape(found, with_alternatives=body.truth(content, "explain", True)))


def shape(found: Preview, *, with_alternatives: bool = True) -> dict[str, Any]:
    """The JSON object of a preview. `can_be_asked` is false where a rule in `errors` refuses what fits."""
    content: dict[str, Any] = {
        "fits": found.fits,
        "can_be_asked": found.can_be_asked,
        "errors": asks.as_faults(found.faults),
    }
    if found.placement is not None:
        content |= {
            "placement": placement_to(found.placement),
            "cost": None if found.cost is None else _cost(found.cost),
            "approval": None if found.approval is None else _approval(found.approval),
        }
    if found.refusal is not None:
        refusal = refusal_to(found.refusal)
        content["refusal"] = refusal if with_alternatives else {**refusal, "alternatives": []}
    content["as_of"] = {"generation": found.as_of.generation, "observed_at": or_null(found.as_of.observed_at)}
    return content


def _cost(cost: Cost) -> dict[str, Any]:
    """Amounts with their unit in the key; "unlimited" where the allocation has no limit, null where none pays."""
    left: float | str | None = None
    if cost.left_after_gpu_hours is not None:
        left = float(cost.left_after_gpu_hours)
    elif cost.allocation is not None:
        left = "unlimited"
    return {
        "held_gpus": cost.held_gpus,
        "use_gpus": cost.use_gpus,
        "gpu_hours": float(cost.gpu_hours),
        "allocation": cost.allocation.public_id if cost.allocation else None,
        "left_after_gpu_hours": left,
    }


def _approval(approval: ApprovalPreview) -> dict[str, Any]:
    return {
        "automatic": approval.is_automatic,
        "policy": approval.policy,
        "policy_version": approval.policy_version,
        "steps": [{"role": role, "quorum": quorum} for role, quorum in approval.steps],
        "hold_minutes": approval.hold_minutes,
    }
