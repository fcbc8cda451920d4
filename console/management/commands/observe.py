"""manage.py observe: one pass of reading a cluster's nodes and their health."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from allocations.errors import DomainError
from console.drivers import DriverError
from console.management.base import BerthCommand
from console.models import ClusterEndpoint
from console.push import observe
from scheduling.inventory import InventoryError


class Command(BerthCommand):
    """Exit 0 read, 1 unreachable or refused."""

    help = "Read a cluster's nodes and write down what changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", required=True)

    def perform(self, **given: Any) -> None:
        found = ClusterEndpoint.objects.filter(cluster__name=given["cluster"]).first()
        if found is None:
            raise CommandError(f"There is no connected cluster {given['cluster']}: manage.py connect makes one.")
        try:
            self.stdout.write(observe.observe(cluster_id=found.cluster_id, at=timezone.now()))
        except DriverError as error:
            raise CommandError(error.sentence) from error
        except (DomainError, InventoryError) as error:
            raise CommandError(str(error)) from error
