"""Which database do tests use? A throw-away PostgreSQL, made in half a second, unless DATABASE_URL names one.

Named in addopts (-p tests.embedded_plugin): pytest-django reads the settings before any conftest.py is loaded. With
pytest-xdist each worker has a server of its own: transaction ids are counted across a whole server, so a long test in
one database would hold back what another seals.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from console.embedded.layout import Layout
from console.embedded.postgres import SUPERUSER, Postgres
from console.embedded.roles import make_roles

_OURS = "BERTH_TEST_SERVER"  # set beside a DATABASE_URL that names a server of this plugin
_started_in: list[float] = []
_stops: list[Callable[[], None]] = []


def _start() -> None:
    folder = Path(tempfile.mkdtemp(prefix="berth-test-"))
    folder.chmod(0o755)  # as root, the database's own account walks through
    os.environ["BERTH_HOME"] = str(folder)
    postgres = Postgres(Layout.make(folder), is_durable=False)
    postgres.prepare()
    with (folder / "logs" / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            postgres.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            **postgres.start_options(),
        )
    owner = os.getpid()

    def stop() -> None:
        # Once, and not by a forked child that ends: it must not take the database along.
        if os.getpid() == owner and server.poll() is None:
            server.send_signal(signal.SIGQUIT)  # at once: nothing here is kept
            server.wait(10)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    _stops.append(stop)
    postgres.wait(lambda: server.poll() is None)
    make_roles(postgres.url(SUPERUSER, "postgres"))
    # Tests run as the superuser: they make databases and empty tables whose triggers refuse it to everybody else.
    os.environ["DATABASE_URL"] = postgres.url(SUPERUSER)
    os.environ[_OURS] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Starts the server before the settings are read."""
    os.environ["CELERY_BROKER_URL"] = "memory://"
    os.environ.pop("BERTH_BASE_URL", None)
    if "DATABASE_URL" not in os.environ or _OURS in os.environ:
        began = time.perf_counter()
        _start()
        _started_in.append(time.perf_counter() - began)


def pytest_report_header() -> str | None:
    """Says so at the top of the run."""
    return f"embedded PostgreSQL started in {_started_in[0]:.2f} s" if _started_in else None


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stops the server: a worker of pytest-xdist ends without the interpreter's own farewell."""
    for stop in _stops:
        stop()
