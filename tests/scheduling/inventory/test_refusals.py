"""Is a broken upload refused whole, with file, line and reason?"""

import json

import pytest

from scheduling.inventory import InventoryError, parse

NODE = "NodeName=n{0} Arch=x CoresPerSocket=2\n   CPUTot=4\n   Gres=gpu:h100:8\n   State=IDLE\n   Partitions=p\n"
NODES = NODE.format(1) + "\n" + NODE.format(2)
POD_NODE = """apiVersion: v1
kind: Node
metadata:
  name: k1
  labels: {{}}
status:
  capacity:
    nvidia.com/gpu: "{gpus}"
"""


def refusal(kind, **files):
    with pytest.raises(InventoryError) as caught:
        parse(kind, {name.replace("__", "."): text for name, text in files.items()})
    error = caught.value
    assert str(error) == f"{error.file}:{error.line}: {error.reason}" and error.line >= 1
    return error


SLURM = {
    "a node named twice": (NODES + "\n" + NODE.format(1), 13, "node n1 is named twice, first at nodes.txt:1"),
    "a bad GRES": (NODES.replace("gpu:h100:8", "gpu:h100:many", 1), 3, "cannot read the GPUs"),
    "a GRES without end": (NODES.replace("gpu:h100:8", "gpu," * 2000, 1), 3, "at most 4096 are read"),
    "a record cut short": (NODES[:-60], 7, "has no State="),
    "text between the records": (NODE.format(1) + "\nslurm_load_node error\n", 7, "not part of a node"),
    "an empty file": ("  \n\n", 1, "the file is empty"),
    "a binary file": ("NodeName=a\n\x00\x01", 2, "the file is not text"),
    "truncated JSON": ('{"nodes": [\n {"name": "n1",\n', 3, "not JSON"),
    "JSON with a doubled key": ('{"nodes": [\n {"name": "a",\n "state": ["IDLE"],\n "name": "b"}]}', 4, "given twice"),
    "JSON without a state": (
        '{"nodes": [\n{"name": "n1", "state": ["IDLE"]},\n{"name": "n2"}]}',
        3,
        "$.nodes[1] has no state",
    ),
    "JSON with text for a number": (
        '{"nodes": [\n{"name": "n1", "state": ["IDLE"], "cpus": "x"}]}',
        2,
        "$.nodes[0].cpus",
    ),
    "absurdly deep JSON": ("[" * 100_000, 1, "JSON"),
    "a host for a name": (NODES.replace("NodeName=n2", "NodeName=n2;reboot"), 7, "is not a node name"),
    "a table of counts": ("PARTITION AVAIL NODES STATE\np up 4 idle\n", 1, "not a file of Slurm"),
    "an error answer": ('{"errors": [{"description": "Authentication failure"}]}', 1, "Authentication failure"),
    "something else": ("Dear operator,\nhere are the nodes\n", 1, "not a file of Slurm"),
    "a Kubernetes file": (POD_NODE.format(gpus=8), 1, "import it with --kind kubernetes"),
    "a Kubernetes JSON": ('{"kind": "NodeList", "items": []}', 1, "import it with --kind kubernetes"),
    "no nodes": ("ClusterName=sol\nSlurmctldHost=a\n", 1, "no nodes"),
}


@pytest.mark.parametrize("case", SLURM)
def test_a_broken_slurm_listing_is_refused(case):
    text, line, reason = SLURM[case]
    error = refusal("slurm", nodes__txt=text)
    assert (error.file, error.line) == ("nodes.txt", line) and reason in error.reason


