"""Are the made-up clusters sol and luna read as what they are, in every format?"""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from scheduling.hostlist import expand
from scheduling.inventory import FleetInventory, InventoryError, parse

CLIQUE = "3f1c2b7a-0d4e-4c61-9a51-77aa02c4be10"


def healthy(inventory: FleetInventory) -> Counter[str]:
    return Counter(node.rack for node in inventory.nodes if node.rack and node.condition == "healthy")


def flavors(inventory: FleetInventory) -> dict[str, tuple[int, int, str]]:
    return {each.name: (each.gpus_per_node, each.nodes_per_rack, each.nvlink_domain) for each in inventory.flavors}


def test_sol_has_its_racks_blocks_and_flavors(own):
    sol = parse("slurm", own("sol", "nodes.txt", "topology.conf"))
    assert sol.levels == ("block", "level-2")
    assert flavors(sol) == {"gb200-nvl72": (4, 18, "rack"), "h100-hgx8": (8, 4, "node"), "cpu": (0, 6, "none")}
    assert [block.name for block in sol.blocks] == ["su1", "su2", "su3"]
    assert sol.blocks[0].racks == ("nvl01", "nvl02", "nvl03") and sol.blocks[0].parents == ("core",)
    assert {rack.name: rack.levels for rack in sol.racks}["nvl05"] == ("su2", "core")
    assert sol.notes == ()


def test_sol_has_racks_with_16_17_and_18_healthy_nodes_of_18(own):
    sol = parse("slurm", own("sol", "nodes.txt", "topology.conf"))
    counts = healthy(sol)
    assert [counts[f"nvl0{number}"] for number in range(1, 7)] == [18, 18, 18, 17, 16, 18]
    assert all(len(rack.nodes) == 18 for rack in sol.racks if rack.flavor == "gb200-nvl72")


def test_a_rack_may_lie_over_two_cabinets_and_two_racks_in_one(own):
    racks = {rack.name: rack for rack in parse("slurm", own("sol", "nodes.txt", "topology.conf")).racks}
    assert racks["nvl01"].cabinets == ("c01", "c02") and racks["nvl01"].cabinet == "c01+c02"
    assert racks["nvl02"].cabinet == racks["nvl03"].cabinet == "c03"


def test_positions_count_in_natural_order_within_the_rack(own):
    nodes = {node.name: node for node in parse("slurm", own("sol", "nodes.txt", "topology.conf")).nodes}
    assert [nodes[name].position for name in expand("sol-gb[019-036]")] == list(range(18))
    assert (nodes["sol-gb001"].cpus, nodes["sol-gb001"].memory_mb) == (144, 900000)


def test_states_of_sol_become_conditions_and_drains(own):
    nodes = {node.name: node for node in parse("slurm", own("sol", "nodes.txt", "topology.conf")).nodes}
    seen = {name: (nodes[name].condition, nodes[name].drained) for name in nodes}
    assert seen["sol-gb003"] == seen["sol-gb004"] == seen["sol-gb005"] == ("healthy", False)
    assert seen["sol-gb020"] == seen["sol-gb021"] == ("healthy", False)
    assert seen["sol-gb057"] == ("failed", False)
    assert seen["sol-gb073"] == ("failed", False)
    assert seen["sol-gb074"] == ("failed", True)
    assert seen["sol-gb099"] == ("healthy", True) and nodes["sol-gb099"].reason == "Kill task failed"
    assert nodes["sol-gb074"].reason == "check failed unit=gpu3 code=79: link lost"
    assert seen["sol-h05"] == ("healthy", True) and nodes["sol-h05"].gpus == 8


@pytest.mark.parametrize("listing", ["nodes.txt", "nodes-oneline.txt", "nodes.json"])
@pytest.mark.parametrize("topology", ["topology.conf", "topology.yaml", "topology-live.txt"])
def test_every_twin_of_sol_is_the_same_fleet(own, listing, topology):
    assert parse("slurm", own("sol", listing, topology)) == parse("slurm", own("sol", "nodes.txt", "topology.conf"))


def test_block_twins_are_the_same_fleet_and_group_consecutive_racks(own):
    conf = parse("slurm", own("sol", "nodes.txt", "blocks.conf"))
    assert conf == parse("slurm", own("sol", "nodes.json", "blocks.yaml"))
    assert {rack.name: rack.levels for rack in conf.racks}["nvl03"] == ("nvl[03-04]", "nvl[01-04]")
    assert {rack.name: rack.levels for rack in conf.racks}["nvl06"] == ("nvl[05-06]", "nvl[05-06]")
    assert "without a rack: sol-c[01-06],sol-h[01-08]" in conf.notes


