"""Does the fleet read as it stands, in few queries, with every stored position keeping its meaning?"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations import queries
from allocations.models import Cluster, Node
from allocations.services import fleet, teams
from tests.allocations.fleets import AT, inventory, moved, sol

pytestmark = pytest.mark.django_db


def imported(*readings):
    cluster = sol()
    for read in readings:
        fleet.import_fleet(cluster=cluster, inventory=read, actor=None, at=AT)
    return Cluster.objects.get(pk=cluster.pk)


def places(*names):
    """(rack, position) by node name: what a stored mask says."""
    return {node.name: (node.rack.name, node.position) for node in Node.objects.filter(name__in=names)}


def test_nodes_that_stay_keep_the_place_that_masks_were_stored_with():
    imported(moved({"r1": ["n1", "n2", "n3"], "r2": ["n4"]}))
    before = places("n1", "n3")
    imported(moved({"r1": ["n1", "n3"], "r2": ["n2", "n4"]}))
    assert places("n1", "n3") == before
    assert places("n2")["n2"][0] == "r2" and places("n2") != before


def test_a_place_is_never_given_twice():
    imported(moved({"r1": ["n1", "n2"]}), moved({"r1": ["n1"]}), moved({"r1": ["n1", "n5"]}))
    positions = [position for _, position in places("n1", "n2", "n5").values()]
    assert len(set(positions)) == 3


def test_only_healthy_production_nodes_of_racks_in_production_count():
    cluster = imported(inventory(ill={2: ("DOWN", "x"), 4: ("IDLE+DRAIN", "y")}))
    flavor = cluster.flavors.get(name="gb200-nvl12")
    assert queries.healthy_gpus([flavor]) == {flavor.pk: 40}
    out = Node.objects.filter(flavor=flavor, condition="healthy", is_drained=False).values_list("pk", flat=True)[:2]
    assert queries.healthy_gpus([flavor], without=list(out)) == {flavor.pk: 32}
    cluster.racks.filter(flavor=flavor).update(lifecycle="repair")
    assert queries.healthy_gpus([flavor]) == {flavor.pk: 0}


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