TOPOLOGY = {
    "a node in two racks": ("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n", 2, "node n2 is in two racks"),
    "a loop": ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", 1, "loop"),
    "an unknown child": (
        "SwitchName=a Nodes=n1\nSwitchName=s Switches=a,b\n",
        2,
        "names b, and there is no such switch",
    ),
    "two parents": (
        "SwitchName=a Nodes=n1\nSwitchName=s Switches=a\nSwitchName=t Switches=a\n",
        3,
        "under two switches",
    ),
    "a switch named twice": ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", 2, "switch a is named twice"),
    "an empty switch": ("SwitchName=a\n", 1, "neither nodes nor switches"),
    "a bad host list": ("SwitchName=a Nodes=n[1-\n", 1, "not a host list"),
    "a huge host list": ("SwitchName=a Nodes=n[1-9999999]\n", 1, "at most 200000"),
    "a glued line": ("SwitchName=a \\\n Nodes=n1SwitchName=b Nodes=n2\n", 1, "is a line break missing?"),
    "a glued entry": ("SwitchName=a Nodes=n1,n2SwitchName=b\n", 1, "second key inside one value"),
    "a strange line": ("SwitchName=a Nodes=n1\nColour=blue\n", 2, "not a line of a topology"),
    "garbage in a line": ("SwitchName=a Nodes=n1 what\n", 1, "not key=value: 'what'"),
    "switches and blocks": ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", 2, "Slurm takes one of them"),
    "a block size of -1": ("BlockName=a Nodes=n1\nBlockSizes=-1\n", 2, "'-1' is not a whole number above 0"),
    "a block size of 0": ("BlockName=a Nodes=n1\nBlockSizes=0\n", 2, "not a whole number above 0"),
    "no blocks": ("BlockSizes=4\n", 1, "no blocks"),
    "a block with a strange name": ("BlockName=a[1 Nodes=n1\n", 1, "is not the name of a block"),
    "a number without end": ("SwitchName=a Nodes=n" + "9" * 5000, 1, "more than 18 digits"),
    "sizes 4,12": ("BlockName=a Nodes=n[1-2]\nBlockSizes=4,12\n", 2, "12 is not a power of two times the first, 4"),
    "a YAML alias": ("- topology: a\n  flat: &x true\n", 2, "anchors and aliases"),
    "a YAML tag": ("- topology: !!python/name:os.system a\n", 1, "tag"),
    "a doubled YAML key": ("- topology: a\n  tree: {}\n  tree: {}\n", 3, "'tree' is given twice, first in line 2"),
    "broken YAML": ("- topology: a\n  tree: [\n", 3, "not YAML"),
    "two plugins": ("- topology: a\n  flat: true\n  tree:\n    switches: []\n", 3, "exactly one of"),
    "a YAML switch without nodes": ("- topology: a\n  tree:\n    switches:\n    - switch: s\n", 4, "neither nodes nor"),
    "a YAML block of numbers": ("- topology: a\n  block:\n    blocks:\n    - 4\n", 3, "is a mapping"),
}


@pytest.mark.parametrize("case", TOPOLOGY)
def test_a_broken_topology_is_refused_though_the_nodes_are_fine(case):
    text, line, reason = TOPOLOGY[case]
    error = refusal("slurm", nodes__txt=NODES, topology=text)
    assert (error.file, error.line) == ("topology", line) and reason in error.reason


CONF = {
    "a missing include": ("NodeName=a\nInclude /etc/slurm/more.conf\n", 2, "more.conf is not among the given files"),
    "an include of itself": ('NodeName=a\ninclude "slurm.conf"\n', 2, "being read already"),
    "a node called ALL": ("NodeName=ALL CPUs=4\n", 1, "reserved word"),
    "a node configured twice": ("NodeName=n[1-3]\nNodeName=n2\n", 2, "node n2 is named twice, first at slurm.conf:1"),
    "a bad GRES": ("NodeName=n1 Gres=gpu:x:y:z\n", 1, "cannot read the GPUs"),
    "a bad node list": ("NodeName=n[2-1]\n", 1, "not a host list"),
}


@pytest.mark.parametrize("case", CONF)
def test_a_broken_configuration_is_refused(case):
    text, line, reason = CONF[case]
    error = refusal("slurm", slurm__conf=text)
    assert (error.file, error.line) == ("slurm.conf", line) and reason in error.reason


def node_list(*items):
    return json.dumps({"kind": "NodeList", "items": list(items)}, indent=1)


