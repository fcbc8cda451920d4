"""A push in a process of its own that a test can kill between two steps.

`python -m tests.push.killed CLUSTER NUMBER FILE`: before it writes step NUMBER (1-based), or right after it when
NUMBER ends in "+", it makes FILE and waits for ever.
Works on the database of DATABASE_URL, which is the test's own.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import django


def main(cluster_id: int, where: str, marker: Path) -> None:
    """Push once, stopping at the step."""
    django.setup()
    from django.utils import timezone

    from console.push import pipeline
    from console.push.endpoints import driver_of

    number, is_after = int(where.removesuffix("+")), where.endswith("+")

    class Stopping:
        """The real driver, but for one step."""

        def __init__(self, inner: Any) -> None:
            self.inner, self.applied = inner, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def apply(self, step: Any) -> Any:
            self.applied += 1
            if self.applied == number and not is_after:
                wait_for_the_end(marker)
            applied = self.inner.apply(step)
            if self.applied == number:
                wait_for_the_end(marker)
            return applied

    pipeline.driver_of = lambda endpoint: Stopping(driver_of(endpoint))  # type: ignore[assignment]
    print(pipeline.push(cluster_id=cluster_id, at=timezone.now()).ended)


def wait_for_the_end(marker: Path) -> None:
    marker.touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
