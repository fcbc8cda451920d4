"""Which refusals are the calendar's own? (they carry the planner's answer beside code and sentence)"""

from typing import Any

from allocations.errors import DomainError, Fault, WrongState
from scheduling.answers import Refusal


class DoesNotFit(DomainError):
    """The ask fits nowhere in its window. `refusal` says why and what would fit instead."""

    def __init__(self, refusal: Refusal, detail: dict[str, Any]) -> None:
        sentence = " ".join(reason.sentence for reason in refusal.reasons)
        super().__init__(code="does_not_fit", sentence=sentence, detail=detail)
        self.refusal = refusal


class LimitReached(DomainError):
    """The ask would fit but may not be: no_allocation, budget_short or policy_limit, each fault with its number."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(code=faults[0].code, sentence=faults[0].sentence, faults=faults)


def placement_gone(sentence: str, **detail: Any) -> WrongState:
    """Somebody or something else took the place between the look and the deed."""
    return WrongState(sentence, code="placement_gone", **detail)
