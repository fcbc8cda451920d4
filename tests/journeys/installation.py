"""What does a journey walk through? A whole console: `up` with its own servers, a real Slurm, and a Kubernetes API.

Everything is set up as an operator does it: with `connect`, `import_fleet` and `apply_policy`, on what the clusters
themselves say of their nodes. Only passwords are given by hand, as a sign-in of the organisation would.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from django.contrib.auth.hashers import make_password

from console.demo.inventories import ClusterShape, files_of
from console.embedded.slurm import LocalSlurm
from tests.doubles.kube_api import WRITER, KubeApi
from tests.frame.conftest import Up, wait_for

PASSWORD = "seven racks under the hill"
PEOPLE = ("lead", "second", "approver", "colleague", "operator")
POLICY = """\
people:
  - {email: approver@acme.example, name: Amir Haddad, roles: [{role: approver}]}
  - {email: colleague@acme.example, name: Cleo Ortiz, roles: [{role: approver}]}
  - {email: operator@acme.example, name: Oona Virtanen, roles: [{role: operator}, {role: auditor}]}
  - {email: lead@acme.example, name: Lea Lindqvist}
  - {email: second@acme.example, name: Sam Okafor}
teams:
  - {path: acme, title: Acme}
  - {path: acme/vision, title: Vision, shares: 30}
  - {path: acme/speech, title: Speech, shares: 10}
memberships:
  - {team: acme/vision, user: lead@acme.example, role: lead}
  - {team: acme/speech, user: second@acme.example, role: lead}
allocations:
  - {team: acme/vision, cluster: sol, flavor: gb200-nvl72, start_at: "2026-01-01T00:00:00Z",
     end_at: "2046-01-01T00:00:00Z", guaranteed_gpus: 144, borrowing_limit_gpus: 144, gpu_hours: unlimited}
  - {team: acme/speech, cluster: sol, flavor: gb200-nvl72, start_at: "2026-01-01T00:00:00Z",
     end_at: "2046-01-01T00:00:00Z", guaranteed_gpus: 72, borrowing_limit_gpus: 144, gpu_hours: unlimited}
  - {team: acme/vision, cluster: luna, flavor: gb200-nvl72, start_at: "2026-01-01T00:00:00Z",
     end_at: "2046-01-01T00:00:00Z", guaranteed_gpus: 144, borrowing_limit_gpus: 144, gpu_hours: unlimited}
  - {team: acme/speech, cluster: luna, flavor: gb200-nvl72, start_at: "2026-01-01T00:00:00Z",
     end_at: "2046-01-01T00:00:00Z", guaranteed_gpus: 72, borrowing_limit_gpus: 144, gpu_hours: unlimited}
approval_policies:
  - {name: standard, position: 10, matches: {kind: reservation}, steps: [{role: approver, quorum: 1}]}
"""
# Cut short, so that a journey does not wait for what is a minute in life.
_HASTE = {
    "BERTH_DEMO": "0",
    "BERTH_BEAT_SECONDS": "0.5",
    "BERTH_DRIFT_CHECK_SECONDS": "3",
    "BERTH_PUSH_LEASE_SECONDS": "5",
}
# A Slurm command that waits where a test wants it to, and writes down what it was asked to change.
_SLOW_COMMAND = """\
#!/bin/sh
case " $* " in *" show "*) ;; *)
  echo "{name} $*" >> {folder}/asked
  if [ -e {folder}/hold ] && expr " $* " : ".* create reservation .*$(cat {folder}/hold) " > /dev/null; then
    echo $$ > {folder}/held.new; mv {folder}/held.new {folder}/held
    while [ -e {folder}/hold ]; do sleep 0.05; done
  fi
