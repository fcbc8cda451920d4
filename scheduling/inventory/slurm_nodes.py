"""Which nodes does a Slurm listing show? (`scontrol show node` as text or JSON, slurmrestd, `sinfo --json`)"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scheduling.inventory.documents import json_item_place
from scheduling.inventory.sightings import Place, SeenNode, checked_node_name, words
from scheduling.inventory.slurm_words import read_features, read_gres, read_state

_TEXT_KEYS = words("OS Reason Comment Extra")
_AFTER_REASON = words("Reason Comment Extra InstanceId InstanceType ReservationName GpuSpec Topology")
_KEYS = (
    _TEXT_KEYS
    | _AFTER_REASON
    | words(
        "NodeName Arch CoresPerSocket CPUAlloc CPUEfctv CPUErr CPUTot CPULoad AvailableFeatures ActiveFeatures Features"
        " Gres GresDrain GresUsed NodeAddr NodeHostName Port Version RealMemory AllocMem FreeMem Sockets Boards"
        " CoreSpecCount CPUSpecList MemSpecLimit ResCoresPerGPU State ThreadsPerCore TmpDisk Weight Owner MCS_label"
        " NextState Partitions BootTime SlurmdStartTime LastBusyTime ResumeAfterTime CfgTRES AllocTRES CapWatts"
        " CurrentWatts AveWatts LowestJoules ConsumedJoules ExtSensorsJoules ExtSensorsWatts ExtSensorsTemp BcastAddr"
        " Cluster CertFlags TLSCertLastRenewal"
    )
)
_KEY = re.compile(r"(?:(?<=\s)|^)([A-Za-z_]+)=")
_WORSE = ("healthy", "suspect", "unknown", "failed")
_NOTHING = ("", "(null)", "N/A", "n/a", "None")
Note = Callable[[str], None]


def looks_like_scontrol(text: str) -> bool:
    """Is this the text of `scontrol show node`, in many lines or in one per node?"""
    return re.search(r"^NodeName=\S+\s", text, re.MULTILINE) is not None and re.search(r"\sCPUTot=", text) is not None


def read_scontrol(file: str, text: str, note: Note) -> Iterator[SeenNode]:
    """Nodes of `scontrol show node` (with or without -o, -d), 20.11 to 26.05. Refuses text between the records."""
    records: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("NodeName="):
            records.append((number, [line]))
        elif line.strip():
            if not records or not line[0].isspace():
                raise Place(file, number).refuse(f"not part of a node: {line.strip()[:60]!r}")
            records[-1][1].append(line)
    for number, lines in records:
        place = Place(file, number)
        values: dict[str, tuple[str, int]] = {}
        for offset, line in enumerate(lines):
            for key, value in _pairs(line):
                values.setdefault(key, (value, number + offset))
        yield _from_text(values, place, note)


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    """The key=value pairs of a line. Free text (Reason, Comment, Extra, OS) keeps its blanks and its own `a=b`."""
    seen: set[str] = set()
    key, start = "", 0
    for match in _KEY.finditer(line):
        name = match[1]
        inside_free_text = key in _TEXT_KEYS and key != "OS"
        if name in seen or name not in (_AFTER_REASON if inside_free_text else _KEYS):
            continue
        if key:
            yield key, _value(key, line[start : match.start()])
        seen.add(name)
        key, start = name, match.end()
    if key:
        yield key, _value(key, line[start:])


def _value(key: str, text: str) -> str:
    return text.strip() if key in _TEXT_KEYS else text.strip().partition(" ")[0]


def _from_text(values: Mapping[str, tuple[str, int]], place: Place, note: Note) -> SeenNode:
    def text(key: str) -> str:
        value = values.get(key, ("", 0))[0]
        return "" if value in _NOTHING else value

    def at(key: str) -> Place:
        return Place(place.file, values[key][1]) if key in values else place

    for key in ("State", "CPUTot"):
        if not text(key):
            raise place.refuse(
                f"node {text('NodeName')[:60]} has no {key}=: the listing is cut short or not scontrol's"
            )
    row = _Row(
        name=text("NodeName"),
        place=place,
        state=[text("State")],
        gres=text("Gres"),
        tres=text("CfgTRES"),
        features=text("AvailableFeatures").split(","),
        partitions=[name for name in text("Partitions").split(",") if name],
        free=(text("Extra"), text("Comment")),
        reason=text("Reason"),
        cpus=_whole(text("CPUTot"), at("CPUTot"), "CPUTot"),
        memory_mb=_whole(text("RealMemory"), at("RealMemory"), "RealMemory"),
    )
    return _seen(row, at("Gres"), note)


@dataclass(frozen=True, slots=True)
class _Row:
    """What every listing of Slurm says of a node, in Slurm's words."""

    name: Any
    place: Place
    state: Sequence[str]
    gres: str
    tres: str = ""
    features: Sequence[str] = ()
    partitions: Sequence[str] = ()
    free: tuple[str, ...] = ()
    reason: str = ""
    cpus: int | None = None
    memory_mb: int | None = None


