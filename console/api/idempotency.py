"""Was this call made before? A key, kept in the same transaction as its effect, so that the same call answers the same.

Scope: token owner, method and path. Only a committed effect keeps its key; after a refusal the same key is judged
afresh. An advisory lock on the key lets one of two equal calls run and tells the other to come again.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.errors import DomainError, Fault, Invalid
from console.api.endpoint import person, token
from console.models import IdempotencyKey

KEPT = timedelta(days=7)
_VISIBLE = range(0x21, 0x7F)


@dataclass(frozen=True)
class Answer:
    """What a write answers: read in its transaction."""

    status: int
    body: dict[str, Any]
    etag: str = ""
    location: str = ""

    def response(self, *, is_replay: bool = False) -> Response:
        headers = {"ETag": self.etag, "Location": self.location, "Idempotency-Replayed": "true" if is_replay else ""}
        return Response(self.body, status=self.status, headers={key: value for key, value in headers.items() if value})


def once(request: Request, deed: Callable[[], Answer], *, at: datetime, is_required: bool = False) -> Response:
    """Do the deed and keep its answer under the call's Idempotency-Key; the same call again gets that answer.

    Without a key (where none is required) the deed is simply done in a transaction. Raises Invalid
    idempotency_key_missing, WrongState in_flight while the same call runs, idempotency_key_reused for another body.
    """
    key = _key(request, is_required)
    mark = fingerprint(request.data)
    with transaction.atomic():
        if key is None:
            return deed().response()
        lock(request, key)
        kept = _kept(request, key, at)
        if kept is not None:
            if kept.body_hash != mark:
                raise DomainError("idempotency_key_reused", "This key was used for a call with another body.")
            content = json.loads(kept.answer["body"])
            return Answer(kept.status, content, kept.etag, kept.answer["location"]).response(is_replay=True)
        answer = deed()
        _keep(request, key, mark, answer, at)
    return answer.response()


def fingerprint(content: Any) -> str:
    """SHA-256 of the canonical JSON: keys sorted, 1.0 written as 1."""
    written = json.dumps(_plain(content), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()


def lock(request: Request, key: str) -> None:
    """Take the advisory lock of this call until the transaction ends. Raises in_flight when somebody has it."""
    name = "\0".join((str(person(request).pk), request.method or "", request.path, key))
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        row = cursor.fetchone()
    if not row[0]:
        raise DomainError("in_flight", "The same call is being answered just now: ask again in a second.")


def _key(request: Request, is_required: bool) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if not key:
        if is_required or key is not None:
            sentence = "Send an Idempotency-Key, so that a call that is repeated is done once."
            raise Invalid(
                sentence,
                Fault("Idempotency-Key", "idempotency_key_missing", sentence),
                code="idempotency_key_missing",
            )
        return None
    if len(key) > 255 or any(ord(letter) not in _VISIBLE for letter in key):
        sentence = "An Idempotency-Key is 1 to 255 visible ASCII characters."
        raise Invalid(sentence, Fault("Idempotency-Key", "invalid", sentence))
    return key


def _kept(request: Request, key: str, at: datetime) -> IdempotencyKey | None:
    return IdempotencyKey.objects.filter(
        token__owner=person(request),
        method=request.method,
        path=request.path,
        key=key,
        created_at__gt=at - KEPT,
    ).first()


def _keep(request: Request, key: str, mark: str, answer: Answer, at: datetime) -> None:
    """Store the answer, and forget what this person's calls kept longer than promised.

    The body is kept as text: a JSON column would put its keys into another order, and a replay be another answer.
    """
    IdempotencyKey.objects.filter(token__owner=person(request), created_at__lte=at - KEPT).delete()
    IdempotencyKey.objects.create(
        token=token(request),
        method=request.method or "",
        path=request.path,
        key=key,
        body_hash=mark,
        status=answer.status,
        answer={"body": json.dumps(answer.body), "location": answer.location},
        etag=answer.etag,
        created_at=at,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
