"""How is a reservation written as Slurm's own? (create, change only what differs, delete)

Nodes are always named: Slurm's own choice by count or GPUs may grant fewer nodes or share them. No flags are set.
"""

from collections.abc import Sequence
from functools import partial

from scheduling.dialects.slurm.names import moment, node_list, shell_line, slurm_time
from scheduling.hostlist import expand
from scheduling.plan import Attributes, ClassRules, NativeObject, Verb, Written

OBJECT_CLASS = "reservation"
RANK = 1
OWN_PREFIX = "berth-"
# slurmctld takes a start up to 600 s in the past; half of it leaves room for a slow run of the plan.
_START_SLACK_SECONDS = 300


def reservation(name: str, attributes: Attributes, at: int | None = None, owned: bool = True) -> NativeObject:
    """A reservation with nodes, start and end (texts of moment()), accounts, users and flags.

    `at` is the moment of rendering in epoch seconds; None for one that was read, which is never created.
    """
    rules = ClassRules(
        rank=RANK,
        write=partial(_write, at),
        release=_release,
        seen=None if at is None else partial(_seen, at),
        deletes="early",
    )
    native = () if at is None else (create(at, name, attributes),)
    return NativeObject(OBJECT_CLASS, name, attributes, native, owned, rules)


def _write(at: int | None, verb: Verb, name: str, before: Attributes, after: Attributes) -> Written:
    if verb == "create":
        argvs: tuple[tuple[str, ...], ...] = (create(at, name, after),)
    elif verb == "update":
        argvs = _update(at, name, before, after)
    else:
        argvs = (("scontrol", "delete", f"ReservationName={name}"),)
    return Written(argvs, tuple(shell_line(argv) for argv in argvs))


def create(at: int | None, name: str, after: Attributes) -> tuple[str, ...]:
    """The command that makes it; with `at` (epoch seconds) a start too long ago becomes `at`, for Slurm refuses it."""
    return (
        "scontrol",
        "create",
        "reservation",
        f"ReservationName={name}",
        f"StartTime={slurm_time(_acceptable_start(at, after['start']))}",
        f"EndTime={slurm_time(after['end'])}",
        f"Nodes={after['nodes']}",
        f"Accounts={after['accounts']}",
    )


def _update(at: int | None, name: str, before: Attributes, after: Attributes) -> tuple[tuple[str, ...], ...]:
    """One command for all values, one more per flag: of several Flags-= in one command only the last is heard."""
    start = ("scontrol", "update", f"ReservationName={name}")
    changed = {key for key in after if before.get(key) != after[key]}
    settings = []
    if "start" in changed:
        settings.append(f"StartTime={slurm_time(_acceptable_start(at, after['start']))}")
    if "end" in changed:
        settings.append(f"EndTime={slurm_time(after['end'])}")
    for key, word in (("nodes", "Nodes"), ("accounts", "Accounts"), ("users", "Users")):
        if key in changed:
            settings.append(f"{word}={after[key]}")
    argvs = [(*start, *settings)] if settings else []
    if "flags" in changed:
        surplus = set(filter(None, before.get("flags", "").split(","))) - set(after["flags"].split(","))
        argvs += [(*start, f"Flags-={flag}") for flag in sorted(surplus)]
    return tuple(argvs)


def _acceptable_start(at: int | None, start: str) -> str:
    """The start itself, or `at` where it lies further back than slurmctld takes."""
    return start if at is None or start > moment(at - _START_SLACK_SECONDS) else moment(at)


def _seen(at: int, before: Attributes, after: Attributes) -> Attributes:
    """Two starts that both lie in the past are one: when it began changes nothing any more."""
    if before["start"] <= moment(at) and after["start"] <= moment(at):
        return {**before, "start": after["start"]}
    return before


def _release(before: Attributes, after: Attributes, rivals: Sequence[Attributes]) -> Attributes:
    """What to write before anything else, so that no reservation is refused for nodes that another is about to leave.

    All of a change that only gives back; where a rival shall have what this one still holds, what stays the same of it,
    and {} (delete, then create) where nothing stays; nothing otherwise.
    """
    held, wanted = set(expand(before["nodes"])), set(expand(after["nodes"]))
    start, end = max(before["start"], after["start"]), min(before["end"], after["end"])
    if wanted <= held and (start, end) == (after["start"], after["end"]):
        return after
    if not any(_in_time(before, rival) and not held.isdisjoint(expand(rival["nodes"])) for rival in rivals):
        return before
    kept = held & wanted
    return {**before, "nodes": node_list(kept), "start": start, "end": end} if kept and start < end else {}


def _in_time(one: Attributes, other: Attributes) -> bool:
    return bool(one["start"] < other["end"] and other["start"] < one["end"])
