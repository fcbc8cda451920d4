"""How does a Kubernetes API server say no? (Refusal: an HTTP status with a Status body)"""

from typing import Any

Json = dict[str, Any]


class Refusal(Exception):
    """An answer that is not 2xx, in the words of a real API server."""

    def __init__(self, code: int, reason: str, message: str, causes: list[Json] | None = None, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        if causes:
            details["causes"] = causes
        if details:
            self.body["details"] = details


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Json:
    """One wrong field of a 422."""
    return {"reason": reason, "message": message, "field": field}


def invalid(who: str, name: str, causes: list[Json], **details: Any) -> Refusal:
    """422 with its causes; `who` is Kind.group."""
    texts = [f"{each['field']}: {each['message']}" for each in causes]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Refusal(422, "Invalid", f'{who} "{name}" is invalid: {told}', causes, name=name, **details)
