"""Does an import replace what was known, delete nothing, and keep every position?"""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.errors import Invalid, NotAllowed, WrongState
from allocations.models import Block, Cluster, Event, Level, Node, Observation, Rack
from allocations.services import fleet, teams
from tests.allocations.fleets import AT, inventory, moved, sol

pytestmark = pytest.mark.django_db
LATER = AT + timedelta(hours=1)


def take(cluster, read, **more):
    return fleet.import_fleet(cluster=cluster, inventory=read, actor=None, at=LATER, **more)


def test_an_import_creates_levels_blocks_racks_and_nodes():
    cluster = sol()
    result = take(cluster, inventory())
    assert (result.created, result.changed, result.gone) == (15, 0, 0)
    assert Level.objects.get(position=0).name == "block"
    rack = Rack.objects.get(name="r003")
    assert rack.block.name == "su02"
    assert [node.position for node in rack.nodes.order_by("name")] == [0, 1, 2]
    assert Block.objects.get(name="su01").parent.name == "core"


def test_a_second_import_changes_nothing():
    cluster = sol()
    take(cluster, inventory())
    cluster.refresh_from_db()
    before = (cluster.desired_generation, cluster.snapshot_version, cluster.inventory_mark, Event.objects.count())
    result = take(cluster, inventory())
    cluster.refresh_from_db()
    assert result.is_empty and result.unchanged == 15
    assert before == (
        cluster.desired_generation,
        cluster.snapshot_version,
        cluster.inventory_mark,
        Event.objects.count(),
    )


def test_an_import_bumps_both_counters_once_and_records_one_event_of_the_fleet():
    cluster = sol()
    before = Cluster.objects.get(pk=cluster.pk)
    take(cluster, inventory())
    after = Cluster.objects.get(pk=cluster.pk)
    assert after.desired_generation == before.desired_generation + 1
    assert after.snapshot_version == before.snapshot_version + 1
    assert Event.objects.filter(verb="fleet.imported").count() == 1


def test_an_absent_node_becomes_gone_and_failed_and_comes_back_at_its_position():
    cluster = sol()
    take(cluster, moved({"r1": ["n1", "n2", "n3"]}))
    result = take(cluster, moved({"r1": ["n1", "n3"]}))
    gone = Node.objects.get(name="n2")
    assert (result.gone, gone.gone_at, gone.condition) == (1, LATER, "failed")
    back = take(cluster, moved({"r1": ["n1", "n2", "n3"]}))
    node = Node.objects.get(name="n2")
    assert [change.verb for change in back.changes if change.name == "n2"] == ["back"]
    assert (node.pk, node.position, node.gone_at, node.condition) == (gone.pk, 1, None, "healthy")


def test_a_rack_without_nodes_becomes_gone_and_is_found_again():
    cluster = sol()
    take(cluster, inventory(blocks=2))
    take(cluster, inventory(blocks=1))
    assert Rack.objects.get(name="r003").gone_at == LATER
    take(cluster, inventory(blocks=2))
    assert Rack.objects.get(name="r003").gone_at is None


def test_a_node_that_moves_gets_a_new_position_and_its_old_one_is_never_given_again():
    cluster = sol()
    take(cluster, moved({"r1": ["n1", "n2", "n3"], "r2": ["n4", "n5", "n6"]}))
    result = take(cluster, moved({"r1": ["n1", "n2"], "r2": ["n3", "n4", "n5", "n6"]}))
    assert [(change.name, change.verb) for change in result.changes if change.verb == "moved"] == [("n3", "moved")]
    node = Node.objects.get(name="n3")
    assert (node.rack.name, node.position) == ("r2", 3)
    take(cluster, moved({"r1": ["n1", "n2", "n9"], "r2": ["n3", "n4", "n5", "n6"]}))
    assert Node.objects.get(name="n9").position == 3


def test_a_held_node_that_would_move_refuses_the_whole_import():
    cluster = sol()
    take(cluster, moved({"r1": ["n1", "n2"], "r2": ["n4"]}))
    with pytest.raises(Invalid, match="n2 is held by R-7") as refused:
        take(cluster, moved({"r1": ["n1", "n8"], "r2": ["n2", "n4"]}), held_nodes={"n2": "R-7"})
    assert refused.value.code == "inventory_refused"
    assert Node.objects.get(name="n2").rack.name == "r1"
    assert not Node.objects.filter(name="n8").exists()