def _seen(row: _Row, gres_place: Place, note: Note) -> SeenNode:
    name = checked_node_name(row.name, row.place)
    condition, drained, strange = read_state(row.state)
    if strange:
        note(f"node state {'+'.join(strange)[:60]} is not known here; such nodes count as unknown")
    try:
        gpus, native = read_gres(row.gres, row.tres)
    except ValueError as error:
        raise gres_place.refuse(f"node {name}: {error}") from error
    cabinet, model, labels = read_features(row.features, *row.free)
    return SeenNode(
        name=name,
        place=row.place,
        gpus=gpus,
        native_model=native,
        named_model=model,
        partitions=tuple(row.partitions),
        labels=labels,
        condition=condition,
        drained=drained,
        reason=_bare_reason(row.reason),
        cabinet=cabinet,
        cpus=row.cpus,
        memory_mb=row.memory_mb,
    )


def _bare_reason(reason: str) -> str:
    """The reason without the `[user@time]` that only the text form adds, so that text and JSON say the same."""
    return re.sub(r"\s*\[[^\[\]@]*@[^\[\]]*\]\Z", "", reason).strip()


def _whole(text: str, place: Place, key: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise place.refuse(f"{key} is {text[:40]!r}, not a whole number")
    return int(text)


def read_json(file: str, text: str, answer: Mapping[str, Any], note: Note) -> Iterator[SeenNode]:
    """Nodes of `scontrol show node --json`, slurmrestd /nodes or `sinfo --json`, any schema from 0.0.37 on."""
    if isinstance(answer.get("nodes"), list):
        yield from (
            _from_json(node, f"nodes[{index}]", json_item_place(file, text, "nodes", index), note)
            for index, node in enumerate(answer["nodes"])
        )
    elif isinstance(answer.get("sinfo"), list):
        yield from _from_sinfo(file, text, answer["sinfo"], note)
    elif answer.get("errors"):
        raise Place(file, 1).refuse(f"an error answer of slurmrestd, no nodes: {_first_error(answer['errors'])}")
    else:
        raise Place(file, 1).refuse(f"Slurm JSON without a list under $.nodes (keys: {', '.join(sorted(answer))[:80]})")


def _first_error(errors: Any) -> str:
    first = errors[0] if isinstance(errors, list) and errors else errors
    if isinstance(first, dict):
        first = first.get("description") or first.get("error")
    return str(first)[:80]


def _from_json(node: Any, path: str, place: Place, note: Note) -> SeenNode:
    if not isinstance(node, dict):
        raise place.refuse(f"$.{path} is not an object")

    def listed(key: str) -> list[str]:
        value = node.get(key) or []
        value = value.split(",") if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise place.refuse(f"$.{path}.{key} is not a list of words")
        return [word for word in value if word]

    def text(key: str) -> str:
        value = node.get(key)
        if value is not None and not isinstance(value, str):
            raise place.refuse(f"$.{path}.{key} is not text")
        return "" if value is None or value in _NOTHING else value

    if "state" not in node:
        raise place.refuse(f"$.{path} has no state: not a node of Slurm")
    row = _Row(
        name=node.get("name"),
        place=place,
        state=listed("state") + listed("state_flags"),
        gres=text("gres"),
        tres=text("tres"),
        features=listed("features"),
        partitions=listed("partitions"),
        free=(text("extra"), text("comment")),
        reason=text("reason"),
        cpus=_number(node.get("cpus"), f"{path}.cpus", place),
        memory_mb=_number(node.get("real_memory"), f"{path}.real_memory", place),
    )
    return _seen(row, place, note)


def _number(value: Any, path: str, place: Place) -> int | None:
    """A number of Slurm's JSON: plain, or {set, infinite, number}; None when unset or infinite."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise place.refuse(f"$.{path} is {str(value)[:40]}, not a whole number")
    return value


def _from_sinfo(file: str, text: str, rows: list[Any], note: Note) -> Iterator[SeenNode]:
    """`sinfo --json` groups equal nodes per partition: a node in four partitions comes four times and is one node."""
    found: dict[str, SeenNode] = {}
    for index, group in enumerate(rows):
        place = json_item_place(file, text, "sinfo", index)
        try:
            names, state = group["nodes"]["nodes"], group["node"]["state"]
            partition = group["partition"]["name"]
            gres = (group.get("gres") or {}).get("total") or ""
            features = (group.get("features") or {}).get("total") or ""
        except (KeyError, TypeError, AttributeError) as error:
            raise place.refuse(f"$.sinfo[{index}] is not a group of nodes ({error}): give scontrol's JSON") from error
        states = [state] if isinstance(state, str) else state
        for name in names:
            row = _Row(name, place, states, str(gres), features=str(features).split(","), partitions=[str(partition)])
            merge_rows(found, _seen(row, place, note))
    yield from found.values()


def merge_rows(found: dict[str, SeenNode], seen: SeenNode) -> None:
    """Put `seen` into `found`; a node that is there already gains the partition, and the worse of two states counts."""
    first = found.setdefault(seen.name, seen)
    if first is not seen:
        found[seen.name] = replace(
            first,
            partitions=tuple(dict.fromkeys([*first.partitions, *seen.partitions])),
            condition=max(first.condition, seen.condition, key=_WORSE.index),
            drained=first.drained or seen.drained,
        )
