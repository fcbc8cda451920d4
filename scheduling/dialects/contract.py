"""What does every dialect offer? (the shape of a dialect, and what it knows about one cluster)"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from scheduling.desired import DesiredReservation, DesiredState
from scheduling.plan import Observed, Rendered


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is known of one cluster before rendering: its kind, version, and the name that it gives itself.

    `version` is () and `native_cluster` "" where nothing was read yet (exports, files endpoints).
    """

    kind: str
    version: tuple[int, ...] = ()
    native_cluster: str = ""


@dataclass(frozen=True, slots=True)
class UsageText:
    """A titled text to copy: how a team uses its reservation on this cluster. `language` is shell or yaml."""

    title: str
    text: str
    language: str = "shell"


class Parse(Protocol):
    """native -> Observed. `installation` tells our objects from those of another Berth."""

    def __call__(
        self, native: Mapping[str, Any], *, installation: str, label_prefix: str = "berth.local"
    ) -> Observed: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One scheduler's words, as pure functions.

    classes      object classes in creation order
    reads        what a driver reads, by name: an argv for commands, an API path for Kubernetes
    environment  variables that every command of this dialect runs under
    render       DesiredState (and Capabilities) -> Rendered
    parse        what the driver read, by the same names -> Observed
    usage        (state, reservation, account) -> how the team uses it
    files        Rendered -> path: text, the same bytes for the same state
    parse_files  path: text -> what a driver would have read from a cluster that holds exactly this
    """

    kind: str
    classes: tuple[str, ...]
    reads: Mapping[str, Any]
    render: Callable[[DesiredState, Capabilities | None], Rendered]
    parse: Parse
    usage: Callable[[DesiredState, DesiredReservation, str], tuple[UsageText, ...]]
    files: Callable[[Rendered], Mapping[str, str]]
    parse_files: Callable[[Mapping[str, str]], Mapping[str, Any]]
    environment: Mapping[str, str] = field(default_factory=dict)
