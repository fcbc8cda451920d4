"""What do the real files say that a cluster consists of? (`parse` is the one door; text in, one value out)"""

from scheduling.inventory.door import KINDS, parse
from scheduling.inventory.fleet import FleetInventory, InventoryError
from scheduling.inventory.kubernetes import parse_kubernetes
from scheduling.inventory.slurm import parse_slurm

__all__ = ["KINDS", "FleetInventory", "InventoryError", "parse", "parse_kubernetes", "parse_slurm"]
