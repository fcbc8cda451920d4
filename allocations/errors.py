"""What can go wrong in a deed, said with a code, a sentence a person understands, and what is missing."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """One thing wrong at one place: `pointer` is a JSON pointer into what was sent ("/spec/racks")."""

    pointer: str
    code: str
    sentence: str
    missing: float | None = None
    unit: str | None = None


@dataclass
class DomainError(Exception):
    """Base of every refusal. `code` is one of design's codes; one table in console/errors.py maps it to a status."""

    code: str
    sentence: str
    faults: tuple[Fault, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence


class Invalid(DomainError):
    """Wrong in itself, whatever the state: 400."""

    def __init__(self, sentence: str, *faults: Fault, code: str = "invalid") -> None:
        super().__init__(code=code, sentence=sentence, faults=tuple(faults))


class NotAllowed(DomainError):
    """Not yours to do: 403."""

    def __init__(self, sentence: str, code: str = "not_allowed") -> None:
        super().__init__(code=code, sentence=sentence)


class NotFound(DomainError):
    """Not there, or not visible to you: 404."""

    def __init__(self, sentence: str = "There is nothing here that you may see.") -> None:
        super().__init__(code="not_found", sentence=sentence)


class WrongState(DomainError):
    """Right deed, wrong moment: the thing is in a state from which it cannot do this. 409."""

    def __init__(self, sentence: str, code: str = "wrong_state", **detail: Any) -> None:
        super().__init__(code=code, sentence=sentence, detail=detail)
