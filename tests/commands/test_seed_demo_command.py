"""Is the demo believable, private, and made only where nothing is?"""

import stat
from collections import Counter
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from allocations import queries
from allocations.models import Event, Outage, Team, User
from console.demo import seed
from console.demo.inventories import ClusterShape, files_of
from console.models import ClusterEndpoint
from reservations.models import Hold, Reservation
from scheduling.inventory import parse


@pytest.mark.django_db
def test_the_small_demo_has_two_clusters_a_past_and_asks_that_wait(settings, tmp_path, capsys):
    settings.BERTH_HOME = tmp_path
    call_command("seed_demo")
    printed = capsys.readouterr().out
    now = timezone.now()

    kept = Path(tmp_path) / "demo-passwords"
    assert kept.read_text() == printed
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    words = {line.split()[0]: line.split()[1] for line in printed.splitlines()}
    for role in ("lead", "approver", "operator", "auditor"):
        user = User.objects.get(email=f"{role}@demo.berth")
        assert user.is_demo and user.check_password(words[user.email])

    sol, luna = sorted(queries.fleet(User.objects.get(email="operator@demo.berth")), key=lambda one: -one.nodes)
    assert (sol.cluster.kind, luna.cluster.kind) == ("slurm", "kueue")
    found = queries.racks(sol.cluster)
    assert {16, 17, 18} <= {one.healthy_nodes for one in found if one.rack.flavor.name == seed.FLAVOR}
    assert {endpoint.driver for endpoint in ClusterEndpoint.objects.all()} == {"files"}

    decisions = Counter(Reservation.objects.values_list("decision", flat=True))
    assert decisions["requested"] == 2
    assert decisions["approved"] >= 12 and decisions["rejected"] >= 1
    approved = Reservation.objects.filter(decision="approved", released_at=None)
    assert approved.filter(end_at__lte=now).exists()
    assert approved.filter(start_at__lte=now, end_at__gt=now).exists()
    assert approved.filter(start_at__gt=now).exists()
    assert Hold.objects.filter(is_provisional=True, released_at=None).exists()
    assert Outage.objects.count() == 1
    assert not Event.objects.filter(at__gt=now).exists()

    with pytest.raises(CommandError, match="empty database") as refused:
        call_command("seed_demo")
    assert refused.value.returncode == 1


@pytest.mark.django_db
def test_the_demo_is_all_or_nothing(settings, tmp_path, monkeypatch):
    settings.BERTH_HOME = tmp_path

    def fail(*args: object) -> None:
        raise RuntimeError("the power went out")

    monkeypatch.setattr(seed, "_live", fail)
    with pytest.raises(RuntimeError):
        seed.seed(scale="small", at=timezone.now())
    assert not Team.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_there_is_no_demo_without_its_passwords(settings, tmp_path):
    settings.BERTH_HOME = tmp_path
    (tmp_path / "demo-passwords").mkdir()  # so that they cannot be written
    with pytest.raises(OSError, match="demo-passwords"):
        call_command("seed_demo")
    assert not Team.objects.exists()


def test_the_fleet_scale_has_about_twenty_five_thousand_nodes():
    shapes = seed.shapes_of("fleet")
    nodes = [shape.blocks * shape.racks_per_block * shape.nodes_per_rack + shape.hgx_nodes for shape in shapes]
    assert 24_000 < sum(nodes) < 26_000
    assert 8 <= len(shapes) <= 40
    assert len({shape.name for shape in shapes}) == len(shapes)


@pytest.mark.parametrize("kind", ["slurm", "kueue"])
def test_a_made_up_inventory_is_read_as_it_was_meant(kind):
    shape = ClusterShape(
        "x", kind, "UTC", 2, 3, hgx_nodes=9, cpu_nodes=2, ill={1: ("DOWN", "dead"), 2: ("IDLE+DRAIN", "ecc")}
    )
    read = parse(shape.inventory_kind, files_of(shape))
    nodes = {node.name: node for node in read.nodes}
    assert len(nodes) == 2 * 3 * 18 + 9 + 2
    assert nodes["x-gb001"].condition != "healthy"
    assert nodes["x-gb002"].drained and not nodes["x-gb003"].drained
    racks = {rack.name: rack for rack in read.racks if rack.flavor == seed.FLAVOR}
    assert len(racks) == 6 and {len(rack.nodes) for rack in racks.values()} == {18}
    assert len({rack.levels[0] for rack in racks.values()}) == 2
    assert any(len(rack.cabinets) == 2 for rack in racks.values())