def test_slurm_conf_with_includes_gives_the_same_fleet_without_health(own):
    conf = parse("slurm", own("sol", "slurm.conf", "nodes.conf", "gres.conf", "topology.conf"))
    live = parse("slurm", own("sol", "nodes.txt", "topology.conf"))
    assert (conf.racks, conf.blocks, conf.flavors) == (live.racks, live.blocks, live.flavors)
    well = tuple(replace(node, condition="healthy", drained=False, reason="") for node in live.nodes)
    assert conf.nodes == well


def test_luna_has_its_racks_blocks_and_flavors(own):
    luna = parse("kubernetes", own("luna", "nodes.json"))
    assert luna.levels == ("block", "spine")
    assert flavors(luna) == {"gb200-nvl72": (4, 18, "rack"), "h200-hgx8": (8, 4, "node"), "cpu": (0, 3, "none")}
    racks = {rack.name: rack for rack in luna.racks}
    assert racks[f"{CLIQUE}.32766"].cabinets == ("c01", "c02")
    assert racks[f"{CLIQUE}.32767"].cabinet == racks[f"{CLIQUE}.32768"].cabinet == "c03"
    assert racks[f"{CLIQUE}.32768"].levels == ("leaf-2", "spine-1")
    assert racks["leaf-3"].levels == ("leaf-3", "spine-2") and racks["leaf-3"].flavor == "h200-hgx8"
    assert [healthy(luna)[f"{CLIQUE}.{32766 + number}"] for number in range(4)] == [18, 18, 17, 16]


def test_luna_says_what_ails_a_node(own):
    nodes = {node.name: node for node in parse("kubernetes", own("luna", "nodes.json")).nodes}
    assert nodes["luna-gb-041"].condition == "failed" and "container runtime" in nodes["luna-gb-041"].reason
    assert nodes["luna-gb-057"].condition == "unknown"
    sick = nodes["luna-gb-058"]
    assert (sick.condition, sick.gpus, sick.usable_gpus) == ("suspect", 4, 3)
    assert (nodes["luna-h-02"].condition, nodes["luna-h-02"].drained) == ("healthy", True)
    assert nodes["luna-gb-001"].drained is False


def test_json_and_yaml_of_luna_are_the_same_fleet(own):
    assert parse("kubernetes", own("luna", "nodes.json")) == parse("kubernetes", own("luna", "nodes.yaml"))


def test_flavors_of_luna_know_the_label_that_selects_them(own):
    labels = {each.name: each.node_labels for each in parse("kubernetes", own("luna", "nodes.json")).flavors}
    assert labels["gb200-nvl72"] == (("nvidia.com/gpu.product", "NVIDIA-GB200"),)
    assert labels["cpu"] == (("node.kubernetes.io/instance-type", "c96"),)


def test_rack_and_block_labels_can_be_chosen(own):
    luna = parse(
        "kubernetes",
        own("luna", "nodes.json"),
        rack_label="topology.kubernetes.io/cabinet",
        block_label="network.topology.nvidia.com/spine",
    )
    assert luna.levels == ("block",)
    racks = {rack.name: rack for rack in luna.racks}
    assert len(racks["c03"].nodes) == 36 and racks["c03"].levels == ("spine-1",)


def test_order_of_files_and_records_does_not_matter(own):
    files = own("sol", "nodes-oneline.txt", "topology.conf")
    turned = {"topology.conf": files["topology.conf"]}
    turned["nodes-oneline.txt"] = "\n".join(reversed(files["nodes-oneline.txt"].splitlines())) + "\n"
    assert parse("slurm", turned) == parse("slurm", files)


def test_an_unknown_kind_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="one of slurm, kubernetes") as caught:
        parse("nomad", {"x": "y"})
    assert not isinstance(caught.value, InventoryError)


def test_the_stored_fixtures_are_what_their_generator_writes(tmp_path):
    folder = Path(__file__).parents[2] / "fixtures" / "inventory"
    copy = tmp_path / "generate.py"
    copy.write_text((folder / "generate.py").read_text())
    subprocess.run([sys.executable, str(copy)], check=True)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.glob("*/*")}
    stored = {path.relative_to(folder): path.read_bytes() for path in folder.glob("*/*") if path.suffix != ".pyc"}
    assert written == stored
    assert all(len(content) < 400_000 for content in stored.values())
