"""Does one pass cost the same number of queries for few reservations and for many?"""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test.utils import CaptureQueriesContext

from allocations.models import Cluster, Node
from console.drivers.files import FolderOfFiles
from console.models import ClusterEndpoint
from console.push import desired
from reservations.models import Hold, Reservation
from scheduling.dialects import dialect
from tests.push.passes import push
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World


def many(world: World, number: int) -> None:
    """Approved reservations of one node each, one after another, as rows."""
    pattern = approved(world)
    nodes = list(Node.objects.order_by("name")[8:])
    rows = []
    for index in range(number):
        start_at = NOW + timedelta(days=30, hours=index // len(nodes))
        row = Reservation.objects.get(pk=pattern.pk)
        row.pk, row.start_at, row.end_at = None, start_at, start_at + timedelta(hours=1)
        row.approval_case = None
        rows.append(row)
    made = Reservation.objects.bulk_create(rows)
    Hold.objects.bulk_create(
        Hold(
            reservation=row,
            node=nodes[index % len(nodes)],
            period=DateTimeTZRange(row.start_at, row.end_at),
            is_provisional=False,
        )
        for index, row in enumerate(made)
    )
    Cluster.objects.update(desired_generation=Cluster.objects.get().desired_generation + 1)


@pytest.fixture
def holds_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that holds exactly what is wanted, however it came there."""

    def read(self: FolderOfFiles) -> Any:
        speech = dialect("slurm")
        rendered = speech.render(desired.gather(cluster_id=Cluster.objects.get().pk, at=NOW), None)
        return speech.parse_files(speech.files(rendered))

    monkeypatch.setattr(FolderOfFiles, "read", read)


def queries_of_a_pass(endpoint: ClusterEndpoint) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert push(endpoint).ended == "equal"
    return len(captured)


@pytest.mark.usefixtures("holds_all")
def test_a_pass_over_400_reservations_asks_as_often_as_one_over_20(world: World, endpoint: ClusterEndpoint) -> None:
    many(world, 20)
    first, second = queries_of_a_pass(endpoint), queries_of_a_pass(endpoint)
    Reservation.objects.filter(decision="approved").update(decision="cancelled")
    Hold.objects.update(released_at=NOW)
    many(world, 380)
    assert queries_of_a_pass(endpoint) <= first + 2, "new rows go in one statement"
    assert queries_of_a_pass(endpoint) == second
