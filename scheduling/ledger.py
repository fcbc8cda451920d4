"""How much of every guarantee can healthy capacity hold at a moment? (the entitlement ledger, at one instant)

Rule: what is pushed never sums above healthy minus reserved. When guarantees exceed it, the pool goes to 0 first and
the guarantees shrink proportionally by largest remainder, ties by team name; the rest is uncovered. The grant itself
is never rewritten.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entitlement:
    """At one instant, in GPUs of one flavor: what each team's guarantee covers, what it lacks, and the common pool."""

    effective_guaranteed: Mapping[str, int]
    uncovered: Mapping[str, int]
    pool_gpus: int


def entitlement(guaranteed: Mapping[str, int], healthy_gpus: int, reserved_gpus: int) -> Entitlement:
    """Split `healthy_gpus - reserved_gpus` over the teams' guarantees; what is left is the pool.

    Raises ValueError for negative amounts. The sum of effective guarantees and pool is max(0, healthy - reserved).
    """
    if healthy_gpus < 0 or reserved_gpus < 0 or any(amount < 0 for amount in guaranteed.values()):
        raise ValueError("GPUs are never negative")
    room = max(0, healthy_gpus - reserved_gpus)
    asked = sum(guaranteed.values())
    if asked <= room:
        return Entitlement(dict(guaranteed), {}, room - asked)
    whole = {team: amount * room // asked for team, amount in guaranteed.items()}
    rest = room - sum(whole.values())
    by_remainder = sorted(guaranteed, key=lambda team: (-(guaranteed[team] * room % asked), team))
    for team in by_remainder[:rest]:
        whole[team] += 1
    uncovered = {team: amount - whole[team] for team, amount in guaranteed.items() if amount > whole[team]}
    return Entitlement(whole, uncovered, 0)
