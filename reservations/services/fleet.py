"""May this inventory replace the one before? (an import knows who holds which node, so that no hold loses its node)"""

from datetime import datetime

from django.db import transaction

from allocations.models import Cluster, User
from allocations.services import fleet
from allocations.services.counters import lock_cluster
from allocations.services.fleet import ImportResult
from reservations.models import Hold
from scheduling.inventory.fleet import FleetInventory


def import_fleet(
    *, cluster: Cluster, inventory: FleetInventory, actor: User | None, at: datetime, dry_run: bool = False
) -> ImportResult:
    """Bring the cluster to what was read; a node that a live hold is on may vanish, but not move to another rack.

    Raises Invalid inventory_refused, naming the node; then nothing of it counts.
    """
    with transaction.atomic():
        cluster = lock_cluster(cluster)
        return fleet.import_fleet(
            cluster=cluster,
            inventory=inventory,
            actor=actor,
            at=at,
            dry_run=dry_run,
            held_nodes=held_nodes(cluster, at),
        )


def held_nodes(cluster: Cluster, at: datetime) -> dict[str, str]:
    """Names of nodes with a hold that is neither released nor over, each with one reservation's id. One query."""
    live = Hold.objects.filter(node__cluster=cluster, released_at=None, period__endswith__gt=at)
    return {
        name: f"R-{pk}" for name, pk in live.order_by("-reservation_id").values_list("node__name", "reservation_id")
    }
