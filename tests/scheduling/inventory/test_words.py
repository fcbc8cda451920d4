"""Are the schedulers' small words (states, GRES, quantities, models, labels) read rightly?"""

from decimal import Decimal

import pytest

from scheduling.inventory import InventoryError, parse
from scheduling.inventory.gpu_models import gpu_model, model_of_instance_type
from scheduling.inventory.kubernetes_words import gpus_of, quantity, whole_quantity
from scheduling.inventory.sightings import natural_pair
from scheduling.inventory.slurm_words import read_features, read_gres, read_state

STATES = {
    "idle": ("healthy", False), "ALLOCATED": ("healthy", False), "mix": ("healthy", False),
    "MIXED+DRAIN": ("healthy", True), "IDLE+MAINTENANCE+RESERVED+PLANNED": ("healthy", True),
    "idle*": ("unknown", False), "mixed-": ("healthy", False), "idle~": ("healthy", False),
    "DOWN*+DRAIN": ("failed", True), "IDLE+CLOUD+POWERED_DOWN": ("healthy", False), "drained*": ("unknown", True),
    "draining@": ("healthy", True), "down~": ("failed", False), "IDLE+NOT_RESPONDING": ("unknown", False),
    "IDLE+CLOUD+NOT_RESPONDING+POWERING_UP": ("healthy", False), "inval": ("failed", False),
    "IDLE+INVALID_REG": ("failed", False), "FUTURE": ("unknown", False), "unk*": ("unknown", False),
    "FAIL": ("failed", True), "ALLOCATED+FAILING": ("failed", True), "maint": ("healthy", True),
    "idle$": ("healthy", True), "reboot^": ("unknown", False), "IDLE+REBOOT_REQUESTED": ("healthy", False),
    "IDLE+DYNAMIC_NORM": ("healthy", False), "planned": ("healthy", False), "COMPLETING": ("healthy", False),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_node_states_become_condition_and_drain(state):
    condition, drained, strange = read_state([state])
    assert (condition, drained, strange) == (*STATES[state], ())


def test_a_state_word_nobody_knows_makes_the_node_unknown_and_is_named():
    assert read_state(["IDLE+HIBERNATING"]) == ("unknown", False, ("HIBERNATING",))
    assert read_state([""]) == ("unknown", False, ())


def test_states_as_words_of_json_are_the_same():
    assert read_state(["IDLE", "DRAIN"]) == read_state(["IDLE+DRAIN"])
    assert read_state(["down", "NOT_RESPONDING"]) == read_state(["DOWN*"])


GRES = {
    "gpu:8(S:0-3)": (8, ""), "gpu:h100:8(S:0-1)": (8, "h100"), "gpu:h100:8(IDX:0-7)": (8, "h100"),
    "gpu:4(IDX:N/A)": (4, ""), "gpu": (1, ""), "gpu:a100:2(S:0,2),shard:16,gpu:t4:1": (3, "a100"),
    "": (0, ""), "(null)": (0, ""), "craynetwork:4": (0, ""), "gpu:gb200:4,license:1": (4, "gb200"),
}  # fmt: skip


@pytest.mark.parametrize("gres", GRES)
def test_gres_gives_count_and_type(gres):
    assert read_gres(gres) == GRES[gres]


def test_tres_fills_what_gres_leaves_open():
    assert read_gres("", "cpu=4,mem=32G,gres/gpu=8") == (8, "")
    assert read_gres("gpu:8", "cpu=4,gres/gpu=8,gres/gpu:h100=8") == (8, "h100")
    assert read_gres("gpu:a100:4", "cpu=4,gres/gpu=8") == (4, "a100")


@pytest.mark.parametrize("bad", ["gpu:h100:many", "gpu:a:b:2", "gpu:"])
def test_a_gpu_entry_that_cannot_be_read_is_an_error(bad):
    with pytest.raises(ValueError, match="cannot read the GPUs"):
        read_gres(bad)


MODELS = {
    "h100": "H100", "nvidia_h100_80gb_hbm3": "H100", "gb200": "GB200", "GB200": "GB200", "gb300": "GB300",
    "NVIDIA-GB200": "GB200", "NVIDIA-A100-SXM4-80GB": "A100", "Tesla-V100-SXM2-32GB": "V100", "NVIDIA-L40S": "L40S",
    "rtx8000": "rtx8000", "model_a": "model_a", "a100_1g.5gb": "a100_1g.5gb", "": "", "dgxa100.40g": "A100",
    "nvidia-h100-mega-80gb": "H100",
}  # fmt: skip


@pytest.mark.parametrize("native", MODELS)
def test_native_words_name_the_model(native):
    assert gpu_model(native) == MODELS[native]


def test_instance_types_name_the_model():
    assert model_of_instance_type("p5.48xlarge") == "H100"
    assert model_of_instance_type("p6e-gb200.36xlarge") == "GB200"
    assert model_of_instance_type("Standard_ND96isr_H100_v5") == "H100"
    assert model_of_instance_type("c96") == ""


def test_a_cabinet_is_read_from_feature_extra_or_comment():
    assert read_features(["gb200", "cabinet=c07"]) == ("c07", "GB200", (("cabinet", "c07"), ("gb200", "")))
    assert read_features(["cabinet_c7"])[0] == read_features(["cabinet-c7"])[0] == "c7"
    assert read_features([], '{"cabinet": "k-2", "row": 4}')[0] == "k-2"
    assert read_features([], "", "moved, cabinet=k3 since May")[0] == "k3"
    assert read_features(["x86_64"], "no word of it") == ("", "", (("x86_64", ""),))


def test_quantities_are_exact():
    assert [quantity(text) for text in ("8", 8, "1k", "1Ki", "2e3", "1E", "0.5", None)] == [
        8, 8, 1000, 1024, 2000, 10**18, Decimal("0.5"), None
    ]  # fmt: skip
    assert whole_quantity("8000m") == 8
    for bad in ("500m", "-1", "0.5"):
        with pytest.raises(ValueError, match="not a whole number"):
            whole_quantity(bad)
    for bad in ("8 GPUs", "1mi", True, "", "9" * 40):
        with pytest.raises(ValueError, match="is not a quantity"):
            whole_quantity(bad)


def test_capacity_is_installed_and_allocatable_is_usable():
    assert gpus_of({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "5"}, {})[:2] == (8, 5)
    assert gpus_of({"nvidia.com/gpu": "8"}, {}, {})[:2] == (8, 8)
    assert gpus_of({}, {}, {})[:2] == (0, 0)


def test_time_slices_mig_and_dra_still_count_whole_gpus():
    sliced = {"nvidia.com/gpu.count": "4", "nvidia.com/gpu.replicas": "10"}
    assert gpus_of({"nvidia.com/gpu": "40"}, {"nvidia.com/gpu": "30"}, sliced)[:2] == (4, 3)
    mig = {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "56"}
    assert gpus_of(mig, mig, {"nvidia.com/gpu.count": "8"})[:2] == (8, 8)
    assert gpus_of({"cpu": "4"}, {}, {"nvidia.com/gpu.count": "4"})[:2] == (4, 4)


def test_a_gpu_node_whose_gpus_are_all_gone_is_failed_and_no_cpu_node():
    assert gpus_of({"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": "0"}, {"nvidia.com/gpu.count": "4"})[:2] == (4, 0)
    (node,) = parse("kubernetes", k8s(("g1", {**GB, "nvidia.com/gpu.count": "'4'"}, 0))).nodes
    assert (node.flavor, node.gpus, node.usable_gpus, node.condition) == ("gb200-nvl72", 4, 0, "failed")


def nodes(*records):
    return "\n".join(f"NodeName={name} CoresPerSocket=1 CPUTot=1 Gres={gres} State=IDLE" for name, gres in records)


def racks_of(nodes_text, topology):
    inventory = parse("slurm", {"nodes": nodes_text, "topology": topology})
    return {rack.name: rack for rack in inventory.racks}, inventory


def test_a_node_that_only_the_topology_names_is_noted_and_left_out():
    racks, inventory = racks_of(nodes(("n1", ""), ("n2", "")), "SwitchName=s1 Nodes=n[1-3]\n")
    assert racks["s1"].nodes == ("n1", "n2") and "in the topology only, not in the node listing: n3" in inventory.notes


def test_nodes_without_topology_have_no_rack_and_form_none():
    racks, inventory = racks_of(nodes(("n1", "gpu:gb200:4"), ("n2", "gpu:gb200:4")), "SwitchName=s1 Nodes=n1\n")
    assert list(racks) == ["s1"] and {node.name: node.rack for node in inventory.nodes} == {"n1": "s1", "n2": None}
    assert racks["s1"].levels == (None,)


def test_a_switch_with_nodes_and_switches_keeps_its_nodes_as_slurm_does():
    text = "SwitchName=s1 Nodes=n1\nSwitchName=s9 Nodes=n2 Switches=s1\n"
    racks, inventory = racks_of(nodes(("n1", ""), ("n2", "")), text)
    assert racks["s1"].levels == (None,) and any("its switches are ignored" in note for note in inventory.notes)


def test_a_leaf_with_two_kinds_of_node_becomes_two_racks():
    listing = nodes(("n1", "gpu:h100:8"), ("n2", "gpu:h100:8"), ("n3", ""))
    racks, inventory = racks_of(listing, "SwitchName=s1 Nodes=n[1-3]\n")
    assert {name: (rack.flavor, rack.nodes) for name, rack in racks.items()} == {
        "s1": ("h100-hgx8", ("n1", "n2")),
        "s1.2": ("cpu", ("n3",)),
    }
    assert "s1 holds 2 kinds of node and became 2 racks" in inventory.notes


def test_a_missing_node_does_not_rename_the_flavor():
    listing = nodes(*((f"n{number}", "gpu:gb200:4") for number in range(1, 18)))
    _, inventory = racks_of(listing, "BlockName=b1 Nodes=n[1-18]\nBlockSizes=18\n")
    assert [(each.name, each.nodes_per_rack) for each in inventory.flavors] == [("gb200-nvl72", 17)]


def test_two_native_words_for_one_model_are_two_flavors():
    listing = nodes(("n1", "gpu:h100:8"), ("n2", "gpu:h100:8"), ("n3", "gpu:nvidia_h100_80gb_hbm3:8"))
    names = {each.name: each.gres_type for each in parse("slurm", {"n": listing}).flavors}
    assert names == {"h100-hgx8": "h100", "h100-hgx8-nvidia-h100-80gb-hbm3": "nvidia_h100_80gb_hbm3"}


def test_cards_are_not_called_hgx():
    listing = nodes(("n1", "gpu:nvidia_h100_pcie:4"), ("n2", "gpu:l40s:4"))
    assert [each.name for each in parse("slurm", {"n": listing}).flavors] == ["h100-4gpu", "l40s-4gpu"]


def test_a_powered_down_node_hidden_by_the_listing_comes_from_slurm_conf():
    listing = nodes(*((f"n{number}", "gpu:gb200:4") for number in range(1, 18)))
    conf = "ClusterName=c\nNodeName=n[1-18] State=CLOUD Gres=gpu:gb200:4\nNodeName=x1\n"
    inventory = parse("slurm", {"n": listing, "c": conf, "t": "BlockName=b Nodes=n[1-18]\nBlockSizes=18\n"})
    assert len(inventory.racks[0].nodes) == 18 and all(node.condition == "healthy" for node in inventory.nodes)
    assert "1 cloud nodes are only in slurm.conf and count as powered down" in inventory.notes
    assert "1 nodes are only in slurm.conf and left out, e.g. x1" in inventory.notes


def test_default_lines_add_up_and_all_is_every_node():
    conf = (
        "NodeName=DEFAULT CPUs=40 RealMemory=187000\nNodeName=DEFAULT RealMemory=754000\nNodeName=b[001-024]\n"
        "PartitionName=p Nodes=ALL\n"
    )
    inventory = parse("slurm", {"slurm.conf": conf})
    assert {(node.cpus, node.memory_mb, node.partitions) for node in inventory.nodes} == {(40, 754000, ("p",))}
    assert len(inventory.nodes) == 24


def test_names_sort_as_people_count_and_digits_have_no_end():
    names = ["n10", "n9", "n01", "n1", "m2", "n" + "9" * 5000, "n1-2", "n1-10"]
    ordered = ["m2", "n01", "n1", "n1-2", "n1-10", "n9", "n10", "n" + "9" * 5000]
    assert sorted(names, key=natural_pair) == ordered
    text = f"NodeName=n1 CPUTot=1 State=IDLE Partitions={'9' * 6000}\n"
    assert parse("slurm", {"n": text}).nodes[0].partitions == ("9" * 6000,)


def test_free_text_invents_no_keys():
    text = (
        "NodeName=n1 CPUTot=2 Gres=gpu:2 OS=Linux 5.14.0 #1 SMP Mon Mar 2 2026 RealMemory=9 State=IDLE+DRAIN "
        "Partitions=p Reason=check failed State=DOWN Gres=gpu:8 code=79: link lost [root@2026-03-02T10:11:12] "
        "Comment=rack=4 cabinet=k9\n"
    )
    (node,) = parse("slurm", {"n": text}).nodes
    assert (node.gpus, node.condition, node.drained, node.memory_mb) == (2, "healthy", True, 9)
    assert node.reason == "check failed State=DOWN Gres=gpu:8 code=79: link lost" and node.cabinet == "k9"


def k8s(*entries):
    parts = []
    for name, labels, gpus in entries:
        lines = "\n".join(f"    {key}: {value}" for key, value in labels.items())
        parts.append(
            f"kind: Node\nmetadata:\n  name: {name}\n  labels:\n    os: linux\n{lines}\n"
            f"status:\n  capacity: {{nvidia.com/gpu: {gpus}}}\n  conditions: [{{type: Ready, status: 'True'}}]\n"
        )
    return {"nodes.yaml": "---\n".join(parts)}


GB = {"nvidia.com/gpu.product": "NVIDIA-GB200"}


def test_unlabelled_nodes_never_form_an_nvlink_domain():
    entries = [(f"a{number}", {**GB, "nvidia.com/gpu.clique": "u.1"}, 4) for number in range(3)]
    entries += [(f"b{number}", {**GB, "network.topology.nvidia.com/leaf": "l1"}, 4) for number in range(5)]
    inventory = parse("kubernetes", k8s(*entries))
    assert [(rack.name, len(rack.nodes)) for rack in inventory.racks] == [("u.1", 3)]
    assert inventory.racks[0].levels == (None,)


def test_names_of_levels_that_come_twice_carry_their_parent():
    place = "cloud.google.com/gce-topology-"
    entries = [
        (f"n-{block}-{rack}", {place + "block": f"b{block}", place + "subblock": f"s{rack}"}, 8)
        for block in (1, 2) for rack in (1, 2)
    ]  # fmt: skip
    inventory = parse("kubernetes", k8s(*entries))
    assert [(rack.name, rack.levels) for rack in inventory.racks] == [
        ("b1/s1", ("b1",)), ("b1/s2", ("b1",)), ("b2/s1", ("b2",)), ("b2/s2", ("b2",))
    ]  # fmt: skip


def test_a_domain_under_two_leaves_has_no_known_place():
    leaf = "network.topology.nvidia.com/leaf"
    entries = [(f"n{number}", {**GB, "nvidia.com/gpu.clique": "u.1", leaf: f"l{number % 2}"}, 4) for number in range(4)]
    inventory = parse("kubernetes", k8s(*entries))
    assert inventory.racks[0].levels == (None,)
    assert "rack u.1 lies under l0 and l1: its place in the network is unknown" in inventory.notes


def test_a_list_may_hold_other_objects_beside_nodes():
    text = "kind: List\nitems:\n- kind: Pod\n- kind: Node\n  metadata: {name: a}\n"
    inventory = parse("kubernetes", {"all.yaml": text})
    assert [node.name for node in inventory.nodes] == ["a"] and "an object of kind Pod was left out" in inventory.notes


def test_a_file_that_is_only_comments_changes_nothing():
    listing = nodes(("n1", ""))
    assert parse("slurm", {"n": listing, "empty.conf": "# nothing\n"}) == parse("slurm", {"n": listing})


def test_a_sinfo_table_with_gpus_is_read_and_one_without_is_refused():
    table = "NODELIST|STATE|GRES|PARTITION\ng[01-03]|idle~|gpu:h100:8(S:0-1)|batch*\ng04|drain*|gpu:h100:8|batch*\n"
    nodes_ = {node.name: node for node in parse("slurm", {"s": table}).nodes}
    assert list(nodes_) == ["g01", "g02", "g03", "g04"]
    assert (nodes_["g02"].condition, nodes_["g02"].gpus, nodes_["g02"].partitions) == ("healthy", 8, ("batch",))
    assert (nodes_["g04"].condition, nodes_["g04"].drained) == ("unknown", True)
    with pytest.raises(InventoryError, match="s:1: the table does not tell the GPUs"):
        parse("slurm", {"s": "NODELIST   NODES PARTITION STATE\ngpu01          1    batch* idle~\n"})


def test_sinfo_by_json_groups_become_nodes():
    text = (
        '{"sinfo": [{"node": {"state": ["IDLE"]}, "nodes": {"nodes": ["a1", "a2"]}, "partition": {"name": "p"},'
        ' "gres": {"total": "gpu:h100:8"}}, {"node": {"state": ["DOWN"]}, "nodes": {"nodes": ["a2"]},'
        ' "partition": {"name": "q"}, "gres": {"total": "gpu:h100:8"}}]}'
    )
    seen = {node.name: (node.gpus, node.condition, node.partitions) for node in parse("slurm", {"s": text}).nodes}
    assert seen == {"a1": (8, "healthy", ("p",)), "a2": (8, "failed", ("p", "q"))}
    with pytest.raises(InventoryError, match=r"s:1: \$\.sinfo\[0\] is not a group of nodes"):
        parse("slurm", {"s": '{"sinfo": [{"nodes": 4}]}'})
