"""Who stops the servers when their supervisor is killed outright?

This tiny process does. It holds the reading end of a pipe from the supervisor; when the pipe closes without "bye" the
supervisor is gone, and every process it told of is stopped, the last started first. It runs with `python -I -S` and
imports only the standard library's smallest parts, so that it costs a few megabytes.

Lines read: "+PID SIGNAL" a process group was started; "-PID" it ended; "!JSON" a command to run first (servers that are
nobody's children are stopped by one); "bye" a clean stop.
"""

import json
import os
import signal
import subprocess
import sys
import time

_PATIENCE_SECONDS = 5.0


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie counts as dead."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        with open(f"/proc/{pid}/stat") as stat_file:
            return stat_file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return not os.path.exists("/proc/self/stat")  # gone meanwhile, or a system without /proc
    except (OSError, IndexError):
        return True


def signal_process(pid: int, number: int, whole_group: bool) -> None:
    """Sends a signal to a process or to its group; a process that is gone is no error."""
    for send in (os.killpg, os.kill) if whole_group else (os.kill,):
        try:
            send(pid, number)
            return
        except (ProcessLookupError, PermissionError):
            continue


def stop_all(watched: "dict[int, int]") -> None:
    """Stops process groups (pid -> gentle signal), the last started first; what does not end in time is killed."""
    for pid in reversed(list(watched)):
        # PostgreSQL (SIGINT) tells its backends itself; the others get the signal as a group.
        signal_process(pid, watched[pid], whole_group=watched[pid] != signal.SIGINT)
        end = time.monotonic() + _PATIENCE_SECONDS
        while is_alive(pid) and time.monotonic() < end:
            time.sleep(0.05)
        signal_process(pid, signal.SIGKILL, whole_group=True)


def main() -> None:
    """Reads lines until the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, int] = {}
    commands: list[list[str]] = []
    for line in sys.stdin:
        word = line.strip()
        if word == "bye":
            return
        if word.startswith("+"):
            pid, gentle = word[1:].split()
            watched[int(pid)] = int(gentle)
        elif word.startswith("-"):
            watched.pop(int(word[1:]), None)
        elif word.startswith("!"):
            commands.append(json.loads(word[1:]))
    for command in commands:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False)
        except (OSError, subprocess.SubprocessError):
            continue
    stop_all(watched)


if __name__ == "__main__":
    main()
