"""How does an ask arrive and leave as JSON? (the one validator of browser, API, command line and import)

Moments are RFC 3339 with an offset, on whole minutes; `avoid` and `prefer` are host lists; rack lists name racks.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from allocations.errors import Fault, Invalid
from reservations.moments import EPOCH, MINUTE, moment_of, text_of
from scheduling.hostlist import HostlistError, expand, fold
from scheduling.spec import ReservationSpec, SpecError

MAX_DURATION_MINUTES = 400 * 24 * 60
# key -> largest value; the smallest is what ReservationSpec.checked() says
INTEGERS = {
    "duration_minutes": MAX_DURATION_MINUTES,
    "racks": 100_000,
    "nodes": 200_000,
    "gpus": 10_000_000,
    "nodes_per_rack": 200_000,
    "spare_nodes": 200_000,
    "max_blocks": 100_000,
}
BOOLEANS = ("same_block", "ignore_jobs")
HOST_LISTS = ("avoid", "prefer")
RACK_LISTS = ("avoid_racks", "prefer_racks")
MOMENTS = {"earliest_start_at": "earliest_start_minute", "latest_end_at": "latest_end_minute"}
WORDS = ("flavor", "nvlink")
KEYS = frozenset({*INTEGERS, *BOOLEANS, *HOST_LISTS, *RACK_LISTS, *MOMENTS, *WORDS})


def spec_from(
    mapping: Mapping[str, Any],
    *,
    zone: str | None = None,
    at: datetime | None = None,
    flavors: Collection[str] | None = None,
    pointer: str = "/spec",
) -> ReservationSpec:
    """The spec that `mapping` asks for. Raises Invalid with one Fault per wrong key, pointing at `pointer`/key.

    A value of None or "" counts as left out. With `zone` (an IANA name) a moment without an offset is read in that
    zone, as a form sends it; a time that the zone skips or has twice is refused. `at` refuses a window that is
    already over, `flavors` a flavor that is not among them.
    """
    if not isinstance(mapping, Mapping):
        raise _invalid(
            [Fault(pointer, "invalid", "The spec is an object with keys like flavor, racks, duration_minutes.")]
        )
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        try:
            if key not in KEYS:
                raise _Wrong("unknown_key", f"There is no key {str(key)[:40]!r} in a spec.")
            if value is not None and value != "":
                values[MOMENTS.get(key, key)] = _value(key, value, zone)
        except _Wrong as wrong:
            faults.append(Fault(f"{pointer}/{_escaped(str(key))}", wrong.code, wrong.sentence))
    for key, need in (("flavor", "Say which flavor."), ("duration_minutes", "Say for how many minutes.")):
        if key not in values and not any(fault.pointer == f"{pointer}/{key}" for fault in faults):
            faults.append(Fault(f"{pointer}/{key}", "invalid", need))
    if not faults:
        faults = _faults_together(values, at, flavors, pointer)
    if faults:
        raise _invalid(faults)
    return ReservationSpec(**values)


def spec_to(spec: ReservationSpec) -> dict[str, Any]:
    """The JSON object of a spec, defaults left out; spec_from() reads it back to an equal spec."""
    written: dict[str, Any] = {"flavor": spec.flavor}
    for key in INTEGERS:
        value = getattr(spec, key)
        if value is not None and not (key == "spare_nodes" and value == 0):
            written[key] = value
    for key in BOOLEANS:
        if getattr(spec, key):
            written[key] = True
    for key in HOST_LISTS:
        if names := getattr(spec, key):
            written[key] = fold(names)
    for key in RACK_LISTS:
        if names := getattr(spec, key):
            written[key] = list(names)
    for key, attribute in MOMENTS.items():
        minute = getattr(spec, attribute)
        if minute is not None:
            written[key] = text_of(moment_of(minute))
    if spec.nvlink != "full":
        written["nvlink"] = spec.nvlink
    return written


class _Wrong(Exception):
    """One value that is wrong, before it is known where it stands."""

    def __init__(self, code: str, sentence: str) -> None:
        self.code, self.sentence = code, sentence


def _invalid(faults: list[Fault]) -> Invalid:
    """One error for all faults; a single fault lends its code and sentence."""
    if len(faults) == 1:
        return Invalid(faults[0].sentence, *faults, code=faults[0].code)
    return Invalid(f"{len(faults)} things are wrong in what is asked.", *faults)


def _faults_together(
    values: dict[str, Any], at: datetime | None, flavors: Collection[str] | None, pointer: str
) -> list[Fault]:
    """What is wrong only when the keys are seen side by side."""
    if flavors is not None and values["flavor"] not in flavors:
        known = ", ".join(sorted(flavors)) or "none"
        sentence = f"There is no flavor {values['flavor'][:63]!r} here; there is {known}."
        return [Fault(f"{pointer}/flavor", "unknown_flavor", sentence)]
    start, end = values.get("earliest_start_minute"), values.get("latest_end_minute")
    if start is not None and end is not None and end <= start:
        return [Fault(f"{pointer}/latest_end_at", "period_reversed", "The window ends before it starts.")]
    if at is not None and end is not None and moment_of(end) <= at:
        return [Fault(f"{pointer}/latest_end_at", "in_the_past", "The window is already over.")]
    try:
        ReservationSpec(**values).checked()
    except SpecError as error:
        return [Fault(f"{pointer}/{error.path}", "invalid", f"{error.path}: {error.sentence}.")]
    return []


def _value(key: str, value: Any, zone: str | None) -> Any:
    """One value in the spec's type; raises _Wrong."""
    if key in INTEGERS:
        return _integer(value, INTEGERS[key])
    if key in BOOLEANS:
        if not isinstance(value, bool):
            raise _Wrong("invalid", "This is true or false.")
        return value
    if key in MOMENTS:
        return _minute(value, zone)
    if key in HOST_LISTS:
        return _hosts(value)
    if key in RACK_LISTS:
        return _rack_names(value)
    if not isinstance(value, str) or len(value) > 63:
        raise _Wrong("invalid", "This is a name of at most 63 characters.")
    return value


