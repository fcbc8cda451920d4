"""How well does each scheduler hold each part of the policy? (data, shown beside every plan)

exact: the scheduler itself enforces what was approved. approximated: it comes close, and the sentence says how close.
berth: Berth does it, so it needs Berth alive. not_enforced: nothing on the cluster holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from scheduling.dialects.contract import Capabilities
from scheduling.dialects.errors import UnknownDialect

Level = Literal["exact", "approximated", "berth", "not_enforced"]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One part of the policy on one kind of scheduler."""

    kind: str
    part: str
    level: Level
    sentence: str


FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(
        "slurm",
        "reservation",
        "exact",
        "Slurm keeps the calendar: named nodes are held from start to end, with Berth alive or not.",
    ),
    Fidelity("slurm", "shares", "exact", "A team's shares are its account's fair-share, ranked by Slurm itself."),
    Fidelity("slurm", "hierarchy", "exact", "The team tree is the account tree."),
    Fidelity(
        "slurm",
        "guarantee",
        "not_enforced",
        "Shares order the queue and guarantee nothing: a guarantee is kept by what Berth approves.",
    ),
    Fidelity(
        "slurm",
        "borrowing_limit",
        "not_enforced",
        "Accounts carry no cap: a team may use whatever is idle.",
    ),
    Fidelity(
        "kueue",
        "reservation",
        "berth",
        "Kueue has no calendar: Berth fences the nodes at the start, once they are empty, and opens them at the end.",
    ),
    Fidelity("kueue", "shares", "approximated", "Weights compare siblings, over all flavors of a GPU model together."),
    Fidelity("kueue", "hierarchy", "exact", "The team tree is a cohort tree for each GPU model."),
    Fidelity("kueue", "guarantee", "exact", "A guarantee is nominal quota, taken back from whoever borrows it."),
    Fidelity("kueue", "borrowing_limit", "exact", "A borrowing limit is Kueue's own."),
    Fidelity("kueue", "lending_limit", "exact", "A lending limit is Kueue's own."),
)


def fidelity(kind: str) -> tuple[Fidelity, ...]:
    """What holds on this kind of scheduler, part by part; raises UnknownDialect for a kind that no dialect speaks."""
    found = tuple(row for row in FIDELITY if row.kind == kind)
    if not found:
        raise UnknownDialect(kind, tuple(sorted({row.kind for row in FIDELITY})))
    return found


def capabilities(kind: str, facts: Mapping[str, Any]) -> Capabilities:
    """What parse() found out about one cluster, as render() wants to know it."""
    version = tuple(int(part) for part in facts.get("version", ()))
    return Capabilities(kind, version, str(facts.get("native_cluster", "")))
