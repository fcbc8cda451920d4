"""How does a program run without a shell, and without running for ever or flooding us? (run)"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from console.drivers.base import MOST_BYTES, DriverError


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left: its exit code and its two texts, undecodable bytes replaced."""

    code: int
    stdout: str
    stderr: str


def run(argv: Sequence[str], env: Mapping[str, str], *, seconds: float = 30, most_bytes: int = MOST_BYTES) -> Finished:
    """Run one program to its end, with exactly this environment and no input.

    Raises DriverError: refused (it cannot be started), timeout (it and its children are killed), partial (it wrote
    more than `most_bytes`).
    """
    if any("\0" in part for part in argv):
        raise DriverError("refused", "a command may not hold a NUL character")
    try:
        process = subprocess.Popen(
            list(argv), env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, cwd="/",
        )  # fmt: skip
    except OSError as error:
        raise DriverError("refused", f"{argv[0]} cannot be started: {error.strerror}") from None
    with process:
        try:
            stdout, stderr = _read_both(process, time.monotonic() + seconds, most_bytes, argv[0])
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise DriverError("timeout", f"{argv[0]} closed its output but did not end", retryable=True) from None
        except BaseException:
            _kill(process)
            raise
    return Finished(process.returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"))


def _read_both(
    process: "subprocess.Popen[bytes]", deadline: float, most_bytes: int, program: str
) -> tuple[bytes, bytes]:
    texts = {"stdout": bytearray(), "stderr": bytearray()}
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "stdout")  # type: ignore[arg-type]
        selector.register(process.stderr, selectors.EVENT_READ, "stderr")  # type: ignore[arg-type]
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if left <= 0 or (not ready and time.monotonic() >= deadline):
                raise DriverError("timeout", f"{program} did not answer in time", retryable=True)
            for key, _ in ready:
                piece = os.read(key.fd, 65536)
                if not piece:
                    selector.unregister(key.fileobj)
                texts[key.data] += piece
            if sum(map(len, texts.values())) > most_bytes:
                raise DriverError("partial", f"{program} wrote more than {most_bytes} bytes; nothing of it is used")
    return bytes(texts["stdout"]), bytes(texts["stderr"])


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # its own session: children go with it
