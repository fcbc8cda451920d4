"""What does the planner answer? (Placement, Refusal, Reason, Cause, Alternative: the words of every yes and no)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scheduling.spec import ReservationSpec

ReasonCode = Literal[
    "rack_held",
    "node_held",
    "block_fragmented",
    "unhealthy",
    "nvlink_unhealthy",
    "outage",
    "running_job",
    "not_yet_delivered",
    "contract_ends",
    "window_too_short",
    "never_possible",
]
AlternativeKind = Literal["later", "shorter", "smaller", "split", "other_flavor", "other_cluster", "move", "displace"]
CauseKind = Literal["reservation", "outage", "job", "node", "rack"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Which nodes, when. `nodes` are all held nodes, spares included, in rack order; `spares` those that are spare.

    `racks` are the racks in use, in name order. `jobs` are running jobs in the way that the ask ignores. `score`
    holds the parts by which it won: blocks, preferred_nodes, left_whole_racks (free in the blocks in use, after it),
    left_nodes (free in the racks in use, after it), unhealthy_nodes (in the racks in use).
    """

    cluster: str
    racks: tuple[str, ...]
    nodes: tuple[str, ...]
    spares: tuple[str, ...]
    start_minute: int
    end_minute: int
    score: Mapping[str, int]
    jobs: tuple[str, ...] = ()

    @property
    def working_nodes(self) -> tuple[str, ...]:
        """The held nodes that are not spare."""
        spare = set(self.spares)
        return tuple(node for node in self.nodes if node not in spare)


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing in the way: a reservation, outage, job, bad node or rack. `until_minute` None: no end is known."""

    kind: CauseKind
    id: str
    until_minute: int | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not, at one start. `missing` counts `unit`s that the things in `by` alone take away from the ask.

    `until_minute` is when the last of them goes, None when one never does. `start_minute` is the start it speaks of.
    """

    code: ReasonCode
    missing: int
    unit: str
    by: tuple[Cause, ...]
    until_minute: int | None
    sentence: str
    start_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A reservation that would give way, and where it would stand instead."""

    reservation: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another complete spec that was itself checked to fit, and its placement. `moves` is filled for kind move only."""

    kind: AlternativeKind
    spec: ReservationSpec
    placement: Placement
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the ask does not fit (never empty), and what would."""

    reasons: tuple[Reason, ...]
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class StripBar:
    """One day of the "when it could start" strip.

    `start_minute` is the first start considered that day, `size` the largest size (in the ask's unit, at most the ask)
    obtainable at the best start of the bar, `best_start_minute` that start (the earliest of them);
    `fits` says that the whole ask fits at it.
    """

    start_minute: int
    size: int
    fits: bool
    best_start_minute: int
