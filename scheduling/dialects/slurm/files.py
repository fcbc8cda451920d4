"""How is a Slurm cluster written into files, and read back? (one command a line, for sacctmgr and scontrol)

`sacctmgr -i < sacctmgr.txt` makes the accounts, or brings them to these values where they are there already;
`scontrol < reservations.txt` (under TZ=UTC) makes the reservations.
"""

import shlex
from collections.abc import Iterator, Mapping

from scheduling.dialects.errors import UnreadableAnswer
from scheduling.dialects.slurm import accounts, reservations
from scheduling.dialects.slurm.parse import NO_RESERVATIONS, UNNAMED
from scheduling.plan import Rendered

ACCOUNTS_FILE = "slurm/sacctmgr.txt"
RESERVATIONS_FILE = "slurm/reservations.txt"
_ACCOUNT_KEYS = ("cluster", "parent", "fairshare", "description", "organization")


def files(rendered: Rendered) -> dict[str, str]:
    """Path below the cluster's folder -> text, the same bytes for the same state."""
    account_lines: list[str] = []
    reservation_lines: list[str] = []
    for item in rendered.objects:
        if item.object_class == accounts.OBJECT_CLASS and item.rules:
            changed = item.rules.write("update", item.name, {}, item.attributes).native
            account_lines += [_without_command(argv) for argv in (*item.native, *changed)]
        elif item.object_class == reservations.OBJECT_CLASS:
            # The true start, however long ago: the same state gives the same bytes at every moment.
            reservation_lines.append(_without_command(reservations.create(None, item.name, item.attributes)))
    return {ACCOUNTS_FILE: _joined(account_lines), RESERVATIONS_FILE: _joined(reservation_lines)}


def parse_files(texts: Mapping[str, str]) -> dict[str, str]:
    """What READS would answer on a cluster that holds exactly these files; no files is a cluster without objects.

    Raises UnreadableAnswer for a line that files() does not write.
    """
    cluster = ""
    made, associated = ["root|default root account|root"], []
    for number, words in _lines(ACCOUNTS_FILE, texts):
        if words[:2] == ["add", "account"] and len(words) > 2:
            values = {key: value for key, _, value in (word.partition("=") for word in words[3:])}
            for key in _ACCOUNT_KEYS:
                if key not in values:
                    raise UnreadableAnswer(ACCOUNTS_FILE, f"line {number}: the account {words[2][:64]!r} has no {key}")
            cluster = values["cluster"]
            made.append(f"{words[2]}|{values['description']}|{values['organization']}")
            associated.append(f"{cluster}|{words[2]}|||{values['parent']}|{values['fairshare']}")
        elif words[:2] != ["modify", "account"]:
            raise _not_ours(ACCOUNTS_FILE, number, words)
    return {
        "config": f"ClusterName = {cluster or UNNAMED}\nSLURM_VERSION = 0\n",
        "accounts": _joined(made),
        "associations": _joined([f"{cluster}|root||||1", *associated]),
        "reservations": _joined(_reservation_lines(texts)) or NO_RESERVATIONS,
    }


def _reservation_lines(texts: Mapping[str, str]) -> list[str]:
    lines = []
    for number, words in _lines(RESERVATIONS_FILE, texts):
        if words[:2] != ["create", "reservation"] or not words[2:] or not words[2].startswith("ReservationName="):
            raise _not_ours(RESERVATIONS_FILE, number, words)
        lines.append(" ".join(words[2:]))
    return lines


def _lines(file: str, texts: Mapping[str, str]) -> Iterator[tuple[int, list[str]]]:
    """The words of each line that has any, as a shell would part them, with the line's number."""
    for number, line in enumerate(texts.get(file, "").splitlines(), start=1):
        try:
            words = shlex.split(line)
        except ValueError as error:  # a quote that is never closed
            raise UnreadableAnswer(file, f"line {number}: {error}: {line[:120]!r}") from error
        if words:
            yield number, words


def _not_ours(file: str, number: int, words: list[str]) -> UnreadableAnswer:
    return UnreadableAnswer(file, f"line {number}: not a line of ours: {' '.join(words)[:120]!r}")


def _without_command(argv: tuple[str, ...]) -> str:
    """The line as sacctmgr and scontrol read it: quotes around a value with spaces, nowhere else."""
    return " ".join(_quoted(part) for part in argv[1:] if part != "-i")


def _quoted(part: str) -> str:
    key, _, value = part.partition("=")
    return f'{key}="{value}"' if " " in value else part


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
