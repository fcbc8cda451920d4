"""What do slurm.conf and gres.conf say of nodes? (NodeName, NodeSet, PartitionName and Include lines)"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from scheduling.hostlist import HostlistError, expand
from scheduling.inventory.sightings import Place, SeenNode, checked_node_name
from scheduling.inventory.slurm_words import read_features, read_gres, read_state

MAX_INCLUDES = 200
_COMMENT = re.compile(r"(?<!\\)#.*")
_INCLUDE = re.compile(r"include\s+(?P<path>\S.*)\Z", re.IGNORECASE)
_PAIR = re.compile(r'\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*("[^"]*"|\S*)')
_LONG_NUMBER = re.compile(r"[0-9]{19}")
_OWN_LINES = ("nodename", "nodeset", "partitionname", "downnodes")
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ConfLine:
    """One logical line: keys in lower case, values without quotes, continuation lines joined."""

    place: Place
    pairs: tuple[tuple[str, str], ...]

    @property
    def kind(self) -> str:
        """The key that opens the line, in lower case."""
        return self.pairs[0][0]

    def get(self, *keys: str) -> str:
        """The value of the first of these keys that is given, "" for none."""
        found = dict(self.pairs)
        return next((found[key] for key in keys if key in found), "")


def conf_lines(file: str, text: str, only: tuple[str, ...] = ()) -> Iterator[ConfLine | tuple[Place, str]]:
    """Lines of a Slurm configuration file; an Include comes as (place, path).

    With `only`, lines that begin with another key are passed over and need not be well formed.
    """
    for number, line in _joined(text):
        place = Place(file, number)
        include = _INCLUDE.match(line)
        if include:
            yield place, include["path"].strip().strip("\"'")
            continue
        first = _PAIR.match(line)
        if only and first and first[1].lower() not in only:
            continue
        yield ConfLine(place, tuple(_pairs(line, place)))


def _joined(text: str) -> Iterator[tuple[int, str]]:
    start, held = 0, ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = _COMMENT.sub("", raw).rstrip()
        if not held:
            start = number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        whole, held = (held + line).strip(), ""
        if whole:
            yield start, whole
    if held.strip():
        yield start, held.strip()


def _pairs(line: str, place: Place) -> Iterator[tuple[str, str]]:
    at = 0
    seen: set[str] = set()
    while at < len(line):
        match = _PAIR.match(line, at)
        if not match:
            raise place.refuse(f"not key=value: {line[at:].strip()[:60]!r}")
        if match[1].lower() in seen:
            raise place.refuse(f"{match[1]}= is given twice in one line (is a line break missing?)")
        seen.add(match[1].lower())
        yield match[1].lower(), match[2].strip('"')
        at = match.end()


def hosts(text: str, place: Place) -> tuple[str, ...]:
    """The names of a host list; refuses bad ones with the place, and names a missing line break between entries."""
    if "=" in text:
        raise place.refuse(f"a second key inside one value: {text[:60]!r} (is a line break missing?)")
    if _LONG_NUMBER.search(text):
        raise place.refuse(f"not a host list: {text[:40]!r} has a number of more than 18 digits")
    try:
        return expand(text)
    except HostlistError as error:
        raise place.refuse(str(error)) from error


@dataclass(slots=True)
class _Config:
    """What has been read so far of one slurm.conf with its includes."""

    defaults: dict[str, dict[str, str]] = field(default_factory=dict)
    nodes: dict[str, SeenNode] = field(default_factory=dict)
    cloud: set[str] = field(default_factory=set)
    sets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: list[tuple[str, str, Place]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ConfiguredNodes:
    """Nodes of slurm.conf; `cloud` names those that exist while powered down, when listings may hide them."""

    nodes: tuple[SeenNode, ...]
    cloud: frozenset[str]


def read_slurm_conf(file: str, files: Mapping[str, str], gres_types: Mapping[str, str], note: Note) -> ConfiguredNodes:
    """The nodes of `file`; Include resolves by name inside `files` only, and a missing one is refused by name.

    DEFAULT lines add up; a NodeSet stands for its nodes; `ALL` is every configured node. `gres_types` are GPU types
    by node from gres.conf ("" for every node), for nodes whose Gres= names none.
    """
    config = _Config()
    for line in _with_includes(file, files, ()):
        if line.kind in ("nodename", "partitionname") and line.pairs[0][1].upper() == "DEFAULT":
            config.defaults.setdefault(line.kind, {}).update(line.pairs[1:])
        elif line.kind == "nodename":
            _add_nodes(config, line, gres_types, note)
        elif line.kind == "nodeset":
            config.sets[line.pairs[0][1]] = hosts(line.get("nodes"), line.place)
        elif line.kind == "partitionname":
            members = line.get("nodes") or config.defaults.get("partitionname", {}).get("nodes", "")
            config.partitions.append((line.pairs[0][1], members, line.place))
        elif line.kind == "downnodes":
            for name in hosts(line.pairs[0][1], line.place):
                if name in config.nodes:
                    condition, drained, _ = read_state([line.get("state") or "DOWN"])
                    config.nodes[name] = replace(config.nodes[name], condition=condition, drained=drained)
    homes = _partitions_by_node(config, note)
    nodes = tuple(replace(node, partitions=tuple(homes.get(node.name, ()))) for node in config.nodes.values())
    return ConfiguredNodes(nodes, frozenset(config.cloud))


def _with_includes(file: str, files: Mapping[str, str], open_files: tuple[str, ...]) -> Iterator[ConfLine]:
    for line in conf_lines(file, files[file], _OWN_LINES):
        if isinstance(line, ConfLine):
            yield line
            continue
        place, path = line
        wanted = path.replace("\\", "/").rpartition("/")[2]
        target = next((name for name in files if name in (path, wanted) or name.rpartition("/")[2] == wanted), None)
        if target is None:
            raise place.refuse(f"includes {path[:80]}, and {wanted[:60]} is not among the given files")
        if target in (*open_files, file) or len(open_files) >= MAX_INCLUDES:
            raise place.refuse(f"includes {path[:80]}, which is being read already")
        yield from _with_includes(target, files, (*open_files, file))


def _add_nodes(config: _Config, line: ConfLine, gres_types: Mapping[str, str], note: Note) -> None:
    names = hosts(line.pairs[0][1], line.place)
    given = {**config.defaults.get("nodename", {}), **dict(line.pairs[1:])}
    try:
        gpus, native = read_gres(given.get("gres", ""))
    except ValueError as error:
        raise line.place.refuse(str(error)) from error
    cabinet, model, labels = read_features((given.get("feature") or given.get("features") or "").split(","))
    state = given.get("state", "UNKNOWN").upper()
    # In a configuration UNKNOWN only means "ask the node"; FUTURE nodes do not exist yet.
    condition, drained, strange = read_state(["IDLE" if state in ("UNKNOWN", "CLOUD") else state])
    if strange:
        note(f"node state {state[:60]} is not known here; such nodes count as unknown")
    for name in names:
        if checked_node_name(name, line.place).upper() in ("ALL", "DEFAULT"):
            raise line.place.refuse(f"{name} is a reserved word of Slurm, not a node name")
        if name in config.nodes:
            first = config.nodes[name].place
            raise line.place.refuse(f"node {name} is named twice, first at {first}")
        if state == "CLOUD":
            config.cloud.add(name)
        typed = native or (gres_types.get(name, gres_types.get("", "")) if gpus else "")
        config.nodes[name] = SeenNode(
            name=name,
            place=line.place,
            gpus=gpus,
            native_model=typed,
            named_model=model,
            labels=labels,
            condition=condition,
            drained=drained,
            reason=given.get("reason", ""),
            cabinet=cabinet,
            cpus=_cpus(given),
            memory_mb=_whole(given.get("realmemory", "")),
        )


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _cpus(given: Mapping[str, str]) -> int | None:
    """CPUs (or Procs) as given, else boards x sockets x cores x threads where at least one of them is given."""
    direct = _whole(given.get("cpus", given.get("procs", "")))
    parts = [_whole(given.get(key, "")) for key in ("boards", "sockets", "corespersocket", "threadspercore")]
    if direct is not None or all(part is None for part in parts):
        return direct
    total = 1
    for part in parts:
        total *= part or 1
    return total


def _partitions_by_node(config: _Config, note: Note) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for partition, text, place in config.partitions:
        for name in hosts(text, place):
            if name.upper() == "ALL":
                chosen: tuple[str, ...] = tuple(config.nodes)
            else:
                chosen = config.sets.get(name, (name,))
            strangers = [one for one in chosen if one not in config.nodes]
            if strangers:
                note(f"partition {partition} names {strangers[0]}, which is not a configured node")
            for one in chosen:
                if one in config.nodes and partition not in members.setdefault(one, []):
                    members[one].append(partition)
    return members


def read_gres_conf(file: str, text: str) -> dict[str, str]:
    """GPU type by node name ("" for lines that hold everywhere) of a gres.conf; untyped lines say nothing."""
    types: dict[str, str] = {}
    for line in conf_lines(file, text, ("nodename", "name", "autodetect")):
        if not isinstance(line, ConfLine):
            raise line[0].refuse("gres.conf has no Include here: give the file whole")
        if line.get("name").lower() != "gpu" or not line.get("type"):
            continue
        for name in hosts(line.get("nodename"), line.place) or ("",):
            types.setdefault(name, line.get("type"))
    return types
