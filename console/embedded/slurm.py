"""How does a complete real Slurm run in one folder, for `manage.py up --slurm` and for the tests? (LocalSlurm)

munged, a MariaDB of its own, slurmdbd and slurmctld on loopback, nothing global: keys, sockets, state, spool and logs
lie in the folder, and `down()` ends only what `up()` started. Works as root and as an ordinary user, on Slurm
22.05 and later. `python -m console.embedded.slurm up|down --dir D` does the same by hand.
"""

import argparse
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import cast

from console.embedded import slurm_files
from console.embedded.slurm_files import SlurmPlace, SlurmShape
from console.embedded.slurm_processes import Daemons, LocalSlurmError, end_process, start_time, wait_until

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/libexec"
_LONGEST_FOLDER = 70  # a unix socket's whole path ends near 108 characters
_PACKAGE_OF = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "scontrol": "slurm-client",
    "sacctmgr": "slurm-client",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
}
_MYSQL_PLUGIN = "slurm-wlm-mysql-plugin"
_WRAPPER = "libnss-wrapper"
_LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")


def find_program(name: str) -> str | None:
    """The path of a daemon or command; the sbin folders count, also for a user who has them not in PATH."""
    return shutil.which(name, path=SEARCH_PATH)


def _find_library(pattern: str) -> Path | None:
    return next((path for folder in _LIBRARY_FOLDERS for path in Path(folder).glob(pattern)), None)


def install_hint(users: int = 0) -> str | None:
    """None when everything is installed; else the command that installs what is missing."""
    missing = {package for program, package in _PACKAGE_OF.items() if find_program(program) is None}
    if _find_library("slurm*/accounting_storage_mysql.so") is None:
        missing.add(_MYSQL_PLUGIN)
    if users and _find_library("libnss_wrapper.so") is None:
        missing.add(_WRAPPER)
    if not missing:
        return None
    return f"apt-get install -y --no-install-recommends {' '.join(sorted(missing))}"


