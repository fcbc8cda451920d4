"""How does a plan, and a step of it, look on a page? (one form for the plan's page and the reservation's)"""

from typing import Any

from console.models import PushStep
from console.push.record import change_words

LONGEST_VALUE = 80  # characters; the command below the words holds the whole
PLAN_SIGNS = {
    "dry_run": ("ring", "would be written"),
    "waiting": ("triangle", "waits for a yes"),
    "approved": ("half", "agreed, not yet written"),
    "applying": ("disc", "applying"),
    "applied": ("disc", "written, not yet read back"),
    "verified": ("tick", "verified"),
    "failed": ("cross", "failed"),
    "superseded": ("ring", "superseded"),
    "discarded": ("ring", "discarded"),
    "planned": ("ring", "planned"),
    "skipped": ("ring", "skipped"),
}


def plan_step(row: PushStep) -> dict[str, Any]:
    """One step as components/plan_step.html takes it, without what a scheduler answered: that may name others."""
    shape, word = PLAN_SIGNS[row.state]
    changes = [change_words(each, LONGEST_VALUE) for each in row.changes] if row.verb == "update" else []
    return {
        "number": str(row.number),
        "shape": shape,
        "state": word,
        "deed": row.verb,
        "subject": f"{row.object_class} {row.name}",
        "change": "; ".join(changes),
        "command": "\n".join(row.commands),
    }
