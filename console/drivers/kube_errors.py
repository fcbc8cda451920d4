"""What does a refusal of a Kubernetes API server mean for us? (response -> DriverError)

Statuses mislead: 403 is also what an admission webhook says, 500 is also what an unknown field in a server-side apply
gets, and 409 is three different things.
"""

import re
from collections.abc import Mapping
from typing import Any

from console.drivers.base import DriverError

_MANAGER = re.compile(r'conflict with "([^"]*)"(?: with subresource "[^"]*")?( using )?')
_UNTYPED = "failed to create typed patch object"
_BUSY = {429, 502, 503, 504}


def conflicting_managers(status: Mapping[str, Any]) -> dict[str, bool]:
    """Manager -> whether it applies (keeps claiming the field) rather than edited it once; {} for no field conflict."""
    found: dict[str, bool] = {}
    for cause in (status.get("details") or {}).get("causes") or []:
        match = _MANAGER.search(str(cause.get("message", "")))
        if cause.get("reason") == "FieldManagerConflict" and match:
            found[match[1]] = found.get(match[1], False) or match[2] is None
    return found


def refusal(cluster: str, what: str, code: int, status: Mapping[str, Any]) -> DriverError:
    """The error for an answer that is not 2xx. `what` names the deed and the object, without a secret."""
    message = str(status.get("message") or "it gave no reason")
    if code == 401:
        return DriverError("credentials", f"{cluster} does not accept Berth's credential", raw=message)
    if code == 403 and not message.startswith("admission webhook"):
        return DriverError("credentials", f"Berth's credential may not {what} on {cluster}", raw=message)
    if code == 409:
        managers = conflicting_managers(status)
        if managers:
            names = ", ".join(sorted(managers))
            return DriverError("foreign", f"{what}: {names} claims the same fields on {cluster}", raw=message)
        return DriverError("refused", f"{what}: it changed on {cluster} meanwhile", retryable=True, raw=message)
    if code in _BUSY:
        return DriverError("unreachable", f"{cluster} is too busy or not ready ({code})", retryable=True, raw=message)
    if code >= 500 and _UNTYPED not in message:
        return DriverError("unreachable", f"{cluster} failed inside ({code})", retryable=True, raw=message)
    return DriverError("refused", f"{what} was refused by {cluster}: {message[:500]}", raw=message)
