"""Does the API show the fleet as it is?"""

import pytest

from allocations.models import Cluster, Node
from tests.api.callers import problem
from tests.api.test_reservations import Of, put_endpoint
from tests.reservations.world import NOW, World, make_world


def test_a_cluster_in_numbers_with_its_push(world: World, of: Of) -> None:
    Node.objects.filter(name="sol0001").update(condition="failed")
    Cluster.objects.update(desired_generation=3, applied_generation=2)
    put_endpoint(world, state="verified", verified_at=NOW, read_at=NOW)
    assert of("stranger").get("clusters/sol").json() == {
        "name": "sol",
        "kind": "slurm",
        "zone": "UTC",
        "lifecycle": "production",
        "contract_ends_at": None,
        "disclosure": "names",
        "drift_policy": "restore",
        "frozen_at": None,
        "frozen_reason": None,
        "observed_at": None,
        "flavors": ["gb200"],
        "block_count": 2,
        "rack_count": 4,
        "node_count": 72,
        "healthy_node_count": 71,
        "total_gpus": 288,
        "healthy_gpus": 284,
        "push": {
            "state": "pending",
            "sentence": "",
            "desired_generation": 3,
            "applied_generation": 2,
            "updated_at": "2027-01-04T09:00:00Z",
            "verified_at": "2027-01-04T09:00:00Z",
        },
    }


def test_clusters_come_by_name_and_kind(world: World, of: Of) -> None:
    make_world(racks=1, nodes=1, name="luna")
    Cluster.objects.filter(name="luna").update(kind="kueue")
    who = of("stranger")

    def names(query: str = "") -> list[str]:
        return [item["name"] for item in who.get(f"clusters{query}").json()["items"]]

    assert names() == ["luna", "sol"]
    assert names("?order=-name") == ["sol", "luna"]
    assert names("?kind=kueue") == ["luna"]


def test_a_flavor_says_what_a_rack_of_it_is(world: World, of: Of) -> None:
    Node.objects.filter(name="sol0001").update(is_drained=True)
    shown = of("stranger").get("flavors/sol/gb200").json()
    assert shown == {
        "name": "gb200",
        "cluster": "sol",
        "gpu_model": "GB200",
        "gpus_per_node": 4,
        "nodes_per_rack": 18,
        "nvlink_domain": "rack",
        "turnaround_minutes": 0,
        "rack_count": 4,
        "whole_rack_count": 3,
        "node_count": 72,
        "healthy_node_count": 71,
        "drained_node_count": 1,
        "total_gpus": 288,
        "healthy_gpus": 284,
    }
    assert of("stranger").get("flavors?cluster=sol").json()["items"] == [shown]


def test_a_rack_lists_its_nodes_as_a_host_list(world: World, of: Of) -> None:
    Node.objects.filter(name="sol0018").update(gone_at=NOW)
    Node.objects.filter(name="sol0017").update(condition="suspect")
    shown = of("stranger").get("racks/sol/r01").json()
    assert (shown["block"], shown["levels"], shown["flavor"]) == ("b1", ["b1"], "gb200")
    assert (shown["nodes"], shown["node_count"], shown["healthy_node_count"]) == ("sol[0001-0017]", 17, 16)
    items = of("stranger").get("racks?cluster=sol&block=b2").json()["items"]
    assert [item["name"] for item in items] == ["r03", "r04"]


def test_a_node_says_where_and_how_it_is(world: World, of: Of) -> None:
    Node.objects.filter(name="sol0044").update(is_drained=True, reason="cable")
    shown = of("stranger").get("nodes/sol/sol0044").json()
    assert (shown["rack"], shown["position"], shown["node_gpus"]) == ("r03", 7, 4)
    assert (shown["condition"], shown["is_drained"], shown["is_placeable"]) == ("healthy", True, False)
    assert shown["reason"] == "cable"
    drained = of("stranger").get("nodes?is_drained=true").json()["items"]
    assert drained == [shown]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("rack=r01", 18),
        ("rack=r01&condition=healthy,suspect", 18),
        ("condition=failed", 0),
        ("flavor=gb200&cluster=sol&rack=r02", 18),
        ("cluster=luna", 0),
    ],
)
def test_nodes_are_filtered(world: World, of: Of, query: str, count: int) -> None:
    assert len(of("stranger").get(f"nodes?{query}").json()["items"]) == count


@pytest.mark.parametrize(
    "path",
    [
        "clusters/luna",
        "flavors/luna/gb200",
        "flavors/sol/h100",
        "racks/sol/r99",
        "nodes/sol/nothing",
        "nodes/sol/a%00b",
        "racks/sol/a/b/c",
        "clusters/sol/",
    ],
)
def test_what_is_not_there_is_404(world: World, of: Of, path: str) -> None:
    problem(of("stranger").get(path), 404, "not_found")
