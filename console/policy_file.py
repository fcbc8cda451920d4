"""What does a policy file say? (YAML to checked rows; every refusal names file, line and path)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduling.inventory.documents import LinedMap, line_of, load_yaml
from scheduling.inventory.fleet import InventoryError

Number = (int, float)
_AMOUNT: tuple[type, ...] = (int, str)

# Per section: key -> the types its value may have. Keys with a star must be there.
SECTIONS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "people": {"email*": (str,), "name": (str,), "roles": (list,)},
    "teams": {"path*": (str,), "title": (str,), "shares": (int,), "account": (str,)},
    "memberships": {"team*": (str,), "user*": (str,), "role": (str,)},
    "tiers": {
        "name*": (str,),
        "priority": (int,),
        "preempts": (list,),
        "preemptible": (bool,),
        "mode": (str,),
        "notice_minutes": (int,),
        "protected_minutes": (int,),
        "max_walltime_minutes": _AMOUNT,
        "max_gpus_per_job": _AMOUNT,
    },
    "allocations": {
        "team*": (str,),
        "cluster*": (str,),
        "flavor*": (str,),
        "start_at*": (str,),
        "end_at*": (str,),
        "guaranteed_gpus*": (int,),
        "borrowing_limit_gpus": _AMOUNT,
        "lending_limit_gpus": _AMOUNT,
        "gpu_hours": (int, float, str),
        "max_walltime_minutes": _AMOUNT,
        "max_gpus_per_job": _AMOUNT,
        "tier": (str,),
        "overcommit": (bool,),
        "reason": (str,),
    },
    "approval_policies": {
        "name*": (str,),
        "position": (int,),
        "matches": (dict,),
        "steps": (list,),
        "automatic": (str,),
        "reason": (str,),
        "hold_minutes": (int,),
    },
    "reservation_policies": {
        "name*": (str,),
        "cluster": (str,),
        "flavor": (str,),
        "tier": (str,),
        "reservable_share_percent": (int,),
        "team_share_percent": _AMOUNT,
        "active_count": _AMOUNT,
        "future_count": _AMOUNT,
        "rack_hours_ahead": _AMOUNT,
        "lead_minutes": (int,),
        "horizon_days": (int,),
        "max_duration_minutes": _AMOUNT,
        "open_asks_per_team": (int,),
        "cool_down_minutes": (int,),
    },
}
_MOST = 2**31 - 1
_LARGE = {"gpu_hours"}  # with bounds of its own
# Numbers that may be without limit; "unlimited" is the only word they take.
_WORDS = {key for keys in SECTIONS.values() for key, types in keys.items() if str in types and int in types}


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """The rows of each section, as plain values, and where each row and key stands in the file."""

    file: str
    sections: Mapping[str, list[dict[str, Any]]]
    rows: Mapping[tuple[str, int], LinedMap]

    def place(self, section: str, number: int, key: str = "") -> str:
        """file:line: /section/number/key"""
        line = line_of(self.rows[section, number], key)
        return f"{self.file}:{line}: /{section}/{number}{f'/{key}' if key else ''}"


def read_policy(file: str, text: str) -> PolicyFile:
    """The file's rows, checked for their keys and types. Raises InventoryError, whose text is file:line: reason."""
    documents = load_yaml(file, text)
    if len(documents) != 1 or not isinstance(documents[0], LinedMap):
        raise InventoryError(file, 1, f"one mapping with the keys {', '.join(SECTIONS)} is expected")
    top = documents[0]
    sections: dict[str, list[dict[str, Any]]] = {}
    rows: dict[tuple[str, int], LinedMap] = {}
    for section, listed in top.items():
        if section not in SECTIONS:
            raise InventoryError(
                file, line_of(top, section), f"/{section}: unknown key; known are {', '.join(SECTIONS)}"
            )
        if not isinstance(listed, list):
            raise InventoryError(file, line_of(top, section), f"/{section}: a list of rows is expected")
        sections[section] = []
        for number, row in enumerate(listed):
            path = f"/{section}/{number}"
            if not isinstance(row, LinedMap):
                raise InventoryError(file, line_of(top, section), f"{path}: a mapping is expected")
            _check_row(file, path, row, SECTIONS[section])
            rows[section, number] = row
            sections[section].append({key: _plain(value) for key, value in row.items()})
    return PolicyFile(file, sections, rows)


def _check_row(file: str, path: str, row: LinedMap, keys: Mapping[str, tuple[type, ...]]) -> None:
    known = {key.rstrip("*"): types for key, types in keys.items()}
    for key, value in row.items():
        if key not in known:
            raise InventoryError(file, line_of(row, key), f"{path}/{key}: unknown key; known are {', '.join(known)}")
        if not _fits(key, value, known[key]):
            raise InventoryError(file, line_of(row, key), f"{path}/{key}: {_expected(key, known[key])} is expected")
        if key not in _LARGE and _is_too_large(value):
            raise InventoryError(file, line_of(row, key), f"{path}/{key}: a number is at most {_MOST:,}")
    for key in keys:
        if key.endswith("*") and key.rstrip("*") not in row:
            raise InventoryError(file, line_of(row), f"{path}: {key.rstrip('*')} is missing")


def _is_too_large(value: Any) -> bool:
    """Does the value hold a number, however deep, that no column keeps?"""
    if isinstance(value, Mapping):
        return any(map(_is_too_large, value.values()))
    if isinstance(value, list):
        return any(map(_is_too_large, value))
    return isinstance(value, Number) and abs(value) > _MOST


def _fits(key: str, value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    if key in _WORDS:
        return value == "unlimited" or isinstance(value, Number)
    return isinstance(value, types)


def _expected(key: str, types: tuple[type, ...]) -> str:
    if key in _WORDS:
        return 'a number or "unlimited"'
    words = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}
    return " or ".join(words.get(each, each.__name__) for each in types)


def _plain(value: Any) -> Any:
    """Values without their lines, for services and JSON columns."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
