"""How is a question to the planner read from JSON, and its answer written? (the documents of `place` and `earliest`)

Reading refuses what it does not know: every error names the JSON path and says in one sentence what is wrong there.
Holds, outages and jobs widen outward to whole minutes; the request itself must lie on whole minutes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from scheduling.answers import Alternative, Placement, Reason, Refusal
from scheduling.hostlist import HostlistError, expand, fold
from scheduling.periods import MomentError, minute_after, minute_before, moment_text, parse_moment
from scheduling.snapshot import Busy, FleetSnapshot
from scheduling.spec import ReservationSpec, SpecError
from scheduling.topology import FlavorShape, RackShape, Topology, TopologyError

Json = Any
RACK_KEYS = ("name", "flavor", "nodes", "nvlink", "from_at", "until_at")  # no level can have such a name
MOST = 1_000_000_000  # no count or length is larger; keeps every sum inside 64 bits


class InputError(ValueError):
    """Input that is not what the contract says. `path` is the JSON path, `sentence` what is wrong there."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path}: {sentence}")
        self.path, self.sentence = path, sentence


@dataclass(frozen=True, slots=True)
class Question:
    """One document: the cluster to look at, what is asked, and the clusters to offer instead."""

    snapshot: FleetSnapshot
    spec: ReservationSpec
    others: tuple[FleetSnapshot, ...]


