"""The Celery application: messages only wake; the rows are the truth.

Worker and beat show that they are alive from their main processes, not through a task: a worker that is busy with a
slow cluster is alive.
"""

import os
import time
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, heartbeat_sent, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

app = Celery("console")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["console"])

_EVERY_SECONDS = 10
_shown: dict[str, float] = {}


def _show(part: str) -> None:
    """Note the part as alive, at most every few seconds."""
    from django.utils import timezone

    from console import health

    if time.monotonic() - _shown.get(part, -_EVERY_SECONDS) >= _EVERY_SECONDS:
        _shown[part] = time.monotonic()
        health.heartbeat(part, at=timezone.now())


@worker_ready.connect
@heartbeat_sent.connect
def _worker_is_alive(**_: Any) -> None:
    _show("worker")


@before_task_publish.connect(sender="console.tasks.sweep")
def _beat_is_alive(**_: Any) -> None:
    """Only beat publishes the sweep."""
    _show("beat")
