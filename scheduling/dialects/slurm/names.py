"""What may be put into a Slurm command, and in which spelling? (names, node lists, times)"""

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime

from scheduling.dialects.errors import NameNotAllowed
from scheduling.hostlist import expand, fold

ENVIRONMENT = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}  # moments are read as epoch seconds, written in UTC
_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}\Z")
_UNPRINTED = re.compile(r"[^A-Za-z0-9_. -]")


def checked_name(what: str, name: str) -> str:
    """`name` itself when Slurm may see it; raises NameNotAllowed otherwise.

    Slurm takes spaces, commas, `=` and 2,000 characters in names; none of that survives a command line or a list.
    """
    if not _NAME.match(name):
        raise NameNotAllowed(what, name, "1 to 64 of A-Z a-z 0-9 _ . - and no leading -")
    return name


def account_name(account: str) -> str:
    """The account as slurmdbd stores it: every version lower-cases it."""
    return checked_name("account", account).lower()


def description(team: str) -> str:
    """`berth: <team>`, lower-cased as slurmdbd does, with what a command line cannot carry written as `_`."""
    return f"berth: {_UNPRINTED.sub('_', team)[:200]}".lower()


def organization(installation: str) -> str:
    """The mark on accounts that this Berth made; slurmdbd lower-cases it."""
    return checked_name("installation", f"berth-{installation}").lower()


def node_list(nodes: Iterable[str]) -> str:
    """The nodes as one host list, the same text for the same set.

    Slurm reads a range only at the end of a name (`gb[01-18]`, not `gb[01-18]-ib`): such names are written out.
    """
    names = sorted({checked_name("node", node) for node in nodes})
    folded = fold(names)
    outside_brackets = re.sub(r"\[[^\]]*\]", "[]", folded)
    if any("[" in piece and not piece.endswith("]") for piece in outside_brackets.split(",")):
        return ",".join(names)
    return folded


def same_nodes(text: str) -> str:
    """A host list of Slurm's in the spelling of node_list(); "" for (null)."""
    return node_list(expand(text)) if text not in ("", "(null)") else ""


def moment(epoch: int) -> str:
    """`2026-12-01T08:00:00Z`: what is compared and shown; two moments are ordered as their texts are."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def slurm_time(utc_moment: str) -> str:
    """`2026-12-01T08:00:00`: Slurm takes no zone and no offset, so the command runs under TZ=UTC."""
    return utc_moment.removesuffix("Z")


def shell_line(argv: tuple[str, ...]) -> str:
    """The command as a person pastes it; with TZ=UTC in front where it carries a moment."""
    has_moment = any(part.startswith(("StartTime=", "EndTime=")) for part in argv)
    return ("TZ=UTC " if has_moment else "") + shlex.join(argv)
