"""Do rows become the planner's values, with every stored mask keeping its meaning?"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations import queries, snapshot
from allocations.models import Cluster, Node
from allocations.services import fleet, teams
from scheduling.topology import NodeMasks
from tests.allocations.fleets import AT, inventory, moved, sol

pytestmark = pytest.mark.django_db


def imported(*readings):
    cluster = sol()
    for read in readings:
        fleet.import_fleet(cluster=cluster, inventory=read, actor=None, at=AT)
    return Cluster.objects.get(pk=cluster.pk)


def test_the_topology_has_every_rack_with_its_levels_and_ids():
    cluster = imported(inventory())
    found = snapshot.inventory(cluster)
    tree = found.topology
    number = tree.rack_number("r003")
    assert tree.racks[number].levels == ("su02", "core")
    assert found.rack_index[found.rack_ids[number]] == number
    assert tree.rack_of("sol-gb007") == number
    assert found.node_ids["sol-gb007"] == Node.objects.get(name="sol-gb007").pk


def test_a_mask_stored_before_nodes_moved_still_names_the_nodes_that_stayed():
    cluster = imported(moved({"r1": ["n1", "n2", "n3"], "r2": ["n4"]}))
    before = snapshot.inventory(cluster)
    masks = before.topology.masks(["n1", "n3"])
    stored = [before.rack_ids[rack] for rack in masks.rack]
    cluster = imported(moved({"r1": ["n1", "n3"], "r2": ["n2", "n4"]}))
    after = snapshot.inventory(cluster)
    again = NodeMasks.of([after.rack_index[pk] for pk in stored], masks.word, masks.mask)
    assert after.topology.names(again) == ("n1", "n3")


def test_a_position_nobody_has_and_a_gone_node_are_never_placeable():
    cluster = imported(moved({"r1": ["n1", "n2", "n3"], "r2": ["n4"]}), moved({"r1": ["n1"], "r2": ["n2", "n4"]}))
    found = snapshot.inventory(cluster)
    rack = found.topology.racks[found.topology.rack_number("r1")]
    assert len(rack.nodes) == 3
    assert set(rack.nodes) - {"n1"} <= snapshot.unhealthy(cluster)
    assert "n2" not in rack.nodes and "n3" in rack.nodes


def test_reading_takes_five_queries_and_none_the_second_time():
    cluster = imported(inventory())
    with CaptureQueriesContext(connection) as first:
        snapshot.inventory(cluster)
    with CaptureQueriesContext(connection) as second:
        snapshot.inventory(cluster)
    assert (len(first), len(second)) == (5, 0)


def test_a_rolled_back_import_leaves_no_stale_topology():
    cluster = imported(moved({"r1": ["n1"]}))
    fleet.import_fleet(cluster=cluster, inventory=moved({"r1": ["n1", "n2"]}), actor=None, at=AT, dry_run=True)
    assert "n2" not in snapshot.inventory(Cluster.objects.get(pk=cluster.pk)).node_ids
    cluster = imported(moved({"r1": ["n1", "n3"]}))
    assert set(snapshot.inventory(cluster).node_ids) == {"n1", "n3"}


def test_the_fleet_in_numbers_takes_four_queries_whatever_its_size():
    imported(inventory(ill={2: ("DOWN", "x"), 4: ("IDLE+DRAIN", "y")}))
    person = teams.add_person(email="m@x.example", name="Mia", actor=None, at=AT)
    queries.fleet(person)
    with CaptureQueriesContext(connection) as captured:
        (cluster,) = queries.fleet(person)
    assert len(captured) == 4
    counts = {one.flavor.name: one for one in cluster.flavors}["gb200-nvl12"]
    assert (counts.racks, counts.whole_racks, counts.nodes, counts.healthy_nodes) == (4, 2, 12, 10)
    assert (counts.gpus, counts.healthy_gpus, counts.drained_nodes) == (48, 40, 1)
    assert cluster.nodes == 15


def test_racks_come_with_their_nodes_in_order_in_three_queries():
    cluster = imported(inventory())
    with CaptureQueriesContext(connection) as captured:
        found = queries.racks(cluster)
    assert len(captured) == 3
    first = next(one for one in found if one.rack.name == "r001")
    assert [node.name for node in first.nodes] == ["sol-gb001", "sol-gb002", "sol-gb003"]
    assert first.levels == ("su01", "core") and first.healthy_nodes == 3
    assert queries.rack(cluster, "r001").nodes == first.nodes
    assert queries.rack(cluster, "nowhere") is None
