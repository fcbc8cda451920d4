"""Does a cluster that was connected later join the demo with its own nodes, once?"""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from allocations.models import Allocation, Cluster, Event
from console.demo import local_slurm, people
from console.demo.inventories import ClusterShape, files_of
from console.push import endpoints
from reservations.services import submit
from scheduling.inventory import parse
from scheduling.inventory.fleet import FleetInventory
from scheduling.spec import ReservationSpec

pytestmark = pytest.mark.django_db
SHAPE = ClusterShape("demo-slurm", "slurm", "UTC", 2, 2)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A connected cluster of four whole racks that reports its nodes."""

    def read_fleet(*, cluster_id: int) -> FleetInventory:
        return parse("slurm", files_of(SHAPE))

    monkeypatch.setattr(local_slurm, "read_fleet", read_fleet)
    return endpoints.connect(
        name="demo-slurm", kind="slurm", driver="files", options={"dir": str(tmp_path)}, actor=None, at=timezone.now()
    ).cluster


def join() -> None:
    call_command("demo_cluster", "demo-slurm", stdout=StringIO())


def test_the_demo_lead_may_reserve_two_of_its_four_racks(cluster: Cluster) -> None:
    at = timezone.now()
    cast = people.settle({}, at)
    people.lay_down_rules(at)
    join()
    asked = submit.submit(
        team=cast.teams["acme/vision"],
        cluster=cluster,
        spec=ReservationSpec(flavor=cluster.flavors.get().name, racks=2, duration_minutes=1440),
        purpose="Two racks",
        actor=cast.people["lead@demo.berth"],
        at=timezone.now(),
    )
    assert asked.decision == "requested"
    assert asked.holds.count() == 36


def test_joining_again_changes_nothing(cluster: Cluster) -> None:
    people.settle({}, timezone.now())
    people.lay_down_rules(timezone.now())
    join()
    counts = Allocation.objects.count(), Event.objects.count()
    join()
    assert (Allocation.objects.count(), Event.objects.count()) == counts
    assert counts[0] == len(people.GUARANTEES)


def test_without_the_demo_it_only_gets_its_nodes(cluster: Cluster) -> None:
    join()
    assert cluster.nodes.count() == 72
    assert not Allocation.objects.exists()


def test_a_cluster_that_is_not_connected_is_refused() -> None:
    with pytest.raises(CommandError, match="no connected cluster"):
        join()
