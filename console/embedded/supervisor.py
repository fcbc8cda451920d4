"""What does `manage.py up` run? Database, broker, web, worker and beat, in the foreground, until Ctrl-C.

Each part is started again when it ends. A second `up` on the same home is refused; one after a crash first stops what
was left running.
"""

import ipaddress
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from types import FrameType
from typing import IO

import psycopg

from console.embedded import demo, logs, roles, servers
from console.embedded.errors import SetupError
from console.embedded.layout import Layout, default_home
from console.embedded.postgres import Postgres
from console.embedded.processes import ProcessTree, Server, python_environment, stop_leftovers, take_lock
from console.embedded.record import Record
from console.embedded.schema import bring_up_to_date

_PATIENCE_SECONDS = 60.0
_STATEMENT_TIMEOUT = "-c statement_timeout=5000"  # milliseconds; a page that asks for longer is a fault of ours


def say(sentence: str) -> None:
    """One line on the terminal."""
    print(sentence, flush=True)


def is_loopback(address: str) -> bool:
    """Whether only programs on this machine reach an address; a name counts when all it stands for does."""
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(address, None)}
    except OSError as error:
        raise SetupError(f"BERTH_BIND names {address}, which is no address of this machine: {error}") from error
    return all(ipaddress.ip_address(str(name).split("%")[0]).is_loopback for name in found)