esac
exec {program} "$@"
"""


class Installation(Up):
    """A running console with two clusters: sol, a real Slurm of 4 racks, and luna, a Kueue of 4 racks."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="berth-journey-"))
        folder.chmod(0o755)  # as root, the database's own account walks through
        super().__init__(folder / "home")
        self.home.mkdir(mode=0o755)
        self.folder = folder
        self.slurm = LocalSlurm(folder / "slurm")
        self.kube = KubeApi()
        self.said_by: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **_HASTE}

    def open(self) -> "Installation":
        """Starts the parts and connects the clusters."""
        for node in json.loads(files_of(ClusterShape("luna", "kueue", "UTC", 2, 2))["nodes.json"])["items"]:
            self.kube.add(node)
        self.kube.start()
        with ThreadPoolExecutor() as parts:
            slurm = parts.submit(self.slurm.up)
            parts.submit(self.start).result()
            slurm.result()
        self._connect()
        return self

    def close(self) -> None:
        """Stops everything and leaves nothing behind."""
        try:
            self.stop()
        finally:
            self.kube.stop()
            self.slurm.down(purge=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def manage(self, *arguments: str) -> str:
        """One command that must succeed; what it printed."""
        done = self.command(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def _connect(self) -> None:
        for name, text in (("nodes.txt", self.slurm.run("scontrol", "show", "node")), ("policy.yaml", POLICY)):
            (self.folder / name).write_text(text)
        (self.folder / "nodes.json").write_text(self._listed_nodes())
        config = self.kube.write_kubeconfig(self.folder / "kubeconfig")
        kube = ("--kubeconfig", str(config), "--context", "double")
        self.manage("connect", "sol", "--kind", "slurm", "--driver", "slurm_cli", "--conf", str(self.slurm.conf))
        self.manage("connect", "luna", "--kind", "kueue", "--driver", "kubernetes", *kube)
        for cluster in ("sol", "luna"):
            self.said_by[cluster] = self.import_fleet(cluster)
        self.said_by["policy"] = self.manage("apply_policy", str(self.folder / "policy.yaml"))
        self.write("UPDATE allocations_user SET password = %s", make_password(PASSWORD))

    def write(self, statement: str, *values: object) -> None:
        """Puts into the database what no command and no page would."""
        with psycopg.connect(self.record().environment["DATABASE_URL"]) as connection:
            connection.execute(statement, values)

    def import_fleet(self, cluster: str) -> str:
        """The inventory from what the cluster said; what the command printed."""
        if cluster == "sol":
            files = (str(self.folder / "nodes.txt"), str(self.slurm.conf.with_name("topology.conf")))
            return self.manage("import_fleet", "sol", "--kind", "slurm", *files)
        return self.manage("import_fleet", "luna", "--kind", "kubernetes", str(self.folder / "nodes.json"))

    def _listed_nodes(self) -> str:
        """The NodeList as the Kubernetes API serves it."""
        asked = urllib.request.Request(
            f"{self.kube.url}/api/v1/nodes", headers={"Authorization": f"Bearer {WRITER}", "Accept": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            text: str = answer.read().decode()
        return text

    # What stands on the clusters

    def reservations_on_slurm(self) -> dict[str, dict[str, str]]:
        """What scontrol shows of Berth's reservations: name -> its keys."""
        lines = self.slurm.run("scontrol", "-o", "show", "res").splitlines()
        rows = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
        return {row["ReservationName"]: row for row in rows if row.get("ReservationName", "").startswith("berth-")}

    def fenced_nodes(self, reservation: str) -> list[str]:
        """Nodes of luna with this reservation's label and taint."""
        wanted = reservation.lower()
        found = []
        for name in self.kube.names("Node"):
            node: Any = self.kube.get("Node", name) or {}
            taints = [each for each in node["spec"].get("taints", ()) if each["key"] == "berth.local/reservation"]
            if node["metadata"]["labels"].get("berth.local/reservation") == wanted and taints:
                found.append(name)
        return found

    # Faults

    def kill_worker(self) -> int:
        """kill -9 of the Celery worker and its children; `up` starts another. The pid it had."""
        pid = self.worker()
        assert pid is not None, self.said()
        os.killpg(pid, signal.SIGKILL)
        return pid

    def worker(self) -> int | None:
        """The pid of the worker's main process."""
        for pid in self.pids()[1:]:
            line = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True)
            if "celery" in line.stdout and " worker " in line.stdout:
                return pid
        return None

    def slow_commands(self) -> "SlowCommands":
        """From now on sol is asked through Slurm commands that can be held."""
        return SlowCommands(self)


class SlowCommands:
    """Slurm commands in a folder of their own, which wait before a reservation is made for as long as it is told."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.folder = installation.folder / "slow"
        self.folder.mkdir()
        for name in ("scontrol", "sacctmgr"):
            program = shutil.which(name, path=installation.slurm.env()["PATH"])
            (self.folder / name).write_text(_SLOW_COMMAND.format(name=name, folder=self.folder, program=program))
            (self.folder / name).chmod(0o755)
        installation.write(
            "UPDATE console_clusterendpoint SET options = options || jsonb_build_object('commands', %s::text) "
            "WHERE driver = 'slurm_cli'",
            str(self.folder),
        )

    def hold(self, reservation: str) -> None:
        """The command that makes this reservation will wait."""
        (self.folder / "hold").write_text(f"ReservationName=berth-{reservation}")

    def wait_until_held(self) -> None:
        """Returns when a command waits."""
        wait_for((self.folder / "held").exists, "a command that makes a reservation is held")

    def kill_held(self) -> None:
        """kill -9 of the command that waits, before it did anything; later ones do not wait."""
        pid = int((self.folder / "held").read_text())
        os.kill(pid, signal.SIGKILL)
        (self.folder / "hold").unlink()

    def asked(self, words: str) -> list[str]:
        """The commands so far that change something and hold these words."""
        lines = (self.folder / "asked").read_text().splitlines()
        return [line for line in lines if words in line]
