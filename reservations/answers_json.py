"""How do the planner's answers leave as JSON? (placement, refusal, reasons, alternatives: the API's shapes)"""

from typing import Any

from reservations.disclosure import DisclosedReason, DisclosedRefusal
from reservations.moments import moment_of, text_of
from reservations.spec_json import spec_to
from scheduling.answers import Placement
from scheduling.hostlist import fold


def placement_to(placement: Placement) -> dict[str, Any]:
    """The JSON object of a placement; node lists are host lists."""
    return {
        "cluster": placement.cluster,
        "racks": list(placement.racks),
        "nodes": fold(placement.nodes),
        "spares": fold(placement.spares),
        "node_count": len(placement.nodes),
        "start_at": text_of(moment_of(placement.start_minute)),
        "end_at": text_of(moment_of(placement.end_minute)),
        "score": dict(placement.score),
        "jobs": list(placement.jobs),
    }


def refusal_to(refusal: DisclosedRefusal) -> dict[str, Any]:
    """The JSON object of a refusal as one person may read it."""
    return {
        "reasons": [_reason_to(reason) for reason in refusal.reasons],
        "alternatives": [
            {"kind": one.kind, "spec": spec_to(one.spec), "placement": placement_to(one.placement)}
            for one in refusal.alternatives
        ],
    }


def _reason_to(reason: DisclosedReason) -> dict[str, Any]:
    return {
        "code": reason.code,
        "missing": reason.missing,
        "unit": reason.unit,
        "by": [
            {
                "kind": cause.kind,
                "id": cause.id,
                "team": cause.team,
                "until_at": None if cause.until_at is None else text_of(cause.until_at),
            }
            for cause in reason.by
        ],
        "until_at": None if reason.until_at is None else text_of(reason.until_at),
        "sentence": reason.sentence,
    }
