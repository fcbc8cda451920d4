"""How is the embedded PostgreSQL made, started and reached?

The superuser `postgres` exists for making the database and its two roles; console.embedded.roles says who may do what.
The server listens on a socket alone, in a folder that only its account can enter.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from console.embedded.binaries import find_postgres
from console.embedded.errors import SetupError
from console.embedded.layout import Layout, is_reachable, is_root, server_account
from console.embedded.record import command_line

SUPERUSER = "postgres"
_BUILTIN_LOCALE_SINCE = 17


class Postgres:
    """One PostgreSQL cluster below a home. `is_durable=False` trades crash safety for speed: tests only."""

    def __init__(self, layout: Layout, is_durable: bool = True) -> None:
        self.layout = layout
        self.is_durable = is_durable
        self.data = layout.database_home / "pg" / "data"
        self.socket_folder = layout.run / "pg"
        self.programs = find_postgres()
        self.is_new = False
        self.run_as: dict[str, Any] = {}
        if is_root():
            account = server_account()
            self.run_as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C" if sys.platform == "darwin" else "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(layout.database_home),
        }

    def url(self, role: str, database: str = "berth") -> str:
        """A connection URL for one role."""
        return f"postgresql://{role}@{quote(str(self.socket_folder), safe='')}/{database}"

    def prepare(self) -> bool:
        """Stops a leftover server and makes the cluster where there is none; True when it was made now."""
        self._make_folders()
        if is_root():
            self._copy_programs_within_reach()
        self.stop_leftover()
        self.is_new = not (self.data / "PG_VERSION").exists()
        if self.is_new:
            self._initdb()
        made_by = (self.data / "PG_VERSION").read_text().strip()
        if made_by != str(self._major()):
            raise SetupError(
                f"{self.data} was made by PostgreSQL {made_by} and the programs are {self._major()}: "
                "`manage.py dump FILE` with the old programs (BERTH_PG_BIN), move the folder away, then "
                "`manage.py restore FILE`"
            )
        return self.is_new

    def command(self) -> list[str]:
        """The command that runs the server in the foreground."""
        options = ["shared_buffers=64MB", "max_connections=100", "listen_addresses=", "log_min_messages=warning"]
        options += ["log_timezone=UTC", "timezone=UTC"]
        if not self.is_durable:
            options += ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        elif sys.platform == "linux":
            options.append("recovery_init_sync_method=syncfs")
        switches = [word for option in options for word in ("-c", option)]
        return [str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.socket_folder), *switches]

    def start_options(self) -> dict[str, Any]:
        """Keyword arguments for Popen: account, environment and working folder of the server."""
        return {**self.run_as, "env": self.environment, "cwd": self.socket_folder}

    def wait(self, is_running: Callable[[], bool], seconds: float = 60.0) -> None:
        """Returns when the server answers. Raises SetupError when it ended or stays silent."""
        import psycopg

        end = time.monotonic() + seconds
        while True:
            try:
                psycopg.connect(self.url(SUPERUSER, "postgres"), connect_timeout=3).close()
                return
            except psycopg.OperationalError as error:
                if not is_running() or time.monotonic() > end:
                    log = self.layout.logs / "postgres.log"
                    raise SetupError(f"PostgreSQL did not start: {error}; see {log}") from error
                time.sleep(0.03)

    def stop_leftover(self, seconds: float = 30.0) -> None:
        """Stops a server that outlived its supervisor and removes the lock files of a dead one.

        PostgreSQL asks only whether the number in its lock file belongs to any process, so that a zombie, or another
        program that got the number after a restart of the machine, would keep it from starting for good.
        """
        socket = self.socket_folder / ".s.PGSQL.5432"
        for lock in (self.data / "postmaster.pid", socket.with_name(socket.name + ".lock")):
            try:
                pid = int(lock.read_text().split("\n", 1)[0])
            except (OSError, ValueError):
                continue
            end = time.monotonic() + seconds
            if str(self.data) in command_line(pid):
                os.kill(pid, signal.SIGINT)
            while str(self.data) in command_line(pid):
                if time.monotonic() > end:
                    raise SetupError(f"PostgreSQL {pid} on {self.data} does not stop: end it, then try again")
                time.sleep(0.05)
            lock.unlink(missing_ok=True)
        socket.unlink(missing_ok=True)

    def _major(self) -> int:
        answer = subprocess.check_output([self.programs / "postgres", "--version"], text=True)
        return int(answer.split()[2].split(".")[0])

    def _make_folders(self) -> None:
        for folder in (self.data.parent, self.socket_folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.run_as:
                os.chown(folder, self.run_as["user"], self.run_as["group"])
        if self.run_as:
            self.data.parent.chmod(0o711)

    def _initdb(self) -> None:
        # Made beside and renamed, so that a first start killed half-way leaves no half cluster. The built-in locale
        # sorts the same on every system and needs none to be installed.
        fresh = self.data.with_name("data.new")
        shutil.rmtree(fresh, ignore_errors=True)
        command = [str(self.programs / "initdb"), "-D", str(fresh), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8"]
        command.append("--locale=C")
        if self._major() >= _BUILTIN_LOCALE_SINCE:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        # Files are made durable by the first checkpoint's sync; syncing each while making them costs seconds.
        command.append("--no-sync")
        made = subprocess.run(command, capture_output=True, text=True, check=False, **self.start_options())
        if made.returncode:
            raise SetupError(f"initdb failed:\n{made.stdout}{made.stderr}")
        if self.is_durable:
            os.sync()
        fresh.rename(self.data)

    def _copy_programs_within_reach(self) -> None:
        """The programs may lie below a folder that only root can enter: copies them once, by version."""
        if is_reachable(self.programs, server_account()):
            return
        package = self.programs.parent.parent
        stamp = f"{self.programs}{(self.programs / 'postgres').stat().st_mtime_ns}"
        copy = self.data.parent / f"programs-{hashlib.sha256(stamp.encode()).hexdigest()[:10]}"
        if not copy.exists():
            fresh = copy.with_name("programs.new")
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(self.programs.parent, fresh / package.name / self.programs.parent.name, symlinks=True)
            # The wheel's own libraries lie in a sibling folder, found relative to the programs.
            libraries = package.with_name(package.name + ".libs")
            if libraries.is_dir():
                shutil.copytree(libraries, fresh / libraries.name)
            fresh.rename(copy)
        self.programs = copy / package.name / self.programs.parent.name / "bin"


def client_program(name: str) -> Path:
    """psql, pg_dump or pg_restore beside the server's programs, else on PATH. Raises SetupError."""
    beside = find_postgres() / name
    found = beside if beside.exists() else shutil.which(name)
    if not found:
        raise SetupError(f"{name} is not installed (Debian: apt-get install postgresql-client)")
    return Path(found)
