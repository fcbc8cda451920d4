"""What should one cluster hold at one moment, in our words? (DesiredState: the input of every dialect)

Periods are half-open and count whole minutes since the epoch; names are the ones of the console. A dialect turns
this value into its scheduler's words and nothing else: no dialect reads a clock, a row or a socket.
"""

from dataclasses import dataclass, field

UNLIMITED = None  # a limit of None is "no limit"; every dialect writes it as its scheduler does


@dataclass(frozen=True, slots=True)
class DesiredFlavor:
    """A kind of node. `node_labels` are native label pairs, `gres_type` and `partition` Slurm's words, "" if none."""

    name: str
    gpu_model: str
    gpus_per_node: int
    nodes_per_rack: int
    gres_type: str = ""
    partition: str = ""
    node_labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DesiredQuota:
    """What one team may use of one flavor at this moment, in GPUs (nodes where the flavor has no GPUs)."""

    flavor: str
    guaranteed_gpus: int
    borrowing_limit_gpus: int | None = UNLIMITED
    lending_limit_gpus: int | None = UNLIMITED


@dataclass(frozen=True, slots=True)
class DesiredTeam:
    """A team on this cluster. `account` is its mapped name there; so is `parent`, "" for a child of the root."""

    team: str
    account: str
    parent: str = ""
    shares: int = 1
    quotas: tuple[DesiredQuota, ...] = ()


@dataclass(frozen=True, slots=True)
class DesiredReservation:
    """An approved reservation that is not over. `nodes` are all held nodes, sorted, `spares` those that are spare.

    `teams` holds the accounts that may use it. `start_minute` <= at < `end_minute` makes it active.
    """

    id: str
    flavor: str
    teams: tuple[str, ...]
    nodes: tuple[str, ...]
    start_minute: int
    end_minute: int
    spares: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name on every cluster: `berth-R-131`."""
        return f"berth-{self.id}"

    def longest_minutes(self, at_minute: int) -> int:
        """The longest job that still fits: all of it before the start, then what is left after the minute now going."""
        begins = self.start_minute if at_minute < self.start_minute else at_minute + 1
        return max(1, self.end_minute - begins)


@dataclass(frozen=True, slots=True)
class DesiredState:
    """Everything Berth owns on one cluster at one moment, sorted and complete; equal inputs give equal states.

    `pool_gpus` is what no team is guaranteed, by flavor: the root's common pool after guarantees and running
    reservations. `installation` names this Berth, so that two of them never claim each other's objects.
    `topology_levels` are the names of the network levels, lowest first; `topology_labels` the node labels that tell a
    node's place, highest level first and the rack last, () where the cluster's nodes carry none. `keep` is filled by
    settle(): keys of native objects that must not be deleted yet.
    """

    cluster: str
    kind: str
    installation: str
    generation: int
    at_minute: int
    zone: str = "UTC"
    label_prefix: str = "berth.local"
    flavors: tuple[DesiredFlavor, ...] = ()
    teams: tuple[DesiredTeam, ...] = ()
    reservations: tuple[DesiredReservation, ...] = ()
    pool_gpus: tuple[tuple[str, int], ...] = ()
    topology_levels: tuple[str, ...] = field(default=())
    topology_labels: tuple[str, ...] = ()
    keep: tuple[tuple[str, str], ...] = ()