class LocalSlurm:
    """One local Slurm. The folder may be long or hold spaces: then a short one beside /tmp carries the sockets.

    `accounts` are made at the first start. `users` adds made-up users (u0000, u0001, …) that only this Slurm knows;
    then `commands` is the folder of Slurm commands that see them. `mode` is "cloud" (nodes idle without a
    daemon, one started on demand) or "slurmd" (one daemon per node from the start).
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 72,
        gpus: int = 4,
        rack: int = 18,
        accounts: Sequence[str] = (),
        users: int = 0,
        mode: str = "cloud",
        cluster: str = "local",
    ) -> None:
        if mode not in ("cloud", "slurmd"):
            raise LocalSlurmError("bad_mode", f"mode must be cloud or slurmd, is {mode!r}")
        self.asked = Path(folder).absolute()
        self.folder = _short_folder(self.asked)
        self.shape = SlurmShape(cluster=cluster, nodes=nodes, gpus=gpus, rack=rack, users=users, mode=mode)
        self.accounts = tuple(accounts)
        self._daemons = Daemons(self.folder / "pids.json", self.folder / "log", str(self.folder))

    # What others ask

    @property
    def conf(self) -> Path:
        """The slurm.conf to point a client or an endpoint at."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def commands(self) -> Path | None:
        """The folder of Slurm commands to use, where plain ones would not do; None where they do."""
        return self.folder / "commands" if self.shape.users else None

    @property
    def running(self) -> bool:
        """Whether every daemon that `up` started is alive."""
        return all(self._daemons.is_alive(name) for name in ("munged", "mariadbd", "slurmdbd", "slurmctld"))

    def env(self) -> dict[str, str]:
        """The whole environment for a Slurm command on this cluster."""
        path = SEARCH_PATH if self.commands is None else f"{self.commands}:{SEARCH_PATH}"
        fixed = {"PATH": path, "SLURM_CONF": str(self.conf), "LC_ALL": "C", "HOME": "/nonexistent"}
        return {**fixed, **self._wrapped_users()}

    def run(self, *argv: str, check: bool = True, input_text: str | None = None) -> str:
        """Run one Slurm command and give its output; raises LocalSlurmError when it fails and `check` is set."""
        done = self._ask(*argv, input_text=input_text)
        if check and done.returncode:
            said = (done.stderr + done.stdout).strip()[-1500:]
            raise LocalSlurmError("command_failed", f"{' '.join(argv)} ended with {done.returncode}: {said}")
        return done.stdout

    def _ask(self, *argv: str, input_text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, env=self.env(), capture_output=True, text=True, timeout=60, input=input_text, cwd=self.folder
        )

    # Up and down

    def up(self) -> "LocalSlurm":
        """Start what does not run yet and wait until it answers; a second call does nothing. Raises LocalSlurmError."""
        hint = install_hint(self.shape.users)
        if hint:
            raise LocalSlurmError("not_installed", f"a local Slurm needs packages that are not installed: {hint}")
        self._lay_out()
        try:
            self._start()
        except BaseException:
            self.down()  # half a Slurm is of no use to anybody
            raise
        return self

    def down(self, purge: bool = False) -> None:
        """End every process of this Slurm, jobs included; `purge` removes the folder too. Safe to call twice."""
        if not self.folder.exists():
            return
        if self._daemons.is_alive("slurmctld") and any((self.folder / "run").glob("node.*.pid")):
            self._end_jobs()
        self._end_nodes()
        for name in (*[n for n in self._daemons.names() if n.startswith("slurmd-")], "slurmctld", "slurmdbd"):
            self._daemons.stop(name)
        for name in ("mariadbd", "munged"):
            self._daemons.stop(name)
        self._daemons.sweep()
        if purge:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start_controller(self) -> None:
        """Start slurmctld alone and wait until it answers; nothing to do when it runs."""
        if self._daemons.is_alive("slurmctld"):
            return
        argv = [_program("slurmctld"), "-D"]
        self._daemons.spawn("slurmctld", argv, self.env(), lambda: "is UP" in self._ask("scontrol", "ping").stdout, 60)

    def stop_controller(self) -> None:
        """Stop slurmctld alone; its state stays, and commands fail until it is started again."""
        self._daemons.stop("slurmctld")

    def _start(self) -> None:
        place = self._place()
        self._write_files(place)
        self._start_munge(place)
        self._start_database(place)
        self._start_slurmdbd(place)
        self.start_controller()
        if self.shape.mode == "slurmd":
            self._start_every_node()
        self._make_accounts()

    # The folder

    def _lay_out(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.folder.is_symlink() or self.folder.stat().st_uid != os.getuid():
            raise LocalSlurmError(
                "not_ours", f"{self.folder} belongs to somebody else; remove it or choose another folder"
            )
        for name in ("etc", "run", "log", "state", "spool", "mysql", "bin", "dev", "commands"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # munge's socket must be reachable for jobs of other users
        for number in range(self.shape.gpus):
            (self.folder / "dev" / f"gpu{number}").touch()
        key = self.folder / "etc" / "munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(128))
            key.chmod(0o400)

    def _place(self) -> SlurmPlace:
        """Ports are chosen once and kept, so that a second `up` meets the first one's daemons."""
        record = self.folder / "place.json"
        try:
            ports = json.loads(record.read_text())
        except (OSError, ValueError):
            controller, database = _free_ports(2)
            ports = {"controller": controller, "database": database, "node": _free_range(self.shape.nodes)}
            record.write_text(json.dumps(ports))
        user = pwd.getpwuid(os.getuid()).pw_name
        return SlurmPlace(self.folder, user, ports["controller"], ports["database"], ports["node"], _slurm_version())

    def _write_files(self, place: SlurmPlace) -> None:
        files = {
            "etc/slurm.conf": slurm_files.slurm_conf(self.shape, place),
            "etc/gres.conf": slurm_files.gres_conf(self.shape, place),
            "etc/topology.conf": slurm_files.topology_conf(self.shape),
            "etc/cgroup.conf": slurm_files.cgroup_conf(place),
            "etc/slurmdbd.conf": slurm_files.slurmdbd_conf(place),
            "bin/resume": slurm_files.resume_script(place),
            "bin/suspend": slurm_files.suspend_script(place),
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)
        (self.folder / "etc/slurmdbd.conf").chmod(0o600)  # slurmdbd refuses to start otherwise
        if self.shape.users:
            self._write_users()
        for script in (*self.folder.glob("bin/*"), *self.folder.glob("commands/*")):
            script.chmod(0o755)

    def _write_users(self) -> None:
        """A passwd, group and hosts file that libnss-wrapper shows in place of the machine's own."""
        people = [f"u{n:04d}:x:{200000 + n}:200000::/tmp:/bin/sh" for n in range(self.shape.users)]
        etc = self.folder / "etc"
        (etc / "passwd").write_text(Path("/etc/passwd").read_text() + "\n".join(people) + "\n")
        (etc / "group").write_text(Path("/etc/group").read_text() + "made-up:x:200000:\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
        for name in ("scontrol", "sacctmgr", "sbatch", "squeue", "sacct", "sshare", "sinfo", "scancel"):
            program = find_program(name)
            if program:
                (self.folder / "commands" / name).write_text(slurm_files.command_script(program, self._wrapped_users()))

    def _wrapped_users(self) -> dict[str, str]:
        if not self.shape.users:
            return {}
        etc = self.folder / "etc"
        files = {f"NSS_WRAPPER_{what.upper()}": str(etc / what) for what in ("passwd", "group", "hosts")}
        return {"LD_PRELOAD": str(_find_library("libnss_wrapper.so")), **files}

    # The daemons, in the order in which they need each other

    def _start_munge(self, place: SlurmPlace) -> None:
        if self._daemons.is_alive("munged"):
            return
        run = self.folder / "run"
        for leftover in ("munge.sock", "munge.sock.lock", "munged.pid"):
            (run / leftover).unlink(missing_ok=True)
        argv = [
            _program("munged"), "-F", "--force", "--num-threads", "4", "--socket", str(place.munge_socket),
            "--key-file", str(place.etc / "munge.key"), "--pid-file", str(run / "munged.pid"),
            "--log-file", str(self.folder / "log/munged.log"), "--seed-file", str(run / "munged.seed"),
        ]  # fmt: skip
        self._daemons.spawn("munged", argv, self.env(), place.munge_socket.exists, 20)

    def _start_database(self, place: SlurmPlace) -> None:
        if self._daemons.is_alive("mariadbd"):
            return
        data, who = self.folder / "mysql", f"--user={place.user}"
        if not (data / "made").exists():  # a half-made data folder is made again
            shutil.rmtree(data)
            data.mkdir()
            self.run(
                _program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", who,
                "--auth-root-authentication-method=normal", "--skip-test-db",
            )  # fmt: skip
            (data / "made").touch()
        argv = [
            _program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={place.database_socket}", who,
            f"--pid-file={self.folder}/run/mysqld.pid", "--skip-networking", "--skip-log-bin",
            "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=64M", "--innodb-lock-wait-timeout=900",
            "--innodb-flush-log-at-trx-commit=0", "--max-allowed-packet=64M",
            f"--log-error={self.folder}/log/mariadb.log",
        ]  # fmt: skip
        self._daemons.spawn("mariadbd", argv, self.env(), lambda: self._sql(place, "select 1"), 60)
        self._sql(place, "create database if not exists slurm_acct")
        self._sql(place, "create user if not exists slurm@localhost identified by 'slurm'")
        self._sql(place, "grant all on slurm_acct.* to slurm@localhost")

    def _sql(self, place: SlurmPlace, statement: str) -> bool:
        client = [_program("mariadb"), "--no-defaults", f"--socket={place.database_socket}", "-uroot", "-e", statement]
        return subprocess.run(client, env=self.env(), capture_output=True, timeout=60).returncode == 0

    def _start_slurmdbd(self, place: SlurmPlace) -> None:
        show = ("sacctmgr", "-nP", "show", "cluster", "format=cluster")
        if not self._daemons.is_alive("slurmdbd"):
            env = {**self.env(), "MYSQL_UNIX_PORT": str(place.database_socket)}
            argv = [_program("slurmdbd"), "-D"]
            self._daemons.spawn("slurmdbd", argv, env, lambda: self._ask(*show).returncode == 0, 120)
        if self.shape.cluster not in self.run(*show).split():
            self.run("sacctmgr", "-i", "add", "cluster", self.shape.cluster)

    def _start_every_node(self) -> None:
        for name in self.run("scontrol", "show", "hostnames", self.shape.node_names()).split():
            (self.folder / "spool" / name).mkdir(exist_ok=True)
            if not self._daemons.is_alive(f"slurmd-{name}"):
                argv = [_program("slurmd"), "-D", "-N", name]
                self._daemons.spawn(f"slurmd-{name}", argv, self.env(), lambda: True, 5)
        idle = f"{self.shape.nodes} idle"
        if not wait_until(lambda: idle in self.run("sinfo", "-h", "-o", "%D %t"), 120):
            raise LocalSlurmError("nodes_missing", f"not all {self.shape.nodes} nodes became idle within 120 s")

    def _make_accounts(self) -> None:
        where = f"cluster={self.shape.cluster}"
        there = self.run("sacctmgr", "-nP", "show", "assoc", where, "format=account").split()
        for account in self.accounts:
            if account not in there:
                self.run("sacctmgr", "-i", "add", "account", account, where)

    # The end

    def _end_jobs(self) -> None:
        jobs = self._ask("squeue", "-h", "-o", "%A").stdout.split()
        if jobs:
            self._ask("scancel", *jobs)
            wait_until(lambda: not self._ask("squeue", "-h", "-o", "%A").stdout.split(), 10)

    def _end_nodes(self) -> None:
        """A slurmd that the resume hook started wrote its pid and start time down; 22.05 often ignores SIGTERM."""
        for file in (self.folder / "run").glob("node.*.pid"):
            match = re.fullmatch(r"(\d+) (\d+)\s*", file.read_text())
            if match and start_time(int(match[1])) == match[2]:
                end_process(int(match[1]), match[2], 2)
            file.unlink(missing_ok=True)


def _program(name: str) -> str:
    return cast(str, find_program(name))  # install_hint() has looked


def _short_folder(asked: Path) -> Path:
    """The folder itself, or a short one named by its hash where sockets or Slurm's parser would not bear it."""
    if len(str(asked)) <= _LONGEST_FOLDER and re.fullmatch(r"[\w./+-]+", str(asked)):
        return asked
    return Path("/tmp") / f"berth-slurm-{os.getuid()}-{sha256(str(asked).encode()).hexdigest()[:12]}"


def _slurm_version() -> tuple[int, int]:
    said = subprocess.run([_program("slurmctld"), "-V"], capture_output=True, text=True, timeout=20).stdout
    match = re.search(r"(\d+)\.(\d+)", said)
    if match is None:
        raise LocalSlurmError("no_version", f"slurmctld -V does not name a version: {said.strip()!r}")
    return int(match[1]), int(match[2])


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _free_range(nodes: int) -> int:
    """A base port with `nodes` free ports above it, below the range from which the kernel hands ports out."""
    for base in range(12000, 32000, nodes + 1):
        if all(_is_free(port) for port in range(base, base + nodes + 1)):
            return base
    raise LocalSlurmError("no_ports", f"found no {nodes + 1} free ports in a row between 12000 and 32000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def main(arguments: Sequence[str]) -> int:
    """up|down --dir D; exits 0 when done and 1 with one sentence when not."""
    parser = argparse.ArgumentParser(prog="python -m console.embedded.slurm", description=__doc__)
    parser.add_argument("verb", choices=("up", "down"))
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=72)
    parser.add_argument("--users", type=int, default=0)
    parser.add_argument("--purge", action="store_true", help="down: remove the folder too")
    chosen = parser.parse_args(arguments)
    local = LocalSlurm(chosen.dir, nodes=chosen.nodes, users=chosen.users)
    try:
        if chosen.verb == "down":
            local.down(purge=chosen.purge)
        else:
            local.up()
            print("".join(f"export {key}='{value}'\n" for key, value in local.env().items()), end="")
    except LocalSlurmError as error:
        print(error.sentence, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
