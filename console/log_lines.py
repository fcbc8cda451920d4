"""How does a line of the log look? With the id of its request, and without a traceback of what a stranger sent."""

import logging
from copy import copy
from typing import Any

from django.apps import apps
from django.core.exceptions import BadRequest, SuspiciousOperation

_REFUSED = (BadRequest, SuspiciousOperation)


class Line(logging.Formatter):
    """The format may name `request_id`: the request's that is being answered, or was; "-" outside of requests."""

    def format(self, record: logging.LogRecord) -> str:
        line = copy(record)  # other handlers keep theirs
        line.request_id = _present() or _id_of(getattr(record, "request", None)) or "-"
        if record.exc_info and isinstance(record.exc_info[1], _REFUSED):
            line.exc_info = line.exc_text = None
        return super().format(line)


def _present() -> str:
    """The id of the request that is being answered; Django reads this file before there are models."""
    if not apps.ready:
        return ""
    from allocations.events import request_id

    return request_id.get()


def _id_of(request: Any) -> str:
    """The id that console.middleware.RequestId gave: Django tells of an answer when all middleware is done."""
    return str(getattr(request, "META", {}).get("REQUEST_ID", ""))
