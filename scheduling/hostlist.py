"""How are many node names written in one line, and read back? (`gb[001-018,020]` both ways)

One thin door in front of ClusterShell's NodeSet, which knows every folding rule that Slurm knows. The door
refuses what a host list from outside must never reach: node groups (`@group`), set operators and oversize lists.
"""

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

MAX_NAMES = 200_000
_ALLOWED = re.compile(r"[A-Za-z0-9_.,\[\]\- \t\n]*\Z")
_RANGE = re.compile(r"(\d+)-(\d+)")


class HostlistError(ValueError):
    """The text is not a host list, or names more than MAX_NAMES hosts."""


def expand(text: str) -> tuple[str, ...]:
    """Names in `text`, each once, in natural order; () for the empty text.

    Raises HostlistError on bad syntax, on characters no host name has, and beyond MAX_NAMES names.
    """
    if not _ALLOWED.match(text):
        raise HostlistError(f"not a host list: {text[:80]!r} has a character that no node name has")
    if not text.strip():
        return ()
    _refuse_oversize(text)
    try:
        nodes = NodeSet(text.strip(), resolver=RESOLVER_NOGROUP)
    except (NodeSetException, ValueError) as error:  # ValueError: thousands of digits, more than Python reads
        raise HostlistError(f"not a host list: {text[:80]!r} ({str(error)[:200]})") from error
    if len(nodes) > MAX_NAMES:
        raise HostlistError(f"{len(nodes)} names in one host list, at most {MAX_NAMES} are taken")
    return tuple(nodes)


def fold(names: Iterable[str]) -> str:
    """The shortest host list that names exactly `names`; "" for none. Inverse of expand()."""
    nodes = NodeSet(resolver=RESOLVER_NOGROUP)
    nodes.updaten(names)
    return str(nodes)


def _refuse_oversize(text: str) -> None:
    """Bound the product of all ranges in each comma part before anything is expanded in memory."""
    depth, part, parts = 0, "", []
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    total = 0
    for piece in [*parts, part]:
        size = 1
        for bracket in re.findall(r"\[([^\]]*)\]", piece):
            if len(bracket) > 100_000 or any(len(a) > 15 or len(b) > 15 for a, b in _RANGE.findall(bracket)):
                raise HostlistError(f"a range in {piece[:80]!r} is too large")
            wide = sum(max(0, int(b) - int(a)) for a, b in _RANGE.findall(bracket))
            size *= wide + bracket.count(",") + 1
        total += size
    if total > MAX_NAMES:
        raise HostlistError(f"about {total} names in one host list, at most {MAX_NAMES} are taken")