KUBERNETES = {
    "a fraction of a GPU": (POD_NODE.format(gpus="500m"), 1, "not a whole number of things"),
    "a GPU count in words": (POD_NODE.format(gpus="eight"), 1, "is not a quantity"),
    "a negative GPU count": (POD_NODE.format(gpus="-8"), 1, "not a whole number"),
    "two nodes of one name": (
        POD_NODE.format(gpus=1) + "---\n" + POD_NODE.format(gpus=1),
        10,
        "named twice, first at nodes:1",
    ),
    "a template": (POD_NODE.format(gpus=1).replace("name: k1", "name: {{ .Name }}"), 4, "template placeholder"),
    "a quoted template": (
        POD_NODE.format(gpus=1).replace("name: k1", 'name: "{{ .Name }}"'),
        4,
        "template placeholder",
    ),
    "a label of a template": (
        POD_NODE.format(gpus=1).replace("labels: {}", 'labels: {a: "{{x}}"}'),
        5,
        "template placeholder",
    ),
    "a label that is a number": (
        POD_NODE.format(gpus=1).replace("labels: {}", "labels: {a: 7}"),
        5,
        "put it in quotes",
    ),
    "a node without a name": (POD_NODE.format(gpus=1).replace("name: k1", "nom: k1"), 4, "without metadata.name"),
    "a name in capitals": (POD_NODE.format(gpus=1).replace("k1", "NODE_NAME"), 4, "is not a node name"),
    "a Pod": ("kind: Pod\nmetadata:\n  name: a\n", 1, "kind is 'Pod'"),
    "no object": ("nodes:\n- a\n", 1, "`kind` is missing"),
    "an alias": ("kind: NodeList\nitems:\n- &a {kind: Node}\n- *a\n", 3, "anchors and aliases"),
    "a list that is none": ("kind: NodeList\nitems: 4\n", 2, "without a list of items"),
    "an empty list": (node_list(), 1, "no Node in this file"),
    "a list cut short": (node_list({"kind": "Node", "metadata": {"name": "a"}})[:40], 5, "not JSON"),
    "an item that is none": ('{"kind": "NodeList", "items": [\n{"metadata": {"name": "a"}},\n4]}', 3, "items[1]"),
    "a Slurm listing": (NODES, 1, "import it with --kind slurm"),
    "JSON of Slurm": ('{"nodes": [{"name": "a"}]}', 1, "import it with --kind slurm"),
    "a scalar": ("hello\n", 1, "not a Kubernetes object"),
    "a hidden line end": ("kind: Node\nmetadata: \u2028{}\n", 2, "is no line end here"),
    "deep YAML": ("kind: Node\nmetadata: " + "[" * 70 + "]" * 70, 2, "nested deeper"),
}


@pytest.mark.parametrize("case", KUBERNETES)
def test_a_broken_kubernetes_file_is_refused(case):
    text, line, reason = KUBERNETES[case]
    error = refusal("kubernetes", nodes=text)
    assert (error.file, error.line) == ("nodes", line) and reason in error.reason


def test_one_bad_file_among_good_ones_refuses_the_whole_upload(own):
    files = own("luna", "nodes.json")
    with pytest.raises(InventoryError) as caught:
        parse("kubernetes", {**files, "more.yaml": "kind: Pod\n"})
    assert str(caught.value).startswith("more.yaml:1: ")


def test_a_doubled_node_in_json_is_named_with_both_lines(own):
    text = own("luna", "nodes.json")["nodes.json"].replace('"name": "luna-gb-003"', '"name": "luna-gb-002"')
    second = text[: text.index('"name": "luna-gb-002"', text.index('"name": "luna-gb-002"') + 1)].count("\n") + 1
    with pytest.raises(InventoryError, match=r"node luna-gb-002 is named twice, first at nodes\.json:\d+") as caught:
        parse("kubernetes", {"nodes.json": text})
    assert second - 5 < caught.value.line <= second


@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_no_file_at_all_is_refused(kind):
    with pytest.raises(InventoryError, match="no file is given"):
        parse(kind, {})


def test_a_second_topology_or_configuration_is_refused():
    tree = "SwitchName=a Nodes=n1\n"
    assert "a second topology.conf" in refusal("slurm", n=NODES, a=tree, b=tree).reason
    assert "a second slurm.conf" in refusal("slurm", a="NodeName=a\n", b="NodeName=b\n").reason
