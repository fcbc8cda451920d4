"""In which browsers is a person signed in, and how does one of them end? (Django's session store, with an owner)"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db import transaction
from django.utils.crypto import constant_time_compare

from allocations.errors import NotFound
from allocations.events import record
from allocations.models import User
from console.models import PersonSession


class SessionStore(DatabaseStore):
    """Sessions as rows that know their person."""

    @classmethod
    def get_model_class(cls) -> type[PersonSession]:
        return PersonSession

    def create_model_instance(self, data: dict[str, Any]) -> PersonSession:
        row = super().create_model_instance(data)
        assert isinstance(row, PersonSession)
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        return row


@dataclass(frozen=True)
class LivingSession:
    """One browser in which a person is signed in. `reference` names it: its key would open it, so it is never shown."""

    reference: str
    browser: str
    began_at: datetime
    seen_at: datetime
    is_this: bool


def living(*, user: User, this_key: str | None, at: datetime) -> list[LivingSession]:
    """The person's sessions that still work, the one of `this_key` first, then by when they were last used."""
    found = [
        LivingSession(
            reference=_reference(row.session_key),
            browser=str(kept.get("browser", "")),
            began_at=_moment(kept.get("began", kept["seen"])),
            seen_at=_moment(kept["seen"]),
            is_this=row.session_key == this_key,
        )
        for row in PersonSession.objects.filter(user=user, expire_date__gt=at)
        if _works(kept := row.get_decoded(), user, at)
    ]
    return sorted(found, key=lambda each: (not each.is_this, -each.seen_at.timestamp()))


@transaction.atomic
def end(*, user: User, reference: str, at: datetime) -> None:
    """Sign the person out of that browser at once. Raises NotFound for what is no session of theirs."""
    keys = PersonSession.objects.filter(user=user).values_list("session_key", flat=True)
    named = [key for key in keys if _reference(key) == reference]
    if not PersonSession.objects.filter(user=user, session_key__in=named).delete()[0]:
        raise NotFound("You have no such session.")
    record("person.session_ended", subject=("user", user.public_id), actor=user, at=at)


def _works(kept: Mapping[str, Any], user: User, at: datetime) -> bool:
    """Whether the next request would be let in: since the last password, not idle, not too old."""
    if "seen" not in kept or not constant_time_compare(kept.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return False
    idle, age = (at.timestamp() - float(kept.get(key, kept["seen"])) for key in ("seen", "began"))
    is_too_late: bool = idle > settings.SESSION_IDLE_SECONDS or age > settings.SESSION_COOKIE_AGE
    return not is_too_late


def _reference(session_key: str) -> str:
    return hashlib.sha256(session_key.encode()).hexdigest()[:16]


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
