"""What was read about one cluster? (FleetInventory and its records: the only thing a parser hands out)"""

from dataclasses import dataclass

CONDITIONS = ("healthy", "suspect", "failed", "unknown")
NVLINK_DOMAINS = ("rack", "node", "none")


class InventoryError(ValueError):
    """A file that is refused, and with it the whole import. `str()` is `file:line: reason`; lines count from 1."""

    code = "inventory_refused"

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file, self.line, self.reason = file, line, reason


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One OS host. `gpus` are installed, `usable_gpus` those of them in order; `rack` None means no known topology.

    `condition` is one of CONDITIONS; `drained` takes no new work whatever the condition. `position` counts from 0 in
    the rack, in natural order of names. `memory_mb` and `cpus` are None where the file does not say.
    """

    name: str
    flavor: str
    rack: str | None
    gpus: int
    usable_gpus: int
    gpu_model: str
    gres_type: str
    partitions: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    condition: str
    drained: bool
    reason: str
    cabinet: str
    cpus: int | None
    memory_mb: int | None
    position: int | None


@dataclass(frozen=True, slots=True)
class RackRecord:
    """One NVLink domain, or the neighbourhood (leaf switch) of nodes that are NVLink domains of their own.

    `levels` has one entry per name in FleetInventory.levels, block first; None is unknown, which is never adjacency.
    `cabinets` is only a label: a domain may lie over two of them, and two domains in one.
    """

    name: str
    flavor: str
    levels: tuple[str | None, ...]
    nodes: tuple[str, ...]
    cabinets: tuple[str, ...]

    @property
    def cabinet(self) -> str:
        """The cabinets in one word: `c01`, `c01+c02`, or "" where nothing is known."""
        return "+".join(self.cabinets)


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """Racks under the lowest network level. `parents` are the levels above it, lowest first; None is unknown."""

    name: str
    parents: tuple[str | None, ...]
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlavorRecord:
    """A kind of node in this cluster, with its native words ("" and () where the scheduler has none).

    `nodes_per_rack` is the largest rack seen, unhealthy nodes counted; 1 where no rack is known. `nvlink_domain` says
    whether GPUs share NVLink over the whole rack, within the node only, or not at all.
    """

    name: str
    gpu_model: str
    gpus_per_node: int
    nodes_per_rack: int
    nvlink_domain: str
    gres_type: str
    partition: str
    node_labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FleetInventory:
    """Everything read of one cluster, each tuple in natural order of names: equal files give equal values.

    `kind` is slurm or kubernetes. `levels` names the levels above the rack, lowest first, and always begins with
    "block". `notes` are sentences about what was left out or guessed, for a person to read.
    `topology_labels` are the node labels that tell a node's place, highest level first and the rack last; () on Slurm.
    """

    kind: str
    levels: tuple[str, ...]
    nodes: tuple[NodeRecord, ...]
    racks: tuple[RackRecord, ...]
    blocks: tuple[BlockRecord, ...]
    flavors: tuple[FlavorRecord, ...]
    notes: tuple[str, ...]
    topology_labels: tuple[str, ...] = ()
