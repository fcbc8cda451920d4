"""Does reading undo writing, for any cluster, and is every other text refused in order?"""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.hostlist import fold
from scheduling.inventory import FleetInventory, InventoryError, parse

MODELS = {"gb200": 4, "h100": 8, "l40s": 2}
STATES = ["IDLE", "ALLOCATED", "MIXED+DRAIN", "DOWN", "IDLE+CLOUD+POWERED_DOWN", "IDLE+PLANNED"]
WORDS = st.text("abc xyz=[]:,+#%", max_size=20).map(str.strip)


@st.composite
def clusters(draw):
    """Racks of one kind each: [(rack, model or "", [(node, state, reason)])] under one or two blocks."""
    racks, first = [], 1
    for number in range(draw(st.integers(1, 5))):
        model = draw(st.sampled_from([*MODELS, ""]))
        size = draw(st.integers(1, 8))
        states = draw(st.lists(st.tuples(st.sampled_from(STATES), WORDS), min_size=size, max_size=size))
        nodes = [(f"x{first + at:03}", state, reason) for at, (state, reason) in enumerate(states)]
        racks.append((f"r{number}", model, nodes))
        first += size
    return racks


def gres(model):
    return f"gpu:{model}:{MODELS[model]}" if model else ""


def as_text(racks, one_line):
    glue = " " if one_line else "\n   "
    lines = []
    for _, model, nodes in racks:
        for name, state, reason in nodes:
            parts = [f"NodeName={name} CoresPerSocket=1", "CPUTot=2", f"Gres={gres(model) or '(null)'}"]
            parts += [f"State={state}", "Partitions=p"]
            if reason:
                parts.append(f"Reason={reason} [root@2026-01-01T00:00:00]")
            lines.append(glue.join(parts))
    return "\n\n".join(lines) + "\n"


def as_json(racks):
    return json.dumps({"nodes": [
        {"name": name, "state": state.split("+"), "gres": gres(model), "cpus": 2, "partitions": ["p"], "reason": reason}
        for _, model, nodes in racks for name, state, reason in nodes
    ]})  # fmt: skip


def as_tree(racks):
    lines = [f"SwitchName={name} Nodes={fold(node for node, *_ in nodes)}" for name, _, nodes in racks]
    return "\n".join([*lines, f"SwitchName=top Switches={fold(name for name, *_ in racks)}"]) + "\n"


def as_yaml(racks):
    entries = [{"switch": name, "nodes": fold(node for node, *_ in nodes)} for name, _, nodes in racks]
    entries.append({"switch": "top", "children": fold(name for name, *_ in racks)})
    return json.dumps([{"topology": "t", "tree": {"switches": entries}}])


@settings(max_examples=25, deadline=None)
@given(clusters(), st.booleans())
def test_a_written_cluster_is_read_back(racks, one_line):
    inventory = parse("slurm", {"n": as_text(racks, one_line), "t": as_tree(racks)})
    assert {rack.name: rack.nodes for rack in inventory.racks} == {
        name: tuple(node for node, *_ in nodes) for name, _, nodes in racks
    }
    seen = {node.name: node for node in inventory.nodes}
    for rack, model, nodes in racks:
        for at, (name, state, _) in enumerate(nodes):
            node = seen[name]
            assert (node.rack, node.position, node.gpus) == (rack, at, MODELS.get(model, 0))
            assert node.gpu_model == model.upper()
            assert node.condition == ("failed" if state == "DOWN" else "healthy")
            assert node.drained == ("DRAIN" in state)
    assert {block.name for block in inventory.blocks} == {"top"}


@settings(max_examples=25, deadline=None)
@given(clusters())
def test_text_and_json_say_the_same(racks):
    text = parse("slurm", {"n": as_text(racks, False), "t": as_tree(racks)})
    assert parse("slurm", {"n": as_json(racks), "t": as_yaml(racks)}) == text


PIECES = ["NodeName=", "a", " ", "\n", "State=", "[", "]", "1-3", "{", "}", '"', ":", "- ", "kind: Node", "CPUTot="]
PIECES += ["SwitchName=", "Nodes=", "nodes", "&", "*", "\\", "include ", "\x0b", "\r", "STATE NODELIST", "BlockName="]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["slurm", "kubernetes"]),
    st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)),
)
def test_any_text_is_read_or_refused_with_its_line(kind, text):
    try:
        assert isinstance(parse(kind, {"f": text}), FleetInventory)
    except InventoryError as error:
        assert error.file == "f" and 1 <= error.line <= text.count("\n") + text.count("\r") + 2
