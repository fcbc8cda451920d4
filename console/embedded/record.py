"""Which processes does the holder of a home run, and how do others reach its servers?

One JSON file, mode 0600, replaced whole. Processes are remembered with their moment of birth, so that a number which
the system has given to another program is never taken for ours.
"""

import json
import os
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

from console.embedded.guardian import is_alive


def birth(pid: int) -> str:
    """When a process was born, as the system writes it; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():
            return ""
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def command_line(pid: int) -> str:
    """The command line of a process; empty when there is none or it is a zombie."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    asked = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout


def orphans(group: int, home: Path) -> list[int]:
    """The members of a process group whose leader is gone and that work on `home` (a system without /proc shows none).

    The web server's and the worker's children outlive a killed parent and go on holding the port. Their environment
    tells them from strangers that got the same number after a restart of the machine.
    """
    mark = f"BERTH_HOME={home}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            members_group = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[2])
            if members_group == group and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile, or belongs to another user
    return found


@dataclass
class Record:
    """What one holder runs. `environment` holds the URLs for others to join with; `is_ready` says that they answer."""

    command: str
    pid: int = field(default_factory=os.getpid)
    born: str = field(default_factory=lambda: birth(os.getpid()))
    address: str = ""
    is_ready: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    processes: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Replaces the file in one step."""
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(asdict(self)))
        fresh.rename(path)

    @classmethod
    def read(cls, path: Path) -> "Record | None":
        """The record of the last holder, or None when there is none that can be read."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def is_alive(self) -> bool:
        """Whether the process that wrote this still runs."""
        return birth(self.pid) == self.born and is_alive(self.pid)

    def left_running(self, home: Path) -> list[int]:
        """The recorded processes that still run, in the order of their start, each with the orphans of its group."""
        left: list[int] = []
        for number, born in self.processes.items():
            pid = int(number)
            if born and birth(pid) == born and is_alive(pid):
                left.append(pid)
            elif born and not is_alive(pid):
                left += orphans(pid, home)
        return left