def refuse_taken_port(bind: str, port: int) -> None:
    """Raises SetupError when another program listens there: better said now than found in a log file."""
    with socket.socket(socket.AF_INET6 if ":" in bind else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except OSError as error:
            raise SetupError(
                f"port {port} on {bind} cannot be used ({error.strerror}): choose another with --port"
            ) from error


class Supervisor:
    """One run of `up`."""

    def __init__(self, layout: Layout, port: int, bind: str, is_slurm_wanted: bool) -> None:
        self.layout = layout
        self.port = port
        self.bind = bind
        self.is_slurm_wanted = is_slurm_wanted
        host = f"[{bind}]" if ":" in bind else bind
        self.address = f"http://{host}:{port}/"
        self.signals = 0
        self.postgres: Postgres | None = None
        self.slurm: demo.DemoSlurm | None = None
        self.web: Server | None = None
        self.environment = {**servers.given_urls(), "BERTH_HOME": str(layout.home), "BERTH_PORT": str(port)}
        self.environment.setdefault("BERTH_BASE_URL", os.environ.get("BERTH_BASE_URL") or self.address.rstrip("/"))
        self.tree = ProcessTree(layout, "up")

    def run(self) -> int:
        """Starts everything, watches it until a signal comes, stops everything; the exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._take_signal)
        try:
            self._start()
            while not self.signals:
                self._look_after()
                time.sleep(0.1)
        finally:
            self._stop()
        return 0

    def _take_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signals += 1
        if self.signals == 1:
            say("Stopping; once more to hurry.")

    def _start(self) -> None:
        refuse_taken_port(self.bind, self.port)
        steps = (
            self._start_servers,
            self._start_web_early,
            self._migrate,
            self._refuse_open_demo,
            self._start_web,
            self._start_celery,
            self._seed,  # the rest runs meanwhile: it is one transaction, and nothing of it is seen until it is whole
            self._connect_slurm,
        )
        for step in steps:
            if self.signals:
                return
            step()
        if not self.signals:
            self._announce()

    def _start_servers(self) -> None:
        if "DATABASE_URL" not in self.environment:
            self.postgres = servers.start_postgres(self.tree)
        if "CELERY_BROKER_URL" not in self.environment:
            self.environment["CELERY_BROKER_URL"] = servers.start_broker(self.tree)
        if self.environment["CELERY_BROKER_URL"].startswith("filesystem:"):
            say("No valkey-server or redis-server: the broker is a folder: slower, but rows hold the work.")
        if self.postgres:
            self.environment.update(servers.finish_postgres(self.tree, self.postgres))

    def _migrate(self) -> None:
        stamp = servers.schema_stamp(self.layout) if self.postgres else None
        bring_up_to_date(self.environment, stamp, self.tree.run)

    def _wants_demo(self) -> bool:
        return os.environ.get("BERTH_DEMO", "1") != "0" and not roles.has_people(self.environment["DATABASE_URL"])

    def _refuse_open_demo(self) -> None:
        """Demo sign-ins are printed on a terminal: nobody on another machine may try them."""
        has_demo = self._wants_demo() or roles.has_demo_people(self.environment["DATABASE_URL"])
        if not is_loopback(self.bind) and has_demo:
            raise SetupError(
                f"BERTH_BIND={self.bind} is reachable from other machines and this database has demo sign-ins: "
                "leave BERTH_BIND out, or start with BERTH_DEMO=0 on an empty BERTH_HOME"
            )

    def _seed(self) -> None:
        if self._wants_demo():
            say(f"{self.address} answers. Making the demo fleet, then its sign-ins stand here.")
            try:
                demo.seed(self.environment, self._run_meanwhile)
            except SetupError:
                if not self.signals:  # what was stopped has left nothing behind
                    raise

    def _run_meanwhile(self, command: Sequence[str], environment: dict[str, str]) -> "CompletedProcess[str]":
        """Runs a command to its end, or until a signal comes; servers that end meanwhile are started again."""

        def goes_on() -> bool:
            self._look_after()
            return not self.signals

        return self.tree.run(command, environment, goes_on)

    def _start_web_early(self) -> None:
        """On a database that is empty the web may load beside the migrations: nobody can have a session yet."""
        if self.postgres and self.postgres.is_new and is_loopback(self.bind):
            self.web = self._web()

    def _start_web(self) -> None:
        self.web = self.web or self._web()
        self._wait_for_web(self.web)

    def _web(self) -> Server:
        options = ["--interface", "wsgi", "--host", self.bind, "--port", str(self.port), "--workers", "1"]
        options += ["--blocking-threads", "8", "--no-ws", "--respawn-failed-workers"]
        extra = dict(self.environment)
        if self.postgres:
            extra["PGOPTIONS"] = _STATEMENT_TIMEOUT
        return self.tree.start(
            Server(
                name="web",
                command=[sys.executable, "-m", "granian", *options, "console.wsgi:application"],
                patience_seconds=10.0,
                environment=python_environment(extra),
            )
        )

    def _wait_for_web(self, web: Server) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not self.signals:
            try:
                urllib.request.urlopen(f"{self.address}healthz/live", timeout=2).close()
                return
            except urllib.error.HTTPError:
                return  # it answers; whether it is well stands on /healthz/ready
            except OSError:
                if not web.is_running() or time.monotonic() > end:
                    raise SetupError(f"the web server does not answer: see {self.layout.logs / 'web.log'}") from None
                time.sleep(0.03)

    def _start_celery(self) -> None:
        start = [sys.executable, "-m", "celery", "-A", "console"]
        worker = ["worker", "-c", "2", "-l", "INFO", "--without-gossip", "--without-mingle", "-n", "embedded@%h"]
        if sys.platform == "darwin":
            worker += ["-P", "threads"]  # macOS's own libraries do not survive a fork
        # Beat keeps no schedule file: its tasks are sweeps that may run once too often.
        beat = ["beat", "-l", "INFO", "-S", "celery.beat:Scheduler", "--pidfile="]
        environment = python_environment(self.environment)
        self.tree.start(Server(name="worker", command=[*start, *worker], environment=environment))
        self.tree.start(Server(name="beat", command=[*start, *beat], environment=environment, patience_seconds=5.0))

    def _connect_slurm(self) -> None:
        if self.is_slurm_wanted:
            say("Starting a local Slurm of 72 nodes.")
            self.slurm = demo.DemoSlurm(self.layout)
            self.tree.at_death(self.slurm.down_command)
            self.slurm.up(self.environment, self.tree.run)

    def _announce(self) -> None:
        self.tree.record.address = self.address
        self.tree.record.environment = {
            name: self.environment[name] for name in servers.JOINED_NAMES if name in self.environment
        }
        self.tree.record.is_ready = True
        self.tree.write_record()
        say("")
        say(f"Berth is ready: {self.address}")
        if sign_ins := demo.sign_ins(self.layout):
            say(sign_ins)
        say(f"Ctrl-C stops everything. Logs: {self.layout.logs}")

    def _look_after(self) -> None:
        """Starts again what has ended, with a growing pause. It never gives up: a broker or disk may come back."""
        now = time.monotonic()
        for server in self.tree.servers:
            logs.rotate(self.layout.logs / f"{server.name}.log")
            if server.process is not None and not server.is_running():
                status = server.process.returncode
                self.tree.forget(server)
                server.failures = 1 if now - server.started_at > _PATIENCE_SECONDS else server.failures + 1
                server.again_at = now + min(10.0, 0.2 * 2 ** min(server.failures - 1, 10))
                if server.failures <= 3 or server.failures % 30 == 0:
                    log = self.layout.logs / f"{server.name}.log"
                    say(f"{server.name} ended ({status}), {server.failures} in a row; starting it again. See {log}")
            if server.process is None and now >= server.again_at:
                self._clear_way(server)
                self.tree.start(server)

    def _clear_way(self, server: Server) -> None:
        if server.name == "postgres" and self.postgres:
            self.postgres.stop_leftover()
        if server.name == "valkey":
            command = list(server.command)
            Path(command[command.index("--unixsocket") + 1]).unlink(missing_ok=True)

    def _stop(self) -> None:
        users = [server for server in self.tree.servers if server.name in ("web", "worker", "beat")]
        used = [server for server in self.tree.servers if server not in users]
        for server in reversed(users):
            self.tree.stop(server, is_hurried=self.signals > 1)
        if self.slurm:
            self.slurm.down()
        for server in reversed(used):
            self.tree.stop(server, is_hurried=self.signals > 1)
        self.tree.close()
        say("Everything has stopped.")


def up(port: int, is_slurm_wanted: bool) -> int:
    """Runs `up` on this home; the exit status: 0 after a stop, 1 when it is refused or a part cannot be started."""
    try:
        layout = Layout.make(default_home())
        lock = _lock_or_refuse(layout)
        with lock:
            if layout.is_split:
                say(f"{layout.home} is closed to the database's account: database files are in {layout.database_home}")
            if left := stop_leftovers(layout):
                say(f"Stopped {left} processes that an earlier run had left.")
            return Supervisor(layout, port, os.environ.get("BERTH_BIND", "127.0.0.1"), is_slurm_wanted).run()
    except (SetupError, psycopg.Error, OSError) as error:
        print(f"manage.py up: {error}", file=sys.stderr)
        return 1


def _lock_or_refuse(layout: Layout) -> IO[str]:
    """The lock of the home. A command that holds it is waited for; another `up` is named in the refusal."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not (lock := take_lock(layout)):
        holder = Record.read(layout.record)
        if holder and holder.command == "up" and holder.is_alive():
            where = f" at {holder.address}" if holder.address else ""
            raise SetupError(
                f"already running{where} (process {holder.pid}, {layout.home}): stop it, or set another BERTH_HOME"
            )
        if time.monotonic() > end:
            raise SetupError(f"{holder.command if holder else 'another command'} keeps using {layout.home}")
        time.sleep(0.1)
    return lock
