"""Does import_fleet say what changed, refuse with a place, and exit as promised?"""

from datetime import timedelta

import pytest
from django.core.management import base, call_command
from django.core.management.base import CommandError
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from allocations.models import Flavor, Node
from allocations.services import fleet, teams
from console.demo.inventories import ClusterShape, files_of
from console.management.base import UsageParser
from reservations.models import Hold, Reservation
from reservations.services.fleet import held_nodes

pytestmark = pytest.mark.django_db
SHAPE = ClusterShape("sol", "slurm", "UTC", 1, 2, nodes_per_rack=3)


@pytest.fixture
def cluster():
    return fleet.connect_cluster(name="sol", kind="slurm", zone="UTC", actor=None, at=timezone.now())


@pytest.fixture
def files(tmp_path):
    for name, text in files_of(SHAPE).items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / "nodes.txt"), str(tmp_path / "topology.conf")]


def run(capsys, *arguments: str) -> str:
    call_command("import_fleet", *arguments)
    return capsys.readouterr().out


def test_an_import_says_what_it_made_and_then_that_nothing_is_to_do(cluster, files, capsys):
    assert "6 nodes would be created" in run(capsys, "sol", "--kind", "slurm", *files, "--dry-run")
    assert Node.objects.count() == 0
    assert "6 nodes created" in run(capsys, "sol", "--kind", "slurm", *files)
    assert "nothing to do" in run(capsys, "sol", "--kind", "slurm", *files)


def test_a_broken_file_is_refused_whole_with_file_and_line(cluster, files, tmp_path, capsys):
    broken = tmp_path / "nodes.txt"
    broken.write_text(broken.read_text().replace("NodeName=sol-gb004", "NodeName={{node}}"))
    with pytest.raises(CommandError, match=r"nodes\.txt:\d+: ") as refused:
        run(capsys, "sol", "--kind", "slurm", *files)
    assert refused.value.returncode == 1
    assert Node.objects.count() == 0


def test_an_unknown_cluster_names_the_command_that_connects_it(files, capsys):
    with pytest.raises(CommandError, match="connect sol"):
        run(capsys, "sol", "--kind", "slurm", *files)


@pytest.mark.parametrize(
    "arguments", [("sol", "--kind", "pbs", "x"), ("sol", "--kind", "slurm", "/no/such/file"), ("sol",)]
)
def test_wrong_usage_is_64(cluster, arguments, monkeypatch):
    monkeypatch.setattr(base, "CommandParser", UsageParser)  # as manage.py does at its start
    with pytest.raises(CommandError) as refused:
        call_command("import_fleet", *arguments)
    assert refused.value.returncode == 64


def test_a_node_that_is_held_refuses_to_move_with_the_line_that_names_it(cluster, files, tmp_path, capsys):
    run(capsys, "sol", "--kind", "slurm", *files)
    now = timezone.now().replace(second=0, microsecond=0)
    lead = teams.add_person(email="l@x.example", name="Lea", actor=None, at=now)
    reservation = Reservation.objects.create(
        cluster=cluster,
        team=teams.add_team(name="acme", actor=None, at=now),
        flavor=Flavor.objects.get(),
        purpose="x",
        spec={},
        start_at=now,
        end_at=now + timedelta(days=1),
        created_by=lead,
    )
    period = DateTimeTZRange(reservation.start_at, reservation.end_at)
    hold = Hold.objects.create(reservation=reservation, node=Node.objects.get(name="sol-gb003"), period=period)
    topology = tmp_path / "topology.conf"
    topology.write_text(
        topology.read_text().replace("sol-gb[001-003]", "sol-gb[001-002]").replace("sol-gb[004-006]", "sol-gb[003-006]")
    )
    with pytest.raises(CommandError, match=rf"nodes\.txt:\d+: node sol-gb003 is held by {reservation.public_id}"):
        run(capsys, "sol", "--kind", "slurm", *files)
    hold.released_at = now
    hold.save()
    assert held_nodes(cluster, now) == {}
    assert "node sol-gb003: moved (now in r002)" in run(capsys, "sol", "--kind", "slurm", *files)
