"""Are real public files read as what they are, or refused with their line? (files of ../shared, read in place)"""

from collections import Counter

import pytest

from scheduling.hostlist import fold
from scheduling.inventory import FleetInventory, InventoryError, parse
from tests.parts import SHARED

pytestmark = pytest.mark.part("shared")
REAL = SHARED / "cases" / "files"
TRANSCRIPTS = SHARED / "lab" / "slurm_transcripts"


def facts(inventory: FleetInventory) -> dict[str, int]:
    """Nodes by flavor."""
    return dict(Counter(node.flavor for node in inventory.nodes))


READ = {
    "scontrol_nodes/clockwork-node-2.txt": {"rtx8000-8gpu": 2},
    "scontrol_nodes/clockwork-node-small.txt": {"rtx8000-8gpu": 1},
    "scontrol_nodes/sckyzo-24.11.7-oneline.txt": {"cpu": 10, "model-a-4gpu": 4, "model-b-4gpu": 6},
    "sinfo/gcm-sinfo.txt": {"gen-8gpu": 2, "gen-2gpu": 1},
    "sinfo/sckyzo-25.05-node-gres.txt": {"model-a-4gpu": 5, "cpu": 1},
    "sinfo_json/clockwork-sinfo-1.json": {"unknown-1gpu": 1, "cpu": 1},
    "sinfo_json/rivos-sinfo.json": {"cpu": 4},
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-nodes.json": {"cpu": 4, "unknown-4gpu": 2, "h100-hgx4": 2},
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-node-draining.json": {"cpu": 1},
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-node-with-gpus-model-mixed.json": {"h100-hgx4": 1},
    "slurm_conf/hpc-toolset-tutorial.slurm.conf": {"cpu": 2},
    "slurm_conf/pcluster-generated-gpu.partition.conf": {"m60-2gpu": 5, "v100-8gpu": 10},
    "slurm_conf/schedmd-7.17.1.slurm.conf": {"unknown-8gpu": 10},
    "slurm_conf/schedmd-backfill.slurm.conf": {"cpu": 32},
    "slurm_conf/schedmd-example.slurm.conf": {"cpu": 32},
    "slurm_conf/small-hpc-includes.partition.conf": {"cpu": 4},
    "k8s_nodes/kwok-virtual-dgx-node.yaml": {"a100-hgx8": 1},
    "k8s_nodes/opensim-new-node.yaml": {"p100-2gpu": 1},
    "k8s_nodes/opensim-pai-node-01.yaml": {"v100-4gpu": 1},
}

REFUSED = {
    "sinfo/sckyzo-node-detail.txt": (1, "does not tell the GPUs"),
    "sinfo/vpenso-sinfo.txt": (1, "does not tell the GPUs"),
    "sinfo/sckyzo-gpus-snapshot.txt": (1, "count nodes instead of naming them"),
    "slurm_conf/azure-cyclecloud.slurm.conf.template": (67, "azure.conf is not among"),
    "slurm_conf/pcluster-generated.slurm.conf": (11, "is not among the given files"),
    "slurm_conf/small-hpc-includes.slurm.conf": (129, "partition.conf is not among"),
    "slurm_conf/tf-provider-25.11.slurm.conf": (1, "no nodes"),
    "gres_conf/pcluster-generated.gres.conf": (1, "no nodes"),
    "gres_conf/schedmd-7.17.1.gres.conf": (1, "no nodes"),
    "gres_conf/small-hpc.gres.conf": (1, "no nodes"),
    "slurmrestd_json/lcrownover-V0041OpenapiNodesResp.json": (95, "node name is named twice"),
    "slurmrestd_json/lcrownover-V0041OpenapiSharesResp.json": (1, "no nodes"),
    "slurmrestd_json/slurmweb-25.11-0.0.42-slurm-jwt-invalid-token.json": (1, "error answer"),
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-accounts.json": (1, "without a list under $.nodes"),
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-partitions.json": (1, "without a list under $.nodes"),
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-qos.json": (1, "without a list under $.nodes"),
    "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-not-found.txt": (1, "not a file of Slurm"),
    "topology_yaml/schedmd-150-9-block_bad_options.topology.yaml": (8, "12 is not a power of two times the first"),
    "topology_yaml/schedmd-150-9-block_not_dict.topology.yaml": (8, "is a mapping"),
    "topology_yaml/schedmd-150-9-root_not_list.topology.yaml": (1, "list of topologies"),
    "topology_yaml/schedmd-150-9-torus_bad_options.topology.yaml": (8, "torus3d knows no racks"),
    "topology_yaml/schedmd-150-9-tree_mutually_exclusive.topology.yaml": (15, "block and tree"),
    "topology_inputs/azure-hostnames.txt": (1, "not a file of Slurm"),
    "topology_inputs/azure-nodes_clusterUUIDs.txt": (1, "not a file of Slurm"),
    "topology_inputs/azure-topology.txt": (26, "lies under two switches"),
    "k8s_nodes/fgo-kwok-node.yaml": (12, "is not a node name of Kubernetes"),
    "k8s_nodes/knavigator-nwtopo.yaml": (15, "`kind` is missing"),
    "k8s_nodes/knavigator-virtual-nodes.yaml": (15, "`kind` is missing"),
}

