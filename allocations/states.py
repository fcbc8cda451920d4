"""What follows from what was decided? (outcome of steps and decisions, and which policy an ask meets: pure)"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["approve", "reject", "ask_changes", "offer"]
Standing = Literal["pending", "approved", "rejected", "changes_asked", "offered"]

VERDICTS: tuple[Verdict, ...] = ("approve", "reject", "ask_changes", "offer")
_ENDS: dict[str, Standing] = {"reject": "rejected", "ask_changes": "changes_asked", "offer": "offered"}

# Keys of a policy's `matches`; those of BOUNDS compare a number in the facts, the others name something.
BOUNDS = {
    "min_duration_minutes": ("duration_minutes", 1),
    "max_duration_minutes": ("duration_minutes", -1),
    "min_racks": ("racks", 1),
    "max_racks": ("racks", -1),
    "min_gpus": ("gpus", 1),
    "max_gpus": ("gpus", -1),
}
_NAMES = ("kind", "flavor", "cluster", "team")
MATCH_KEYS = frozenset(BOUNDS) | frozenset(_NAMES)


@dataclass(frozen=True, slots=True)
class Step:
    """One ordered hurdle: `quorum` different people with this role must say yes."""

    number: int
    role: str
    quorum: int = 1


@dataclass(frozen=True, slots=True)
class Said:
    """One person's recorded verdict on one step."""

    step: int
    approver: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a case stands. While pending, `step` is the open hurdle, `role` its role, `missing` how many more yes."""

    standing: Standing
    step: int | None = None
    role: str = ""
    missing: int = 0

    @property
    def is_open(self) -> bool:
        return self.standing == "pending"


def outcome(steps: Sequence[Step], decisions: Sequence[Said]) -> Outcome:
    """Where the case stands after these decisions, in the order in which they were made.

    Anything but a yes ends the case at once. One person's yes counts for one step only, the first it was given to.
    No steps: approved.
    """
    for said in decisions:
        if said.verdict in _ENDS:
            return Outcome(_ENDS[said.verdict], said.step)
    spent: set[int] = set()
    for step in sorted(steps, key=lambda step: step.number):
        yes = {said.approver for said in decisions if said.step == step.number and said.verdict == "approve"} - spent
        if len(yes) < step.quorum:
            return Outcome("pending", step.number, step.role, step.quorum - len(yes))
        spent |= yes
    return Outcome("approved")


def is_comparable(key: str, value: Any) -> bool:
    """May a rule say this of that key? Bounds are whole numbers; everything else is named by text."""
    if key in BOUNDS:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)


def matches(rule: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Does an ask with these facts meet the rule? Every key must hold; an empty rule meets everything.

    Bounds are inclusive; a fact that is not told meets no bound. `team` in the rule means the team and all below it.
    """
    for key, wanted in rule.items():
        if key in BOUNDS:
            fact, sign = BOUNDS[key]
            told = facts.get(fact)
            if told is None or sign * told < sign * wanted:
                return False
        elif key == "team":
            path = str(facts.get("team", ""))
            if path != wanted and not path.startswith(f"{wanted}/"):
                return False
        elif facts.get(key) != wanted:
            return False
    return True
