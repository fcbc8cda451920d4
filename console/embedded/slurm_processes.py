"""Which daemons did a local Slurm start, are they alive, and how do they end? (Daemons: a record on disk)

A pid alone says nothing after a reboot or a wrap, so every pid is kept with the start time that /proc gives it, and
nothing is ever signalled unless both agree. Daemons also carry a mark in their environment: what a killed
supervisor could not write down any more is still found by it.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MARK = "BERTH_LOCAL_SLURM"
_POLL_SECONDS = 0.05


class LocalSlurmError(RuntimeError):
    """The local Slurm could not be started or asked. `code` is stable, `sentence` says what is missing."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


def start_time(pid: int) -> str | None:
    """The kernel's start time of a living process, None when it is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def wait_until(is_true: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until the answer is yes; False when the seconds are over."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


class Daemons:
    """The daemons of one local Slurm, recorded in `record` (JSON: name -> [pid, start time])."""

    def __init__(self, record: Path, logs: Path, mark: str) -> None:
        self._record, self._logs, self._mark = record, logs, mark
        self._children: list[subprocess.Popen[bytes]] = []

    def _read(self) -> dict[str, tuple[int, str]]:
        try:
            return {name: (int(pid), str(began)) for name, (pid, began) in json.loads(self._record.read_text()).items()}
        except (OSError, ValueError):
            return {}

    def _write(self, entries: Mapping[str, tuple[int, str]]) -> None:
        draft = self._record.with_suffix(".new")
        draft.write_text(json.dumps(entries, indent=1))
        draft.replace(self._record)

    def is_alive(self, name: str) -> bool:
        """Whether the process recorded under this name still is that process."""
        pid, began = self._read().get(name, (0, ""))
        return bool(pid) and start_time(pid) == began

    def names(self) -> tuple[str, ...]:
        return tuple(self._read())

    def spawn(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], is_ready: Callable[[], bool], seconds: float
    ) -> None:
        """Start a daemon and wait until it answers. Raises LocalSlurmError with the tail of its output."""
        log = self._logs / f"{name}.out"
        with log.open("ab") as out:
            process = subprocess.Popen(
                argv, env={**env, MARK: self._mark}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, cwd=self._logs,
            )  # fmt: skip
        self._children.append(process)
        self._write({**self._read(), name: (process.pid, start_time(process.pid) or "")})
        if wait_until(lambda: process.poll() is not None or is_ready(), seconds) and process.poll() is None:
            return
        end = "ended" if process.poll() is not None else f"was not ready in {seconds:.0f} s"
        tail = log.read_text(errors="replace")[-1500:]
        raise LocalSlurmError("daemon_failed", f"{name} {end}; its last words: {tail.strip() or 'none'}")

    def stop(self, name: str, seconds: float = 20) -> None:
        """End one daemon, by force when it does not listen, and forget it."""
        entries = self._read()
        pid, began = entries.pop(name, (0, ""))
        if pid:
            end_process(pid, began, seconds)
            self._forget_ended()
        self._write(entries)

    def sweep(self, seconds: float = 5) -> None:
        """End what carries our mark and stands in no record: leftovers of a supervisor that was killed."""
        for pid, began in list(self._marked()):
            end_process(pid, began, seconds)
        self._forget_ended()

    def _forget_ended(self) -> None:
        self._children = [process for process in self._children if process.poll() is None]

    def _marked(self) -> Iterator[tuple[int, str]]:
        wanted = f"{MARK}={self._mark}".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            began = start_time(int(entry.name))
            if wanted in variables and began:
                yield int(entry.name), began


def end_process(pid: int, began: str, seconds: float) -> None:
    """SIGTERM, and SIGKILL after `seconds`; does nothing unless pid and start time are still the same process."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if start_time(pid) != began:
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        if wait_until(lambda: _is_gone(pid, began), seconds):
            return


def _is_gone(pid: int, began: str) -> bool:
    with suppress(ChildProcessError):  # ours to reap only when it is our child
        os.waitpid(pid, os.WNOHANG)
    return start_time(pid) != began
