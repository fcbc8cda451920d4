"""Which version does the caller speak of? ETag, If-Match and If-None-Match (`"R-131:4"`: the id and its version)."""

from typing import Any

from rest_framework.request import Request

from allocations.errors import DomainError, Fault, Invalid


def etag_of(public_id: str, version: int) -> str:
    """The strong ETag of one version of an object."""
    return f'"{public_id}:{version}"'


def is_known(request: Request, etag: str) -> bool:
    """Does If-None-Match say that the caller has exactly this already?"""
    given = request.headers.get("If-None-Match", "")
    return given.strip() == "*" or etag in [each.strip().removeprefix("W/") for each in given.split(",")]


def check_match(request: Request, etag: str, current: dict[str, Any]) -> None:
    """Hold a deed to the version that If-Match names; none named: no condition.

    Raises version_changed with the current object, and Invalid for `*`, which would be no condition at all.
    """
    given = request.headers.get("If-Match")
    if given is None:
        return
    if given.strip() == "*":
        sentence = 'Name the version, such as "R-131:4"; * matches anything.'
        raise Invalid(sentence, Fault("If-Match", "invalid", sentence))
    if etag not in [each.strip() for each in given.split(",")]:
        raise DomainError(
            "version_changed",
            f"It changed since you looked: it is {etag} now.",
            detail={"etag": etag, "current": current},
        )
