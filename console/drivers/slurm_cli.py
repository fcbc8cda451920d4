"""How is a Slurm cluster read and written through its own commands? (scontrol, sacctmgr; here or over ssh)

Exit codes and texts of these commands differ by version and lie at times, so they decide one thing only: whether the
cluster could be asked. What a step came to is decided by reading again.
"""

import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from console.drivers.base import Applied, DriverError, Endpoint, Ping, shortened
from console.drivers.commands import Finished, run
from console.drivers.credentials import Credentials
from scheduling.dialects import dialect
from scheduling.plan import Step

USUAL_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"
PROGRAMS = ("scontrol", "sacctmgr")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*\Z")
_NOBODY_ANSWERS = re.compile(
    r"Unable to contact slurm controller|connect failure|Connection refused|Connection timed out|"
    r"Problem talking to the database|Unable to (?:connect|register).*database|Sending PersistInit|"
    r"Unable to establish|resolve hostname|No route to host|Invalid RPC",
    re.IGNORECASE,
)
_NOT_ACCEPTED = re.compile(
    r"Access/permission denied|Permission denied|Invalid authentication credential|authentication failure|"
    r"Host key verification failed|Protocol authentication error|munge",
    re.IGNORECASE,
)
_INVENTORY = {
    "nodes.txt": ("scontrol", "-o", "show", "node"),
    "topology.conf": ("scontrol", "show", "topology"),
}


