"""What does an upload of Slurm's files say the cluster is? (which file is what, and which word counts)

Each file is known by its content, not its name. A live listing (`scontrol show node`, slurmrestd, sinfo) counts before
slurm.conf, `scontrol show topology` before topology.yaml before topology.conf.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.inventory.assembly import assemble
from scheduling.inventory.documents import load_json, load_yaml
from scheduling.inventory.fleet import FleetInventory, InventoryError
from scheduling.inventory.sightings import SeenNode, SeenTopology, checked_text
from scheduling.inventory.sinfo import looks_like_sinfo, read_sinfo
from scheduling.inventory.slurm_conf import ConfiguredNodes, read_gres_conf, read_slurm_conf
from scheduling.inventory.slurm_nodes import looks_like_scontrol, read_json, read_scontrol
from scheduling.inventory.slurm_topology import looks_like_topology, read_topology_text, read_topology_yaml

_CONF_LINE = re.compile(
    r"^[ \t]*(?:(?:ClusterName|SlurmctldHost|ControlMachine|NodeName|NodeSet|PartitionName)[ \t]*=|include[ \t])",
    re.M | re.I,
)
_GRES_LINE = re.compile(
    r"^[ \t]*(?:NodeName[ \t]*=[ \t]*\S+[ \t]+)?(?:AutoDetect=\S+[ \t]+)?Name[ \t]*=[ \t]*\w+\s", re.M | re.I
)
_INCLUDE = re.compile(r"^[ \t]*include[ \t]+(\S+)", re.M | re.I)
_KUBERNETES = re.compile(r"^[ \t]*\"?apiVersion\"?[ \t]*:", re.M)
_YAML_TOPOLOGY = re.compile(r"^[ \t]*(?:-[ \t]*)?topology[ \t]*:|^---[ \t]*$", re.M)
_LIVE, _YAML, _CONF = "scontrol show topology", "topology.yaml", "topology.conf"


@dataclass(slots=True)
class _Upload:
    """What the files turned out to be."""

    listed: list[SeenNode] = field(default_factory=list)
    listings: int = 0
    topologies: dict[str, SeenTopology] = field(default_factory=dict)
    confs: list[str] = field(default_factory=list)
    gres_types: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def parse_slurm(files: Mapping[str, str]) -> FleetInventory:
    """The fleet that these files (name -> text) describe together; raises InventoryError and then nothing counts."""
    if not files:
        raise InventoryError("(no file)", 1, "no file is given")
    texts = {name: checked_text(name, text) for name, text in files.items()}
    upload = _Upload()
    for name, text in texts.items():
        _sort_in(upload, name, text)
    configured = _configured(upload, texts)
    nodes = _nodes(upload, configured)
    if not nodes:
        first = next(iter(texts))
        raise InventoryError(
            first, 1, "no nodes: give `scontrol show node`, its --json, or a slurm.conf with NodeName lines"
        )
    return assemble("slurm", nodes, _topology(upload), upload.notes)


def _sort_in(upload: _Upload, file: str, text: str) -> None:
    note = upload.notes.append
    if text.lstrip()[:1] in ("{", "["):
        _take_json(upload, file, text)
    elif _KUBERNETES.search(text):
        raise InventoryError(
            file, _line(_KUBERNETES, text), "a Kubernetes file in a Slurm inventory: import it with --kind kubernetes"
        )
    elif looks_like_scontrol(text):
        _take_listing(upload, list(read_scontrol(file, text, note)))
    elif looks_like_topology(text):
        _take_topology(upload, file, _LIVE if _is_live(text) else _CONF, read_topology_text(file, text, note))
    elif _GRES_LINE.search(text):
        upload.gres_types.update(read_gres_conf(file, text))
    elif _CONF_LINE.search(text):
        upload.confs.append(file)
    elif looks_like_sinfo(text):
        _take_listing(upload, list(read_sinfo(file, text, note)))
    elif _YAML_TOPOLOGY.search(text) or file.lower().endswith((".yaml", ".yml")):
        _take_topology(upload, file, _YAML, read_topology_yaml(file, load_yaml(file, text), note))
    elif not _is_only_comments(text):
        start = text.strip().split("\n")[0][:60]
        raise InventoryError(file, 1, f"not a file of Slurm that is read here; it begins {start!r}")


def _take_json(upload: _Upload, file: str, text: str) -> None:
    answer = load_json(file, text)
    if isinstance(answer, list) or (isinstance(answer, dict) and "topology" in answer):
        read = read_topology_yaml(file, load_yaml(file, text), upload.notes.append)
        _take_topology(upload, file, _YAML, read)
    elif not isinstance(answer, dict):
        raise InventoryError(file, 1, "the JSON is no object")
    elif "apiVersion" in answer or "kind" in answer:
        raise InventoryError(file, 1, "a Kubernetes file in a Slurm inventory: import it with --kind kubernetes")
    else:
        _take_listing(upload, list(read_json(file, text, answer, upload.notes.append)))


def _take_listing(upload: _Upload, nodes: list[SeenNode]) -> None:
    upload.listed += nodes
    upload.listings += 1


def _take_topology(upload: _Upload, file: str, source: str, topology: SeenTopology) -> None:
    if source in upload.topologies:
        raise InventoryError(file, 1, f"a second {source} in one upload")
    upload.topologies[source] = topology


def _topology(upload: _Upload) -> SeenTopology:
    given = [source for source in (_LIVE, _YAML, _CONF) if source in upload.topologies]
    if len(given) > 1:
        upload.notes.append(f"{given[0]} counts, {' and '.join(given[1:])} left out")
    if not given:
        upload.notes.append("no topology is given: no racks are known")
    return upload.topologies[given[0]] if given else SeenTopology()


def _configured(upload: _Upload, texts: Mapping[str, str]) -> ConfiguredNodes:
    """The nodes of the one slurm.conf that no other includes; the rest are its parts."""
    paths = [path for text in texts.values() for path in _INCLUDE.findall(text)]
    included = {path.strip("\"'").rpartition("/")[2] for path in paths}
    roots = [file for file in upload.confs if file.rpartition("/")[2] not in included]
    if len(roots) > 1:
        raise InventoryError(
            roots[1], 1, f"a second slurm.conf in one upload, beside {roots[0]}; neither includes the other"
        )
    if not roots:
        # Every file is included by another: reading one of them finds the loop and names it.
        roots = upload.confs[:1]
    if not roots:
        return ConfiguredNodes((), frozenset())
    return read_slurm_conf(roots[0], texts, upload.gres_types, upload.notes.append)


def _nodes(upload: _Upload, configured: ConfiguredNodes) -> list[SeenNode]:
    if not upload.listings:
        return list(configured.nodes)
    known = {node.name for node in upload.listed}
    hidden = [node for node in configured.nodes if node.name in configured.cloud and node.name not in known]
    if hidden:
        upload.notes.append(f"{len(hidden)} cloud nodes are only in slurm.conf and count as powered down")
    others = [node.name for node in configured.nodes if node.name not in known and node.name not in configured.cloud]
    if others:
        upload.notes.append(f"{len(others)} nodes are only in slurm.conf and left out, e.g. {others[0]}")
    return [*upload.listed, *hidden]


def _is_live(text: str) -> bool:
    return (
        re.search(r"^[ \t]*(?:SwitchName=\S+ Level=|BlockName=\S+ BlockIndex=|AggregatedBlock=)", text, re.M)
        is not None
    )


def _is_only_comments(text: str) -> bool:
    return all(line.strip().startswith("#") for line in text.split("\n") if line.strip())


def _line(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return text.count("\n", 0, match.end()) + 1 if match else 1
