"""Which database does one command use? That of a running `up` on the same home, else the embedded one for its own time.

A command that stands alone has no broker: a publish then goes nowhere, and the next sweep of `up` finds the rows.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from console.embedded import servers
from console.embedded.errors import SetupError
from console.embedded.layout import Layout
from console.embedded.processes import ProcessTree, stop_leftovers, take_lock
from console.embedded.record import Record
from console.embedded.schema import bring_up_to_date

_PATIENCE_SECONDS = 180.0  # a first `up` seeds its demo fleet while a command waits to join it
_NO_BROKER = "memory://"


@contextmanager
def database_for(command: str, layout: Layout) -> Iterator[None]:
    """Sets DATABASE_URL, DATABASE_OWNER_URL and CELERY_BROKER_URL for the time of one command.

    What the environment names already stays. Raises SetupError when a holder of the home neither gets ready nor ends.
    """
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        lock = take_lock(layout)
        holder = None if lock else Record.read(layout.record)
        if lock or (holder and holder.command == "up" and holder.is_ready and holder.is_alive()):
            break
        if time.monotonic() > end:
            raise SetupError(
                f"{holder.command if holder else 'another command'} keeps {layout.home} busy: try again later"
            )
        time.sleep(0.05)
    if not lock:
        _use(holder.environment if holder else {})
        yield
        return
    with lock:
        if "DATABASE_URL" in os.environ:
            lock.close()
            _use({})
            yield
        else:
            with _own_database(command, layout):
                yield


def _use(urls: dict[str, str]) -> None:
    for name, url in {"CELERY_BROKER_URL": _NO_BROKER, **urls}.items():
        # A database that the environment names comes with its own owner, or with none.
        if name != "DATABASE_OWNER_URL" or os.environ.get("DATABASE_URL") == urls.get("DATABASE_URL"):
            os.environ.setdefault(name, url)


@contextmanager
def _own_database(command: str, layout: Layout) -> Iterator[None]:
    stop_leftovers(layout)
    tree = ProcessTree(layout, command)
    try:
        postgres = servers.start_postgres(tree)
        urls = servers.finish_postgres(tree, postgres)
        bring_up_to_date({**urls, "BERTH_HOME": str(layout.home)}, servers.schema_stamp(layout), tree.run)
        _use(urls)
        yield
    finally:
        with suppress(Exception):
            _close_connections()
        for server in reversed(tree.servers):
            tree.stop(server)
        tree.close()


def _close_connections() -> None:
    from django.db import connections

    connections.close_all()
