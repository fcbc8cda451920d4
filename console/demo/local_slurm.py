"""How does a cluster that was connected later join the demo? (its inventory as it reports it, and grants for the teams)

`up --slurm` connects a real local Slurm; here it gets its nodes and the demo's teams a share of them, so that a person
can reserve its racks in the browser. Through the same services as everything else; a second time changes nothing.
"""

from datetime import datetime

from django.db import transaction

from allocations.models import Allocation, Cluster, Team, Tier
from console.demo import people
from console.demo.people import Cast
from console.push.observe import read_fleet
from reservations.services import fleet


def join(*, cluster: Cluster, at: datetime) -> str:
    """Import the cluster's own inventory and, where the demo's teams live here, grant from it; returns a sentence.

    Raises DriverError and InventoryError when the cluster cannot be read.
    """
    inventory = read_fleet(cluster_id=cluster.pk)
    with transaction.atomic():
        teams = {team.path: team for team in Team.objects.filter(archived_at=None)}
        has_demo = all(path in teams for path, *_ in people.GUARANTEES)
        result = fleet.import_fleet(cluster=cluster, inventory=inventory, actor=None, at=at)
        granted = Allocation.objects.filter(flavor__cluster=cluster, revoked_at=None, end_at__gt=at)
        if has_demo and not granted.exists():
            tiers = {tier.name: tier for tier in Tier.objects.all()}
            people.grant_all(Cast({}, teams), tiers, at, cluster=cluster)
    return f"{cluster.name} has {len(inventory.nodes)} nodes, {result.created} of them new."