class Keys:
    """An object being read: each key once, the rest is refused by `end()`."""

    def __init__(self, value: Json, path: str) -> None:
        if not isinstance(value, dict):
            raise InputError(path or "$", "must be an object")
        self.value, self.path, self.read = value, path, set[str]()

    def at(self, key: str) -> str:
        """The JSON path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def take(self, key: str, default: Json = None) -> Json:
        """The raw value; the default when left out or null."""
        self.read.add(key)
        value = self.value.get(key)
        return default if value is None else value

    def need(self, key: str) -> Json:
        """The raw value of a required key."""
        value = self.take(key)
        if value is None:
            raise InputError(self.at(key), "is required")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required when there is no default."""
        value = self.need(key) if default is None else self.take(key, default)
        if not isinstance(value, str):
            raise InputError(self.at(key), "must be a string")
        return value

    def number(self, key: str, least: int = 0) -> int | None:
        """An integer of at least `least`, None when left out."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(self.at(key), "must be an integer")
        if value < least:
            raise InputError(self.at(key), "must not be negative" if value < 0 else f"must be at least {least}")
        if value > MOST:
            raise InputError(self.at(key), f"must be at most {MOST}")
        return value

    def needed_number(self, key: str, least: int = 0) -> int:
        """An integer that must be there."""
        self.need(key)
        number = self.number(key, least)
        assert number is not None
        return number

    def flag(self, key: str) -> bool:
        """A boolean, false when left out."""
        value = self.take(key, False)
        if not isinstance(value, bool):
            raise InputError(self.at(key), "must be true or false")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """A host list or a list of them, () when left out."""
        value = self.take(key, "")
        parts = [value] if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise InputError(self.at(key), "must be a host list or a list of names")
        try:
            return tuple(dict.fromkeys(name for part in parts for name in expand(part)))
        except HostlistError as error:
            raise InputError(self.at(key), str(error)) from error

    def items(self, key: str, required: bool = False) -> Iterator["Keys"]:
        """The objects of a list, each with its path."""
        value = self.need(key) if required else self.take(key, [])
        if not isinstance(value, list):
            raise InputError(self.at(key), "must be a list")
        for number, item in enumerate(value):
            yield Keys(item, f"{self.at(key)}[{number}]")

    def moment(self, key: str) -> datetime | None:
        """An aware moment, None when left out."""
        value = self.take(key)
        if value is None:
            return None
        try:
            return parse_moment(value)
        except MomentError as error:
            raise InputError(self.at(key), str(error)) from error

    def whole_minute(self, key: str) -> int | None:
        """A moment that must lie on a whole minute, as that minute."""
        moment = self.moment(key)
        if moment is None:
            return None
        if moment.second or moment.microsecond:
            raise InputError(self.at(key), "must lie on a whole minute")
        return minute_before(moment)

    def period(self, start_key: str, end_key: str) -> tuple[int, int]:
        """A required period, widened outward to whole minutes."""
        self.need(start_key), self.need(end_key)
        start, end = self.moment(start_key), self.moment(end_key)
        assert start is not None and end is not None
        if end <= start:
            raise InputError(self.at(end_key), "must be after its start")
        return minute_before(start), minute_after(end)

    def end(self) -> None:
        """Refuse every key that nobody read."""
        for key in self.value:
            if key not in self.read:
                raise InputError(self.at(key), "is not a key of this object")


def read_question(document: Json) -> Question:
    """A whole document. Raises InputError."""
    keys = Keys(document, "")
    keys.need("now")
    now = keys.moment("now")
    assert now is not None
    snapshot = _snapshot(keys, minute_after(now))
    others = []
    for other in keys.items("others"):
        others.append(_snapshot(other, minute_after(now)))
        other.end()
    clusters = [snapshot.cluster, *(other.cluster for other in others)]
    for number, cluster in enumerate(clusters[1:]):
        if cluster in clusters[: number + 1]:
            raise InputError(f"others[{number}].fleet.cluster", f"{cluster} is given twice")
    spec = read_spec(Keys(keys.need("request"), keys.at("request")))
    if snapshot.topology.flavor(spec.flavor) is None:
        raise InputError("request.flavor", f"{snapshot.cluster} has no flavor {spec.flavor}")
    keys.end()
    return Question(snapshot, spec, tuple(others))


def read_spec(keys: Keys) -> ReservationSpec:
    """The request object. Raises InputError with the path of the key."""
    for key in ("flavor", "duration_minutes"):
        keys.need(key)
    values: dict[str, Any] = {
        "flavor": keys.text("flavor"),
        "duration_minutes": keys.needed_number("duration_minutes", 1),
        **{key: keys.number(key, 1) for key in ("racks", "nodes", "gpus", "nodes_per_rack", "max_blocks", "min")},
        "spare_nodes": keys.number("spare_nodes") or 0,
        "same_block": keys.flag("same_block"),
        "ignore_jobs": keys.flag("ignore_jobs"),
        **{key: keys.names(key) for key in ("avoid", "prefer", "avoid_racks", "prefer_racks")},
        "earliest_start_minute": keys.whole_minute("earliest_start_at"),
        "latest_end_minute": keys.whole_minute("latest_end_at"),
        "nvlink": keys.text("nvlink", "full"),
    }
    keys.end()
    try:
        return ReservationSpec(**values).checked()
    except SpecError as error:
        raise InputError(keys.at(error.path), error.sentence) from error


def _snapshot(keys: Keys, now: int) -> FleetSnapshot:
    """The fleet and what stands in the way on it: the keys fleet, holds, outages, jobs of an object."""
    fleet = Keys(keys.need("fleet"), keys.at("fleet"))
    cluster = fleet.text("cluster")
    topology = _topology(fleet)
    returns = dict(_returns(fleet, now))
    unhealthy = [name for name in (*fleet.names("unhealthy"), *fleet.names("drained")) if name not in returns]
    contract_ends = fleet.moment("contract_ends_at")
    fleet.end()
    repairs = [Busy("repair", node, (node,), now, minute) for node, minute in returns.items()]
    busy = [*_holds(keys, topology), *_outages(keys), *_jobs(keys, now), *repairs]
    ends = None if contract_ends is None else minute_before(contract_ends)
    return FleetSnapshot.build(cluster, now, topology, unhealthy, busy, ends)


def _returns(fleet: Keys, now: int) -> Iterator[tuple[str, int]]:
    """Nodes that are out until a minute after now. One that should be back by now is as healthy as it is told to be."""
    for keys in fleet.items("returns"):
        keys.need("nodes"), keys.need("at")
        at, names = keys.moment("at"), keys.names("nodes")
        keys.end()
        assert at is not None
        if minute_after(at) > now:
            yield from ((name, minute_after(at)) for name in names)


def _topology(fleet: Keys) -> Topology:
    """Levels, flavors and racks of a fleet."""
    levels = fleet.take("levels", ["block"])
    if not isinstance(levels, list) or not all(isinstance(level, str) and level for level in levels):
        raise InputError(fleet.at("levels"), "must be a list of names")
    for number, level in enumerate(levels):
        if level in RACK_KEYS or level in levels[:number]:
            why = "is given twice" if level in levels[:number] else "is another key of a rack"
            raise InputError(f"{fleet.at('levels')}[{number}]", f"{level} {why}")
    flavors: list[FlavorShape] = []
    for keys in fleet.items("flavors", required=True):
        flavor = FlavorShape(
            keys.text("name"),
            keys.needed_number("gpus_per_node"),
            keys.needed_number("nodes_per_rack", 1),
            keys.number("turnaround_minutes") or 0,
        )
        keys.end()
        if any(flavor.name == other.name for other in flavors):
            raise InputError(keys.at("name"), f"flavor {flavor.name} is listed twice")
        flavors.append(flavor)
    racks = [_rack(keys, levels) for keys in fleet.items("racks", required=True)]
    try:
        return Topology.build(levels, flavors, racks)
    except TopologyError as error:
        raise InputError(f"{fleet.at('racks')}[{error.rack}].{error.key}", error.sentence) from error


def _rack(keys: Keys, levels: list[str]) -> RackShape:
    """One rack; it has one key per level, and a missing one means unknown."""
    start, end = keys.moment("from_at"), keys.moment("until_at")
    rack = RackShape(
        name=keys.text("name"),
        flavor=keys.text("flavor"),
        nodes=(keys.need("nodes"), keys.names("nodes"))[1],
        levels=tuple(keys.text(level, "") or None for level in levels),
        nvlink=keys.text("nvlink", "ok"),
        from_minute=None if start is None else minute_after(start),
        until_minute=None if end is None else minute_before(end),
    )
    keys.end()
    if rack.nvlink not in ("ok", "degraded", "broken"):
        raise InputError(keys.at("nvlink"), f"must be ok, degraded or broken, is {rack.nvlink!r}")
    if start is not None and end is not None and end <= start:
        raise InputError(keys.at("until_at"), "must be after its start")
    return rack


def _holds(keys: Keys, topology: Topology) -> Iterator[Busy]:
    for hold in keys.items("holds"):
        start, end = hold.period("start_at", "end_at")
        asked = hold.take("request")
        request = None if asked is None else read_spec(Keys(asked, hold.at("request")))
        if request is not None and topology.flavor(request.flavor) is None:
            raise InputError(f"{hold.at('request')}.flavor", f"there is no flavor {request.flavor}")
        yield Busy(
            "reservation",
            hold.text("reservation"),
            (hold.need("nodes"), hold.names("nodes"))[1],
            start,
            end,
            provisional=hold.flag("provisional"),
            request=request,
        )
        hold.end()


def _outages(keys: Keys) -> Iterator[Busy]:
    for outage in keys.items("outages"):
        start, end = outage.period("start_at", "end_at")
        yield Busy("outage", outage.text("name"), (outage.need("nodes"), outage.names("nodes"))[1], start, end)
        outage.end()


def _jobs(keys: Keys, now: int) -> Iterator[Busy]:
    for job in keys.items("jobs"):
        end = job.moment("end_at")
        yield Busy(
            "job",
            job.text("job"),
            (job.need("nodes"), job.names("nodes"))[1],
            now,
            None if end is None else minute_after(end),
            tier=job.text("tier", "") or None,
        )
        job.end()


def answer_json(answer: Placement | Refusal) -> dict[str, Json]:
    """{"placement": …} or {"refusal": …}, as the contract writes them."""
    if isinstance(answer, Placement):
        return {"placement": placement_json(answer)}
    return {
        "refusal": {
            "reasons": [_reason_json(reason) for reason in answer.reasons],
            "alternatives": [_alternative_json(alternative) for alternative in answer.alternatives],
        }
    }


def placement_json(placement: Placement) -> dict[str, Json]:
    """`nodes` are the working nodes here and `spares` the spare ones beside them."""
    return {
        "cluster": placement.cluster,
        "racks": list(placement.racks),
        "nodes": fold(placement.working_nodes),
        "spares": fold(placement.spares),
        "start_at": moment_text(placement.start_minute),
        "end_at": moment_text(placement.end_minute),
        "score": dict(placement.score),
        "jobs": list(placement.jobs),
        "lost_gpu_hours": 0,
    }


def request_json(spec: ReservationSpec) -> dict[str, Json]:
    """A spec as a request object: what was given, defaults left out."""
    written: dict[str, Json] = {}
    for field in fields(spec):
        value = getattr(spec, field.name)
        if value is None or (value == field.default and field.name not in ("flavor", "duration_minutes")):
            continue
        if field.name.endswith("_start_minute") or field.name.endswith("_end_minute"):
            written[field.name.removesuffix("minute") + "at"] = moment_text(value)
        else:
            written[field.name] = fold(value) if isinstance(value, tuple) else value
    return written


def _reason_json(reason: Reason) -> dict[str, Json]:
    return {
        "code": reason.code,
        "missing": reason.missing,
        "unit": reason.unit,
        "by": [{"kind": each.kind, "id": each.id, "until_at": _or_null(each.until_minute)} for each in reason.by],
        "until_at": _or_null(reason.until_minute),
        "sentence": reason.sentence,
    }


def _alternative_json(alternative: Alternative) -> Mapping[str, Json]:
    written: dict[str, Json] = {
        "kind": alternative.kind,
        "request": request_json(alternative.spec),
        "placement": placement_json(alternative.placement),
    }
    if alternative.moves:
        written["moves"] = [
            {"reservation": move.reservation, "placement": placement_json(move.placement)} for move in alternative.moves
        ]
    return written


def _or_null(minute: int | None) -> str | None:
    return None if minute is None else moment_text(minute)
