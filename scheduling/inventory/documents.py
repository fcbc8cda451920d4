"""How is JSON or YAML from outside read without trusting it? (bounded, no aliases, no doubled keys, lines kept)

YAML is built from the parser's events rather than by a loader: no tags, no anchors, no recursion, and each mapping
remembers the lines of its keys. Scalars are null, booleans, decimal numbers and strings; dates stay strings.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from scheduling.inventory.fleet import InventoryError
from scheduling.inventory.sightings import Place

MAX_YAML = 32 * 1024 * 1024
MAX_DEPTH = 64
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"[-+]?[0-9]{1,18}\Z")
# YAML counts these as line ends, editors do not: lines in errors would be wrong.
_YAML_BREAK = re.compile(r"[\x85\u2028\u2029]")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}\Z")
_PLAIN: Mapping[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True,
                             "TRUE": True, "false": False, "False": False, "FALSE": False}  # fmt: skip
_UNKEPT = re.compile("[\x00\ud800-\udfff]")  # no database keeps these
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_STR_TAGS = (None, "!", "tag:yaml.org,2002:str")


class LinedMap(dict[str, Any]):
    """A YAML mapping that knows its own line and the line of each key."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def line_of(mapping: object, key: str = "", otherwise: int = 1) -> int:
    """The line of `key` in a YAML mapping, of the mapping itself without the key, `otherwise` for other values."""
    return mapping.lines.get(key, mapping.line) if isinstance(mapping, LinedMap) else otherwise


def key_place(mapping: object, key: str, place: Place) -> Place:
    """The place of `key` where the mapping knows lines, else `place` (whose line may be costly: it is not asked)."""
    return Place(place.file, line_of(mapping, key)) if isinstance(mapping, LinedMap) else place


def load_yaml(file: str, text: str) -> list[Any]:
    """Every document of the text. Refuses aliases, anchors, tags, doubled keys, depth beyond MAX_DEPTH."""
    if len(text) > MAX_YAML:
        raise InventoryError(file, 1, f"{len(text)} characters of YAML, at most {MAX_YAML} are read; give JSON")
    if separator := _YAML_BREAK.search(text):
        line = text.count("\n", 0, separator.start()) + 1
        raise InventoryError(file, line, f"the line separator {separator.group()!a} is no line end here")
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InventoryError(file, line, _bad_yaml(text, line, error.problem or "cannot be read")) from error
    except yaml.YAMLError as error:
        raise InventoryError(file, 1, f"not YAML: {str(error)[:120]}") from error
    return builder.documents


def _bad_yaml(text: str, line: int, problem: str) -> str:
    around = "\n".join(text.split("\n")[max(0, line - 2) : line + 1])
    return _placeholder() if "{{" in around else f"not YAML: {problem}"


def _placeholder() -> str:
    return "a template placeholder {{...}} stands here: give the rendered file"


class _Builder:
    """Values from YAML events, on a stack of its own."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.documents: list[Any] = []
        self.stack: list[Any] = []
        self.keys: list[str | None] = []

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InventoryError(self.file, line, "YAML anchors and aliases are not taken")
        if isinstance(event, yaml.ScalarEvent):
            self._put(self._scalar(event, line), line)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if event.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
                raise InventoryError(self.file, line, f"the YAML tag {event.tag[:60]!r} is not taken")
            if len(self.stack) >= MAX_DEPTH:
                raise InventoryError(self.file, line, f"nested deeper than {MAX_DEPTH} levels")
            value: Any = LinedMap(line) if isinstance(event, yaml.MappingStartEvent) else []
            self._put(value, line)
            self.stack.append(value)
            self.keys.append(None)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.stack.pop()
            self.keys.pop()

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Any:
        if event.tag not in _STR_TAGS:
            raise InventoryError(self.file, line, f"the YAML tag {event.tag[:60]!r} is not taken")
        text = event.value
        if _UNKEPT.search(text):
            raise InventoryError(self.file, line, "a text here holds no NUL and no half of a surrogate pair")
        if event.style or event.tag:
            return text
        if text in _PLAIN:
            return _PLAIN[text]
        if _NUMBER.match(text):
            return int(text)
        return float(text) if _DECIMAL.match(text) else text

    def _put(self, value: Any, line: int) -> None:
        if not self.stack:
            self.documents.append(value)
            return
        top = self.stack[-1]
        if isinstance(top, list):
            top.append(value)
        elif self.keys[-1] is None:
            self._open_key(top, value, line)
        else:
            top[self.keys[-1]] = value
            self.keys[-1] = None

    def _open_key(self, mapping: LinedMap, key: Any, line: int) -> None:
        if isinstance(key, (dict, list)):
            raise InventoryError(self.file, line, _placeholder() if isinstance(key, dict) else "a list is no YAML key")
        name = key if isinstance(key, str) else json.dumps(key)
        if name in mapping.lines:
            raise InventoryError(
                self.file, line, f"key {name[:60]!r} is given twice, first in line {mapping.lines[name]}"
            )
        mapping.lines[name] = line
        self.keys[-1] = name


class _DoubledKey(ValueError):
    pass


def load_json(file: str, text: str) -> Any:
    """The one value of the text. Refuses bad syntax, doubled keys, absurd depth and numbers, each with its line."""
    try:
        return json.loads(text, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        where = text.split("\n")[error.lineno - 1]
        reason = _placeholder() if "{{" in where else f"not JSON: {error.msg} (column {error.colno})"
        raise InventoryError(file, error.lineno, reason) from error
    except _DoubledKey as error:
        line = _doubled_key_line(text, str(error))
        raise InventoryError(file, line, f"key {str(error)[:60]!r} is given twice in one object") from error
    except RecursionError as error:
        raise InventoryError(file, 1, "JSON nested too deeply") from error
    except ValueError as error:
        raise InventoryError(file, 1, f"not JSON: {str(error)[:120]}") from error


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _DoubledKey(next(key for at, key in enumerate(keys) if key in keys[:at]))
    return made


def _doubled_key_line(text: str, key: str) -> int:
    """The line where an object names `key` again: only looked for once the file is known to be wrong."""
    open_keys: list[set[str] | None] = []
    string, at = "", 0
    for token in _JSON_TOKEN.finditer(text):
        sign = token.group()
        if sign[0] == '"':
            string, at = json.loads(sign, strict=False), token.start()
        elif sign in "{[":
            open_keys.append(set() if sign == "{" else None)
        elif sign in "}]" and open_keys:
            open_keys.pop()
        elif sign == ":" and open_keys and (seen := open_keys[-1]) is not None:
            if string == key and string in seen:
                return text.count("\n", 0, at) + 1
            seen.add(string)
    return 1


def json_item_place(file: str, text: str, key: str, index: int) -> Place:
    """The place of element `index` of the list under `key`, found only if somebody asks for its line."""
    return Place(file, _item_finder(text, key, index))


def _item_finder(text: str, key: str, index: int) -> Callable[[], int]:
    def find() -> int:
        decoder, blank = json.JSONDecoder(), re.compile(r"[\s,]*")
        start = re.search(rf'"{re.escape(key)}"\s*:\s*\[', text)
        if not start:
            return 1
        at = start.end()
        for number in range(index + 1):
            gap = blank.match(text, at)
            at = gap.end() if gap else at
            if number < index:
                try:
                    _, at = decoder.raw_decode(text, at)
                except ValueError:
                    break
        return text.count("\n", 0, at) + 1

    return find
