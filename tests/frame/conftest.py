"""What do the tests of the frame share? Homes that the database's own account can enter, and a running `up`."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.embedded.guardian import is_alive
from console.embedded.layout import CHECKOUT
from console.embedded.record import Record

PATIENCE_SECONDS = 120.0


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Returns when a condition holds; fails with `what` when it never does."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"waited in vain: {what}")
        time.sleep(0.02)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder for BERTH_HOME. The ones of pytest are closed to the account that runs PostgreSQL for root."""
    folder = Path(tempfile.mkdtemp(prefix="berth-frame-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Up:
    """`manage.py up` on one home, in a process of its own, and what a person at the terminal can do with it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.output = home / "up.out"
        self.process: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        """As after the bootstrap, without what the test run itself set."""
        unset = ("DATABASE_URL", "CELERY_BROKER_URL", "BERTH_BASE_URL", "PYTHONDONTWRITEBYTECODE")
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        return {**inherited, "BERTH_HOME": str(self.home), "BERTH_PORT": str(self.port)}

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command, to its end."""
        line = [sys.executable, "-m", "console.embedded.entrance", *arguments]
        return subprocess.run(
            line, env=self.environment(), cwd=CHECKOUT, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )

    def launch(self) -> None:
        """Starts it, without waiting."""
        line = [sys.executable, "-m", "console.embedded.entrance", "up"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                line, env=self.environment(), cwd=CHECKOUT, stdout=output, stderr=output, start_new_session=True
            )

    def start(self) -> "Up":
        """Starts and waits until it is ready."""
        self.launch()
        wait_for(lambda: self.is_ready() or self.process is None or self.process.poll() is not None, "up gets ready")
        assert self.is_ready(), self.said()
        return self

    def said(self) -> str:
        """What it printed, and the ends of the logs."""
        logs = "".join(
            f"\n== {log.name}\n{log.read_text()[-2000:]}" for log in sorted((self.home / "logs").glob("*.log"))
        )
        return self.output.read_text() + logs

    def record(self) -> Record:
        """What it runs."""
        record = Record.read(self.home / "running.json")
        assert record is not None, self.said()
        return record

    def is_ready(self) -> bool:
        """Whether the process that was started last says so."""
        record = Record.read(self.home / "running.json")
        return bool(
            record and self.process and record.pid == self.process.pid and record.is_ready and record.is_alive()
        )

    def pids(self) -> list[int]:
        """The supervisor and everything that it started."""
        record = self.record()
        return [record.pid, *map(int, record.processes)]

    def answers(self) -> bool:
        """Whether the web server gives an answer of any kind."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz/live", timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def kill(self, *pids: int) -> None:
        """kill -9."""
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if self.process and self.process.pid in pids:
            self.process.wait()

    def stop(self) -> int | None:
        """Ctrl-C; the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def up_of_module(home: Path) -> Iterator[Up]:
    """One `up` for the tests of a file, stopped after them whatever happened."""
    up = Up(home)
    yield up
    pids = up.pids() if (home / "running.json").exists() else []
    up.stop()
    wait_for(lambda: not any(map(is_alive, pids)), "everything has stopped")


@pytest.fixture
def running(up_of_module: Up) -> Up:
    """That `up`, ready: started again where the test before has stopped or killed it."""
    return up_of_module if up_of_module.is_ready() else up_of_module.start()
