"""What is asked for? Team, cluster, allocation and spec of a preview or a request, each found or refused at its key."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework.request import Request

from allocations.errors import DomainError, Fault
from allocations.models import Allocation, Team, User
from allocations.permissions import visible_to
from allocations.public_ids import number_of
from console.api import body
from console.api.clusters import cluster_of, missing
from console.api.endpoint import person
from reservations.spec_json import spec_from

_TEAM_ID = re.compile(r"T-\d{1,18}", re.ASCII)


def is_team_id(word: str) -> bool:
    """T-17 rather than a path?"""
    return _TEAM_ID.fullmatch(word) is not None


def path_of(word: str) -> str:
    """The path of a team given by id or path; for an id that nobody has, one that no team has either."""
    if not is_team_id(word):
        return word
    return Team.objects.filter(pk=number_of(word, "T")).values_list("path", flat=True).first() or "/"


def submission(request: Request, at: datetime) -> dict[str, Any]:
    """What submit() takes, from the body of POST /reservations. Raises Invalid, NotFound."""
    content = body.sent(
        request,
        required=("team", "cluster", "spec", "purpose"),
        optional=("allocation", "funding", "at_end", "run_over_minutes", "spares"),
    )
    return {
        **subject(person(request), content, at),
        "purpose": body.text(content, "purpose"),
        "funding": body.text(content, "funding", "pool"),
        "at_end": body.text(content, "at_end", "stop"),
        "run_over_minutes": body.whole(content, "run_over_minutes"),
        "spares": body.text(content, "spares", "held"),
    }


def subject(user: User, content: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """Team, cluster, allocation and spec that a body names. A team goes by id or path.

    Raises NotFound pointing at the key of what the person may not see, Invalid for a spec that is wrong in itself.
    """
    return {
        "team": _team(user, body.text(content, "team")),
        "cluster": cluster_of(user, body.text(content, "cluster"), "/cluster"),
        "allocation": _allocation(user, body.text(content, "allocation")) if "allocation" in content else None,
        "spec": spec_from(content["spec"], at=at),
    }


def as_faults(faults: tuple[Fault, ...]) -> list[dict[str, Any]]:
    """Faults as they stand under `errors`."""
    return [{key: value for key, value in vars(fault).items() if value is not None} for fault in faults]


def _team(user: User, word: str) -> Team:
    rows = visible_to(user, Team)
    found: Team | None = (rows.filter(pk=number_of(word, "T")) if is_team_id(word) else rows.filter(path=word)).first()
    if found is None:
        raise missing(f"There is no team {word[:80]!r} that you may see.", "/team")
    return found


def _allocation(user: User, word: str) -> Allocation:
    try:
        found: Allocation | None = visible_to(user, Allocation).filter(pk=number_of(word, "A")).first()
    except DomainError:
        found = None
    if found is None:
        raise missing(f"There is no allocation {word[:40]!r} that you may see.", "/allocation")
    return found