def _integer(value: Any, largest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong("invalid", "This is a whole number.")
    if not 0 <= value <= largest:
        raise _Wrong("invalid", f"This is from 0 to {largest:,}.")
    return value


def _hosts(value: Any) -> tuple[str, ...]:
    """A host list (or a list of node names) as names, each once, in natural order."""
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise _Wrong("invalid", "This is a host list like gb[001-018].")
    try:
        return expand(value)
    except HostlistError as error:
        raise _Wrong("invalid", f"{error}.") from error


def _rack_names(value: Any) -> tuple[str, ...]:
    """Rack names, each once, in the order given."""
    if isinstance(value, str):
        value = [name for name in value.replace(",", " ").split() if name]
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and len(name) <= 255 for name in value):
        raise _Wrong("invalid", "This is a list of rack names.")
    if len(value) > 10_000:
        raise _Wrong("invalid", "At most 10,000 racks can be named.")
    return tuple(dict.fromkeys(value))


def _minute(value: Any, zone: str | None) -> int:
    """A moment as minutes since the epoch."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _Wrong("invalid", "This is a moment like 2026-12-01T08:00:00Z.") from None
    if not isinstance(moment, datetime):
        raise _Wrong("invalid", "This is a moment like 2026-12-01T08:00:00Z.")
    if not 1970 <= moment.year <= 9000:  # first of all: at the edge of the calendar zones overflow
        raise _Wrong("invalid", "This moment is not in a year that can be planned.")
    if moment.utcoffset() is None:
        if zone is None:
            raise _Wrong("offset_needed", "A moment needs its offset, like 2026-12-01T08:00:00Z.")
        moment = _in_zone(moment, zone)
    moment = moment.astimezone(UTC)
    if moment.second or moment.microsecond:
        raise _Wrong("not_on_minute", "Reservations lie on whole minutes.")
    return (moment - EPOCH) // MINUTE


def _in_zone(naive: datetime, zone: str) -> datetime:
    """A wall-clock time in its zone; refused where the clock skips it or shows it twice."""
    earlier = naive.replace(tzinfo=ZoneInfo(zone))
    later = earlier.replace(fold=1)
    if earlier.utcoffset() == later.utcoffset():
        return earlier
    there = earlier.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if there != naive:
        raise _Wrong("invalid", f"{naive:%H:%M} does not exist on that day in {zone}: the clock is put forward.")
    raise _Wrong("invalid", f"{naive:%H:%M} comes twice on that day in {zone}; give it with its offset.")


def _escaped(key: str) -> str:
    """A key as part of a JSON pointer."""
    return key[:80].replace("~", "~0").replace("/", "~1")
