"""manage.py demo_cluster: how does a connected cluster join the demo, so that its racks can be reserved?"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from allocations.errors import DomainError
from console.demo import local_slurm
from console.drivers import DriverError
from console.management.base import BerthCommand
from console.models import ClusterEndpoint
from scheduling.inventory import InventoryError


class Command(BerthCommand):
    """Exit 0 joined or nothing to do, 1 unreachable or refused."""

    help = "Import a connected cluster's own inventory and give the demo's teams, where they live here, a share of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def perform(self, **given: Any) -> int | None:
        found = ClusterEndpoint.objects.select_related("cluster").filter(cluster__name=given["name"]).first()
        if found is None:
            raise CommandError(f"There is no connected cluster {given['name']}: manage.py connect makes one.")
        try:
            self.stdout.write(local_slurm.join(cluster=found.cluster, at=timezone.now()))
        except DriverError as error:
            raise CommandError(error.sentence) from error
        except (DomainError, InventoryError) as error:
            raise CommandError(str(error)) from error
        return None