# racks, nodes per rack, levels, and the place of one rack
TOPOLOGIES = {
    "azure-block.topology.conf": (4, 18, 1, (None,)),
    "schedmd-133-1-tc3.topology.conf": (20, 20, 2, ("grp10", "root")),
    "schedmd-check.topology.conf": (8, 4, 3, ("b[1-2]", "b[1-4]", "b[1-8]")),
    "small-hpc.topology.conf": (1, 4, 1, (None,)),
    "topograph-block.topology.conf": (12, 8, 2, ("rack[11-12]", "rack[11-12,21-22]")),
    "topograph-tree.topology.conf": (12, 8, 2, ("switch.2.1", "switch.3.1")),
}


def kind_of(path):
    return "kubernetes" if path.startswith("k8s_nodes/") else "slurm"


@pytest.mark.parametrize("path", READ)
def test_a_real_file_is_read(shared, path):
    assert facts(parse(kind_of(path), shared("", path))) == READ[path]


@pytest.mark.parametrize("path", REFUSED)
def test_a_real_file_is_refused_with_its_line(shared, path):
    with pytest.raises(InventoryError) as caught:
        parse(kind_of(path), shared("", path))
    line, reason = REFUSED[path]
    assert (caught.value.file, caught.value.line) == (path, line) and reason in caught.value.reason


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_real_topology_gives_racks_and_levels(shared, name):
    (text,) = shared("topology_conf", name).values()
    racks, size, levels, place = TOPOLOGIES[name]
    nodes = [word.partition("Nodes=")[2] for line in text.splitlines() for word in line.split() if "Nodes=" in word]
    conf = "\n".join(f"NodeName={members} Gres=gpu:gb200:4" for members in nodes)
    inventory = parse("slurm", {"topology.conf": text, "slurm.conf": conf})
    assert (len(inventory.racks), len(inventory.levels)) == (racks, levels)
    assert {len(rack.nodes) for rack in inventory.racks} == {size}
    assert inventory.racks[0].levels == place


def test_an_uneven_real_tree_keeps_every_leaf(shared):
    files = shared("topology_conf", "azure-tree.topology.conf")
    inventory = parse("slurm", {**files, "slurm.conf": "NodeName=hpcbench-hpc-[1-72]"})
    assert {rack.name: len(rack.nodes) for rack in inventory.racks} == {
        "sw00": 3,
        "sw01": 6,
        "sw02": 3,
        "sw03": 2,
        "sw04": 2,
    }
    assert [block.name for block in inventory.blocks] == ["sw05"]
    assert fold(node.name for node in inventory.nodes if not node.rack).startswith("hpcbench-hpc-[2-34,")


def test_includes_of_a_real_configuration_resolve_inside_the_upload(shared):
    files = shared("slurm_conf", "small-hpc-includes.slurm.conf", "small-hpc-includes.partition.conf")
    main, part = files.values()
    topology = shared("topology_conf", "small-hpc.topology.conf")
    inventory = parse("slurm", {"slurm.conf": main, "partition.conf": part, **topology})
    assert [rack.nodes for rack in inventory.racks] == [("slurm_node1", "slurm_node2", "slurm_node3", "slurm_node4")]


def test_a_node_on_four_lines_is_one_node_with_four_partitions(shared):
    nodes = {node.name: node for node in parse("slurm", shared("sinfo", "sckyzo-25.05-node-gres.txt")).nodes}
    assert (nodes["a001"].gpus, nodes["a001"].partitions) == (4, ("gpu", "gpu2", "gpu3", "gpu4"))
    assert (nodes["a002"].condition, nodes["a002"].drained, nodes["a004"].drained) == ("unknown", True, True)


@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_every_shared_file_is_read_or_refused_whatever_it_is(kind):
    paths = [path for path in REAL.rglob("*") if path.is_file()]
    assert len(paths) > 50
    for path in paths:
        try:
            assert parse(kind, {path.name: path.read_text(errors="replace")}).nodes
        except InventoryError as error:
            assert error.file == path.name and error.line >= 1


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_a_recorded_controller_answer_is_read(version):
    """The recorded answer was cut after its first hundred lines: it is refused there, or (22.05) is no JSON at all."""
    lines = (TRANSCRIPTS / f"resv-{version}.txt").read_text().split("\n")
    start = lines.index("$ scontrol --json show node gpu60 | head -100") + 1
    end = next(at for at in range(start, len(lines)) if lines[at].startswith("[rc="))
    with pytest.raises(InventoryError) as caught:
        parse("slurm", {"answer": "\n".join(lines[start:end]) + "\n"})
    assert caught.value.line == (1 if version == "22.05" else end - start + 1)


def test_recorded_live_topologies_of_two_versions_are_read():
    conf = "NodeName=gpu[01-72] Gres=gpu:gb300:4\n"
    for version in ("22.05", "26.05"):
        lines = (TRANSCRIPTS / f"misc2-{version}.txt").read_text().split("\n")
        start = next(at for at, line in enumerate(lines) if line.startswith("$ scontrol show topology | head")) + 1
        live = "\n".join(line for line in lines[start : start + 3])
        inventory = parse("slurm", {"conf": conf, "live": live})
        assert [rack.name for rack in inventory.racks] == ["rack001", "rack002", "rack003"]
        assert {flavor.name for flavor in inventory.flavors} == {"gb300-nvl72"}
