"""Which database do tests use? A throw-away PostgreSQL, made in half a second, unless DATABASE_URL names one.

Named in addopts (-p tests.embedded_plugin): pytest-django reads the settings before any conftest.py is loaded. With
pytest-xdist only the controlling process starts the server; its workers inherit the environment.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from console.embedded.layout import Layout
from console.embedded.postgres import SUPERUSER, Postgres
from console.embedded.roles import make_roles

_started_in: list[float] = []


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
        if os.getpid() == owner:  # a forked child that ends must not take the database along
            server.send_signal(signal.SIGQUIT)  # at once: nothing here is kept
            server.wait(10)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    postgres.wait(lambda: server.poll() is None)
    make_roles(postgres.url(SUPERUSER, "postgres"))
    # Tests run as the superuser: they make databases and empty tables whose triggers refuse it to everybody else.
    os.environ["DATABASE_URL"] = postgres.url(SUPERUSER)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Starts the server before the settings are read."""
    os.environ["CELERY_BROKER_URL"] = "memory://"
    os.environ.pop("BERTH_BASE_URL", None)
    if "DATABASE_URL" not in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        began = time.perf_counter()
        _start()
        _started_in.append(time.perf_counter() - began)


def pytest_report_header() -> str | None:
    """Says so at the top of the run."""
    return f"embedded PostgreSQL started in {_started_in[0]:.2f} s" if _started_in else None
