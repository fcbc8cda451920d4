"""Is the console well? The parts behind /healthz/ready."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone
from kombu import Connection

from console.models import Heartbeat

LATE_SECONDS = 60


def heartbeat(part: str, *, at: datetime) -> None:
    """Note that a part showed itself. A database that is away is not its fault and must not stop it."""
    try:
        Heartbeat.objects.update_or_create(part=part, defaults={"at": at})
    except DatabaseError:
        return
    finally:
        connection.close()  # this runs in the part's main process, whose children must not inherit a connection


def ready(*, at: datetime | None = None) -> tuple[int, dict[str, Any]]:
    """HTTP status and body: down (503) only without a database, degraded while another part is away."""
    at = at or timezone.now()
    parts = {"database": _database(), "broker": _broker()}
    beats: dict[str, datetime] = {}
    try:
        beats = dict(Heartbeat.objects.values_list("part", "at")) if parts["database"]["ok"] else {}
    except DatabaseError:
        parts["database"] = _part(False, "The database answers, and its tables are still being made.")
    for part in ("worker", "beat"):
        parts[part] = _seen(part, beats.get(part), at)
    if not parts["database"]["ok"]:
        return 503, {"status": "down", "parts": parts}
    status = "ok" if all(part["ok"] for part in parts.values()) else "degraded"
    return 200, {"status": status, "parts": parts}


def _part(ok: bool, sentence: str, age_seconds: float | None = None) -> dict[str, Any]:
    return {"ok": ok, "age_seconds": age_seconds, "sentence": sentence}


def _database() -> dict[str, Any]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return _part(False, "The database does not answer.")
    return _part(True, "The database answers.", 0.0)


def _broker() -> dict[str, Any]:
    try:
        with Connection(
            settings.CELERY_BROKER_URL,
            connect_timeout=2,
            transport_options={**settings.CELERY_BROKER_TRANSPORT_OPTIONS, "max_retries": 0},
        ) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=2)
    except Exception:  # every transport has its own error types
        return _part(False, "The broker does not answer: pushes start at the next sweep after it is back.")
    return _part(True, "The broker answers.", 0.0)


def _seen(part: str, at: datetime | None, now: datetime) -> dict[str, Any]:
    if at is None:
        return _part(False, f"The {part} has not shown itself yet.")
    age = max(0.0, (now - at).total_seconds())
    if age > LATE_SECONDS:
        return _part(False, f"The {part} was last seen {int(age)} seconds ago.", round(age, 1))
    return _part(True, f"The {part} is at work.", round(age, 1))
