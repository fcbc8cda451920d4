"""Which parser reads this upload? (the one door: kind and files in, FleetInventory out)"""

from collections.abc import Mapping

from scheduling.inventory.fleet import FleetInventory
from scheduling.inventory.kubernetes import RACK_LABEL, parse_kubernetes
from scheduling.inventory.slurm import parse_slurm

KINDS = ("slurm", "kubernetes")


def parse(
    kind: str, files: Mapping[str, str], *, rack_label: str = RACK_LABEL, block_label: str | None = None
) -> FleetInventory:
    """The fleet in `files` (name -> text) of a cluster of this kind; the labels count for kubernetes only.

    Raises InventoryError, whose text is `file:line: reason`, and then nothing of the upload counts; ValueError for a
    kind that is not in KINDS.
    """
    if kind == "slurm":
        return parse_slurm(files)
    if kind == "kubernetes":
        return parse_kubernetes(files, rack_label=rack_label, block_label=block_label)
    raise ValueError(f"unknown kind {kind!r}: one of {', '.join(KINDS)}")
