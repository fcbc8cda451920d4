"""How are the servers of one home started, watched and stopped, so that nothing is ever left behind?

Each process has a session of its own: Ctrl-C reaches only the one that holds the tree, which then stops things in
order. A guardian (console.embedded.guardian) does it when the holder is killed, and the record lets the next holder
stop what even the guardian could not.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from console.embedded import guardian
from console.embedded.layout import CHECKOUT, Layout
from console.embedded.record import Record, birth


def take_lock(layout: Layout) -> IO[str] | None:
    """The lock of a home, or None while another process holds it; closing the file, or dying, frees it."""
    file = layout.lock.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def stop_leftovers(layout: Layout) -> int:
    """Stops what an earlier holder left running; the number of such processes."""
    record = Record.read(layout.record)
    left = record.left_running(layout.home) if record else []
    # A guardian may be at it already: the gentle round gives it time.
    for number, seconds in ((signal.SIGINT, 10.0), (signal.SIGKILL, 5.0)):
        for pid in reversed(left):
            if guardian.is_alive(pid):
                guardian.signal_process(pid, number, whole_group=number == signal.SIGKILL)
        end = time.monotonic() + seconds
        while any(guardian.is_alive(pid) for pid in left) and time.monotonic() < end:
            time.sleep(0.05)
    return len(left)


@dataclass
class Server:
    """One process of the tree and how it likes to be stopped."""

    name: str
    command: Sequence[str]
    stop_signal: int = signal.SIGTERM
    patience_seconds: float = 20.0
    environment: dict[str, str] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    failures: int = 0
    again_at: float = 0.0

    def is_running(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.poll() is None


class ProcessTree:
    """The servers of one holder, in the order in which they were started."""

    def __init__(self, layout: Layout, command: str) -> None:
        self.layout = layout
        self.servers: list[Server] = []
        self._commands: list[subprocess.Popen[str]] = []
        self.record = Record(command=command)
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guardian.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/",
        )
        self.write_record()

    def start(self, server: Server) -> Server:
        """Starts a server, for the first time or again; its output goes to a log file of its name."""
        with (self.layout.logs / f"{server.name}.log").open("ab") as log:
            server.process = subprocess.Popen(
                list(server.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **{"env": server.environment, "cwd": CHECKOUT, **server.options},
            )
        server.started_at = time.monotonic()
        if server not in self.servers:
            self.servers.append(server)
        self._tell(f"+{server.process.pid} {int(server.stop_signal)}")
        self.write_record()
        return server

    def run(
        self, command: Sequence[str], environment: dict[str, str], goes_on: Callable[[], bool] = lambda: True
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a command to its end, in the tree like a server: whoever kills the holder ends it too.

        `goes_on` is asked ten times a second; once it says no the command is stopped.
        """
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment,
            cwd=CHECKOUT,
        )
        self._commands.append(process)
        self._tell(f"+{process.pid} {int(signal.SIGTERM)}")
        self.write_record()
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(timeout=0.1)
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
                if not goes_on():
                    process.terminate()
        finally:
            if process.poll() is None:
                guardian.signal_process(process.pid, signal.SIGKILL, whole_group=True)
                process.wait()
            self._tell(f"-{process.pid}")
            self._commands.remove(process)
            self.write_record()

    def forget(self, server: Server) -> None:
        """Takes note that a server ended by itself, and ends the orphans it left (pool children, backends)."""
        if server.process is None:
            return
        self._tell(f"-{server.process.pid}")
        guardian.signal_process(server.process.pid, signal.SIGKILL, whole_group=True)
        server.process = None

    def stop(self, server: Server, is_hurried: bool = False) -> None:
        """Stops one server, gently at first."""
        if server.process is None:
            return
        if server.process.poll() is None:
            server.process.send_signal(server.stop_signal)
            try:
                server.process.wait(1.0 if is_hurried else server.patience_seconds)
            except subprocess.TimeoutExpired:
                guardian.signal_process(server.process.pid, signal.SIGKILL, whole_group=True)
                server.process.wait()
        self.forget(server)

    def at_death(self, command: Sequence[str]) -> None:
        """A command that the guardian runs first when this process is killed: for servers that are not its children."""
        self._tell("!" + json.dumps(list(command)))

    def close(self) -> None:
        """Ends the guardian and the record. Every server must have been stopped."""
        self.layout.record.unlink(missing_ok=True)
        self._tell("bye")
        if self._guardian.stdin:
            self._guardian.stdin.close()
        self._guardian.wait(10)

    def write_record(self) -> None:
        """Writes what runs now."""
        running = [
            process.pid for process in (*(server.process for server in self.servers), *self._commands) if process
        ]
        self.record.processes = {str(pid): birth(pid) for pid in (self._guardian.pid, *running)}
        self.record.write(self.layout.record)

    def _tell(self, line: str) -> None:
        try:
            if self._guardian.stdin:
                self._guardian.stdin.write(line + "\n")
                self._guardian.stdin.flush()
        except (BrokenPipeError, ValueError):
            # Somebody killed the guardian: the record still lets the next holder clean up.
            pass


def python_environment(extra: dict[str, str]) -> dict[str, str]:
    """The environment of our own processes: the caller's, the settings module, our folder as a path, and `extra`."""
    paths = [str(CHECKOUT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    return {"DJANGO_SETTINGS_MODULE": "console.settings", **os.environ, **ours, **extra}
