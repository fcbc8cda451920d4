"""What does a cluster say about its nodes? Read regularly, written down only where it changed."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from allocations.models import Cluster
from allocations.services import health
from console.drivers import DriverError
from console.models import ClusterEndpoint
from console.push.endpoints import driver_of
from scheduling import inventory
from scheduling.inventory.fleet import FleetInventory

log = logging.getLogger(__name__)
INVENTORY_KIND = {"slurm": "slurm", "slinky": "kubernetes"}


def observable(*, at: datetime) -> list[int]:
    """Clusters whose nodes were not read for a while. A folder of files has no nodes to read."""
    late = at - timedelta(seconds=settings.BERTH_DRIFT_CHECK_SECONDS)
    return list(
        ClusterEndpoint.objects.exclude(driver=ClusterEndpoint.Driver.FILES)
        .filter(Q(cluster__observed_at=None) | Q(cluster__observed_at__lte=late))
        .values_list("cluster_id", flat=True)
    )


def observe(*, cluster_id: int, at: datetime) -> str:
    """One pass of reading nodes; returns a sentence. Raises DriverError and InventoryError: nothing is written then.

    An empty read changes nothing: a cluster that answers with no node is not believed.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    read = read_fleet(cluster_id=cluster_id)
    if not read.nodes:
        return f"{cluster.name} answered with no node; nothing was changed."
    changed = health.observe_nodes(cluster=cluster, records=read.nodes, actor=None, at=at)
    return f"{len(read.nodes)} nodes read on {cluster.name}, {changed} changed."


def read_fleet(*, cluster_id: int) -> FleetInventory:
    """What the cluster itself reports of its nodes and their places. Raises DriverError and InventoryError."""
    endpoint = ClusterEndpoint.objects.select_related("cluster").get(cluster_id=cluster_id)
    files = driver_of(endpoint).read_inventory()
    return inventory.parse(INVENTORY_KIND.get(endpoint.cluster.kind, "kubernetes"), files)


def observe_quietly(*, cluster_id: int, at: datetime) -> None:
    """The same for a task: what goes wrong is logged and tried again at the next beat."""
    try:
        observe(cluster_id=cluster_id, at=at)
    except (DriverError, inventory.InventoryError) as error:
        log.warning("reading cluster %s failed: %s", cluster_id, error)
