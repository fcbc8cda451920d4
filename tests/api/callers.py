"""Who calls the API in tests? A client that sends JSON with a person's token, and reads JSON back."""

import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from allocations.models import User
from console import tokens
from console.models import ApiToken

ALL = ["read", "request", "approve"]


@dataclass
class Caller:
    """One token at work. `secret` may be anything, to see what a wrong one gets."""

    secret: str | None
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, *, key: str | None = "new", **headers: str) -> HttpResponse:
        """POST as JSON; with a key of its own unless another one, or None for no key, is given."""
        if key is not None:
            headers["Idempotency-Key"] = uuid.uuid4().hex if key == "new" else key
        return self.send("POST", path, json.dumps({} if body is None else body), **headers)

    def send(self, method: str, path: str, content: "str | bytes" = b"", **headers: str) -> HttpResponse:
        """Anything at all: the method, the path below /api/v1/, raw content."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.secret is not None:
            sent.setdefault("Authorization", f"Bearer {self.secret}")
        media_type = sent.pop("Content-Type", "application/json")
        return self.client.generic(method, f"/api/v1/{path}", content, content_type=media_type, headers=sent)


def caller(user: User, scopes: list[str] | None = None) -> Caller:
    """A caller with a fresh token of this person."""
    _, secret = tokens.create(
        owner=user, name="a test", scopes=ALL if scopes is None else scopes, days=90, at=timezone.now()
    )
    return Caller(secret)


def aged(user: User, **more: datetime) -> Caller:
    """A caller whose token's row is changed afterwards: expires_at, revoked_at."""
    made = caller(user)
    ApiToken.objects.filter(owner=user).update(**more)
    return made


def expired(user: User) -> Caller:
    return aged(user, expires_at=timezone.now() - timedelta(seconds=1))


def revoked(user: User) -> Caller:
    return aged(user, revoked_at=timezone.now())


def problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The problem+json of a refusal, after its frame was looked at."""
    content: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, content["code"]) == (status, code), content
    assert response["Content-Type"] == "application/problem+json"
    assert content["status"] == status
    assert content["type"] == f"/help/errors/{code}"
    assert content["title"] and content["sentence"] and content["request_id"]
    assert content["retry"] in ("no", "same", "after_change")
    return content