def test_a_held_node_that_vanished_is_gone_and_the_change_names_its_reservation():
    cluster = sol()
    take(cluster, moved({"r1": ["n1", "n2"]}))
    result = take(cluster, moved({"r1": ["n1"]}), held_nodes={"n2": "R-7"})
    assert [change.detail for change in result.changes if change.name == "n2"] == ["still held by R-7"]


def test_nodes_without_a_rack_lie_in_a_pseudo_rack_of_their_flavor():
    cluster = sol()
    read = inventory()
    loose = tuple(replace(node, rack=None) if node.flavor == "cpu" else node for node in read.nodes)
    racks = tuple(rack for rack in read.racks if rack.flavor != "cpu")
    take(cluster, replace(read, nodes=loose, racks=racks))
    rack = Node.objects.get(name="sol-c01").rack
    assert rack.is_pseudo and rack.block is None and rack.flavor.name == "cpu"


def test_a_dry_run_tells_the_same_and_writes_nothing():
    cluster = sol()
    events = Event.objects.count()
    told = take(cluster, inventory(), dry_run=True)
    assert (Node.objects.count(), Rack.objects.count(), Event.objects.count()) == (0, 0, events)
    assert told == take(cluster, inventory())


def test_a_bad_node_is_observed_once_with_its_reason():
    cluster = sol()
    read = inventory(ill={2: ("DOWN", "no power")})
    take(cluster, read)
    take(cluster, read)
    seen = Observation.objects.get()
    assert (seen.node.name, seen.reason) == ("sol-gb002", "no power")
    assert seen.condition != "healthy"
    assert Event.objects.filter(verb="node.condition_changed").count() == 1


def test_a_level_that_is_no_more_leaves_its_racks_in_their_block():
    cluster = sol()
    read = inventory()
    take(cluster, read)
    flat = replace(
        read,
        levels=read.levels[:1],
        racks=tuple(replace(rack, levels=rack.levels[:1]) for rack in read.racks),
        blocks=tuple(replace(block, parents=()) for block in read.blocks),
    )
    take(cluster, flat)
    assert Level.objects.count() == 1
    assert Rack.objects.get(name="r001").block.name == "su01"
    assert take(cluster, flat).is_empty


def test_an_empty_inventory_and_one_of_another_scheduler_are_refused():
    cluster = sol()
    with pytest.raises(Invalid, match="removes nothing"):
        take(cluster, replace(inventory(), nodes=()))
    with pytest.raises(Invalid, match="slurm cluster"):
        take(cluster, replace(inventory(), kind="kubernetes"))


def test_an_import_takes_the_same_number_of_queries_whatever_its_size():
    cluster = sol()
    take(cluster, inventory(blocks=1, racks=1))
    counts = []
    for nodes in (10, 40):
        with CaptureQueriesContext(connection) as queries:
            take(cluster, inventory(blocks=1, racks=1, nodes=nodes))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_cluster_is_connected_once_and_keeps_its_kind_while_it_has_nodes():
    cluster = sol()
    assert sol() == cluster
    assert Event.objects.filter(verb="cluster.connected").count() == 1
    take(cluster, inventory())
    with pytest.raises(WrongState, match="another name"):
        fleet.connect_cluster(name="sol", kind="kueue", zone="UTC", actor=None, at=LATER)


@pytest.mark.parametrize(
    ("name", "kind", "zone"),
    [("Sol", "slurm", "UTC"), ("-sol", "slurm", "UTC"), ("sol", "pbs", "UTC"), ("sol", "slurm", "Mars/Base")],
)
def test_a_cluster_with_a_strange_name_kind_or_zone_is_refused(name, kind, zone):
    with pytest.raises(Invalid):
        fleet.connect_cluster(name=name, kind=kind, zone=zone, actor=None, at=AT)


def test_only_an_operator_imports():
    cluster = sol()
    person = teams.add_person(email="m@x.example", name="Mia", actor=None, at=AT)
    with pytest.raises(NotAllowed):
        fleet.import_fleet(cluster=cluster, inventory=inventory(), actor=person, at=AT)
    teams.grant_role(user=person, role="operator", cluster=cluster, actor=None, at=AT)
    assert fleet.import_fleet(cluster=cluster, inventory=inventory(), actor=person, at=AT).created == 15