class SlurmCommands:
    """A Driver that runs the Slurm commands with the endpoint's slurm.conf."""

    def __init__(
        self, endpoint: Endpoint, credentials: Credentials, *, seconds: float = 30, ssh_program: str = "ssh"
    ) -> None:
        if endpoint.ssh and not _HOST.match(endpoint.ssh):
            raise DriverError("refused", "--ssh takes USER@HOST of letters, digits, dots and hyphens")
        if endpoint.ssh and not endpoint.host_key_file:
            raise DriverError("refused", f"{endpoint.cluster} is reached over ssh, so its host key file must be named")
        self._endpoint, self._credentials = endpoint, credentials
        self._seconds, self._ssh_program = seconds, ssh_program
        self._dialect = dialect("slurm")

    def ping(self) -> Ping:
        """Ask slurmctld for its configuration and slurmdbd for its clusters."""
        began = time.monotonic()
        try:
            config = self._answer(("scontrol", "show", "config"))
            self._answer(("sacctmgr", "-nP", "show", "cluster", "format=Cluster"))
        except DriverError as error:
            return Ping(False, "", error.sentence, _milliseconds_since(began))
        match = re.search(r"^SLURM_VERSION\s*=\s*(\S+)", config, re.MULTILINE)
        version = match[1] if match else "unknown"
        return Ping(True, version, f"slurmctld {version} and slurmdbd answer", _milliseconds_since(began))

    def read(self) -> Mapping[str, str]:
        """The output of each command in the dialect's `reads`; one that says nothing at all makes the read partial."""
        return {name: self._answer(argv) for name, argv in self._dialect.reads.items()}

    def read_inventory(self) -> Mapping[str, str]:
        """Nodes and topology, as scontrol prints them."""
        texts = {}
        for name, argv in _INVENTORY.items():
            may_be_empty = name == "topology.conf"  # a cluster without a topology plugin has none
            text = self._answer(argv, may_be_empty=may_be_empty)
            if text.strip():
                texts[name] = text
        return texts

    def apply(self, step: Step) -> Applied:
        """Run the step's commands one after another; the first that fails ends it."""
        argvs: Sequence[Sequence[str]] = tuple(step.native or ())
        if not argvs:
            raise DriverError("refused", f"the step on {step.object_class} {step.name} holds no command")
        said: list[str] = []
        for number, argv in enumerate(argvs, start=1):
            finished = self._run(argv)
            text = _texts(finished)
            said.append(f"$ {shlex.join(argv)}\n{text}".rstrip() + f"\n[exit {finished.code}]")
            if finished.code:
                self._raise_if_not_asked(argv[0], finished)
                last = next(iter(text.strip().splitlines()[-1:]), "it gave no reason")
                which = f"command {number} of {len(argvs)}" if len(argvs) > 1 else "the command"
                return Applied(False, self._kept(said), f"{which} for {step.name} ended with {finished.code}: {last}")
        return Applied(True, self._kept(said), f"{step.verb} {step.object_class} {step.name}: sent")

    def _kept(self, said: Iterable[str]) -> str:
        return shortened(self._credentials.scrubbed("\n".join(said)))

    def _answer(self, argv: Sequence[str], *, may_be_empty: bool = False) -> str:
        finished = self._run(argv)
        if finished.code:
            self._raise_if_not_asked(argv[0], finished)
            raw = self._kept([_texts(finished)])
            raise DriverError("refused", f"{shlex.join(argv)} ended with {finished.code}", raw=raw)
        if not finished.stdout.strip() and not may_be_empty:
            sentence = f"{shlex.join(argv)} gave an empty answer; nothing is derived from it"
            raise DriverError("partial", sentence, retryable=True)
        return finished.stdout

    def _raise_if_not_asked(self, program: str, finished: Finished) -> None:
        text = _texts(finished)
        raw = self._kept([text])
        where = self._endpoint.cluster
        if _NOBODY_ANSWERS.search(text):
            asked = "slurmdbd" if program == "sacctmgr" else "slurmctld"
            raise DriverError("unreachable", f"{asked} of {where} does not answer", retryable=True, raw=raw)
        if self._endpoint.ssh and finished.code == 255:
            raise DriverError("unreachable", f"{self._endpoint.ssh} cannot be reached by ssh", retryable=True, raw=raw)
        if _NOT_ACCEPTED.search(text):
            raise DriverError("credentials", f"{where} does not accept who runs {program}", raw=raw)

    def _run(self, argv: Sequence[str]) -> Finished:
        if not argv or argv[0] not in PROGRAMS or not all(isinstance(part, str) for part in argv):
            raise DriverError("refused", f"only {' and '.join(PROGRAMS)} are run on a Slurm cluster")
        if self._endpoint.ssh:
            return self._run_there(argv)
        search = f"{self._endpoint.commands}:{USUAL_PLACES}" if self._endpoint.commands else USUAL_PLACES
        env = {"PATH": search, "HOME": "/nonexistent", **self._variables()}
        return run([self._program(argv[0], search), *argv[1:]], env, seconds=self._seconds)

    def _program(self, name: str, search: str) -> str:
        for folder in search.split(":"):
            program = Path(folder) / name
            if program.is_file():
                return str(program)
        raise DriverError("refused", f"{name} is not installed here (Debian: apt-get install slurm-client)")

    def _variables(self) -> dict[str, str]:
        """Texts in English, times as epoch seconds in UTC, and the cluster meant."""
        conf = {"SLURM_CONF": self._endpoint.conf} if self._endpoint.conf else {}
        return {"LC_ALL": "C", **self._dialect.environment, **conf}

    def _run_there(self, argv: Sequence[str]) -> Finished:
        folder = f"{self._endpoint.commands.rstrip('/')}/" if self._endpoint.commands else ""
        variables = [f"{key}={value}" for key, value in sorted(self._variables().items())]
        remote = shlex.join(["env", *variables, f"{folder}{argv[0]}", *argv[1:]])
        host_keys = self._credentials.path(self._endpoint.host_key_file)
        own_key = self._endpoint.identity_file
        identity = ["-i", str(self._credentials.path(own_key))] if own_key else []
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(host_keys),
            "GlobalKnownHostsFile": "/dev/null",
            "UpdateHostKeys": "no",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
            "ControlMaster": "no",
            "ControlPath": "none",
            "ConnectTimeout": "10",
        }
        flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        ssh = [self._ssh_program, "-F", "none", "-T", *flags, *identity, "--", self._endpoint.ssh, remote]
        return run(ssh, {"PATH": USUAL_PLACES, "HOME": "/nonexistent", "LC_ALL": "C"}, seconds=self._seconds + 10)


def _texts(finished: Finished) -> str:
    return "\n".join(filter(None, (finished.stdout.strip(), finished.stderr.strip())))


def _milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
