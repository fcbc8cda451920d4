"""What does every driver promise? (Endpoint, Driver, DriverError; no database, no clock of its own)

A driver moves text and objects and decides nothing: what it read is parsed by a dialect, what it wrote is verified by
reading again. A value comes back when the cluster answered, also when it answered no; DriverError means that it
could not be asked, or that the answer must not be used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from scheduling.plan import Step

ErrorCode = Literal["unreachable", "refused", "credentials", "timeout", "foreign", "partial"]
LONGEST_TEXT = 20_000
MOST_BYTES = 64 * 1024 * 1024


class DriverError(Exception):
    """The cluster could not be asked, or its answer must not be used.

    unreachable   nobody answers                      timeout   an answer did not come in time
    credentials   who we are is not accepted          refused   the cluster or its tools will not do it at all
    foreign       somebody else owns what we'd write  partial   only a part of an answer came: derive nothing from it

    `sentence` is for people, `retryable` says whether the same again may succeed, `raw` is the cluster's own words.
    """

    def __init__(self, code: ErrorCode, sentence: str, *, retryable: bool = False, raw: str = "") -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.retryable, self.raw = code, sentence, retryable, raw[:LONGEST_TEXT]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How one cluster is reached. Secrets are references ("env:NAME", "file:PATH"), never values.

    A stored endpoint's options carry the fields below `driver` by the same names, which are those of `connect`.
    `credential` is the reference of a token, below BERTH_CREDENTIALS. Only `connect` writes options: an absolute
    `token_file`, `kubeconfig`, `identity_file`, `host_key_file` or `ca_file` there is thereby registered, wherever it
    lies. `commands` is the folder of the Slurm commands where they are not in the usual places.
    """

    cluster: str
    kind: str
    driver: str
    credential: str = ""
    token_file: str = ""
    conf: str = ""
    commands: str = ""
    url: str = ""
    ca_file: str = ""
    kubeconfig: str = ""
    context: str = ""
    dir: str = ""
    ssh: str = ""
    identity_file: str = ""
    host_key_file: str = ""
    label_prefix: str = "berth.local"

    @property
    def token_reference(self) -> str:
        """The reference of the bearer token, "" where there is none."""
        return self.credential or (f"file:{self.token_file}" if self.token_file else "")

    @property
    def registered(self) -> tuple[str, ...]:
        """The files that `connect` named: readable although they may lie outside BERTH_CREDENTIALS."""
        named = (self.token_file, self.kubeconfig, self.identity_file, self.host_key_file, self.ca_file)
        return tuple(path for path in named if path.startswith("/"))


@dataclass(frozen=True, slots=True)
class Ping:
    """Whether the cluster answers, how it calls its version, and how long one question took."""

    ok: bool
    version: str
    sentence: str
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Applied:
    """What one step came to: the cluster's words, and one sentence of ours.

    `ok` false means that the cluster said no. True is a claim until the step is read back.
    """

    ok: bool
    output: str
    sentence: str


class Driver(Protocol):
    """The four things that Berth does to a cluster; each has a time limit and a size limit of its own."""

    def ping(self) -> Ping:
        """One cheap question. Never raises: what went wrong is the sentence."""

    def read(self) -> Mapping[str, Any]:
        """Everything that the dialect of this kind parses, by the names of its `reads`. Raises DriverError."""

    def read_inventory(self) -> Mapping[str, str]:
        """File name -> text, as `import_fleet` takes them. Raises DriverError."""

    def apply(self, step: Step) -> Applied:
        """Do one step. Raises DriverError where the cluster could not be asked; nothing is retried here."""


def shortened(text: str) -> str:
    """The text as it may be kept: valid, without control characters, and not longer than LONGEST_TEXT."""
    printable = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    if len(printable) <= LONGEST_TEXT:
        return printable
    return f"{printable[: LONGEST_TEXT - 40]}\n… {len(printable) - LONGEST_TEXT + 40} more characters"
