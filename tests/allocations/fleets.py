"""Which small clusters do tests of the ledger room import? (real text, read by the real parsers)"""

from datetime import UTC, datetime

from allocations.models import Cluster
from allocations.services import fleet
from console.demo.inventories import ClusterShape, files_of
from scheduling.inventory import FleetInventory, parse

AT = datetime(2027, 1, 1, 12, tzinfo=UTC)


def inventory(
    blocks: int = 2, racks: int = 2, nodes: int = 3, ill: dict[int, tuple[str, str]] | None = None
) -> FleetInventory:
    """A Slurm inventory: sol-gb001.. in racks r001.. in blocks su01.., two HGX nodes and a CPU node."""
    shape = ClusterShape("sol", "slurm", "UTC", blocks, racks, 2, 1, nodes_per_rack=nodes, ill=ill or {})
    return parse("slurm", files_of(shape))


def moved(nodes: dict[str, list[str]]) -> FleetInventory:
    """An inventory with exactly these racks: rack name -> node names, all in one block."""
    listing = "\n".join(
        f"NodeName={name} CPUTot=8\n   Gres=gpu:gb200:4\n   State=IDLE\n   Partitions=nvl\n"
        for names in nodes.values()
        for name in names
    )
    racks = "\n".join(f"SwitchName={rack} Nodes={','.join(names)}" for rack, names in nodes.items())
    return parse(
        "slurm", {"nodes.txt": listing, "topology.conf": f"{racks}\nSwitchName=su01 Switches={','.join(nodes)}\n"}
    )


def sol() -> Cluster:
    """A connected cluster without nodes."""
    return fleet.connect_cluster(name="sol", kind="slurm", zone="Europe/Zurich", actor=None, at=AT)
