"""What was sent? One JSON object of bounded size and depth, whose keys are all known."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from allocations.errors import DomainError, Fault, Invalid
from console.kept_text import SENTENCE, is_kept

MAX_BODY_BYTES = 1_000_000
MAX_DEPTH = 20


class JsonBody(BaseParser):
    """Strict JSON: no key twice, no NaN, nothing deeper than MAX_DEPTH, no text that a database cannot keep."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """The value that was sent. Raises too_large, ParseError for what is no JSON, Invalid for what is too deep."""
        sent = stream.read(MAX_BODY_BYTES + 1)
        if len(sent) > MAX_BODY_BYTES:
            raise DomainError("too_large", f"A body has at most {MAX_BODY_BYTES:,} bytes.")
        try:
            value = json.loads(sent.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise ParseError(str(error) or "it is nested too deeply") from error
        _check(value, "", 1)
        return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _check(value: Any, pointer: str, depth: int) -> None:
    """Refuse what is too deep, and text that is not kept."""
    if isinstance(value, str):
        if not is_kept(value):
            raise _at(pointer, SENTENCE)
        return
    if not isinstance(value, (dict, list)):
        return
    if depth > MAX_DEPTH:
        raise _at(pointer, f"JSON is at most {MAX_DEPTH} deep.")
    inside: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inside:
        _check(str(key), pointer, depth)
        _check(each, f"{pointer}/{escaped(str(key))}", depth + 1)


def sent(request: Request, *, required: Iterable[str] = (), optional: Iterable[str] = ()) -> dict[str, Any]:
    """The object that was sent. Raises Invalid with one fault per unknown or missing key; no body is an empty one."""
    content = request.data
    if not isinstance(content, Mapping):
        raise _at("", "The body is a JSON object.")
    required, known = tuple(required), {*required, *optional}
    faults = [
        Fault(f"/{escaped(key)}", "unknown_key", f"There is no key {key[:40]!r} here.")
        for key in content
        if key not in known
    ]
    faults += [Fault(f"/{key}", "invalid", f"The key {key} is needed.") for key in required if key not in content]
    refuse(faults)
    return dict(content)


def refuse(faults: list[Fault]) -> None:
    """Raise Invalid for these faults, if there are any; one alone lends its code and its sentence."""
    if len(faults) == 1:
        raise Invalid(faults[0].sentence, *faults, code=faults[0].code)
    if faults:
        raise Invalid(f"{len(faults)} things are wrong in what is sent.", *faults)


def text(content: Mapping[str, Any], key: str, default: str = "") -> str:
    """The text under `key`. Raises Invalid for anything else there."""
    value = content.get(key, default)
    if not isinstance(value, str):
        raise _at(f"/{key}", "This is a text.")
    return value


def whole(content: Mapping[str, Any], key: str, default: int = 0) -> int:
    """The whole number under `key`, between -2^31 and 2^31. Raises Invalid for anything else there."""
    value = content.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**31:
        raise _at(f"/{key}", "This is a whole number.")
    return value


def truth(content: Mapping[str, Any], key: str, default: bool) -> bool:
    """The true or false under `key`. Raises Invalid for anything else there."""
    value = content.get(key, default)
    if not isinstance(value, bool):
        raise _at(f"/{key}", "This is true or false.")
    return value


def escaped(key: str) -> str:
    """A key as part of a JSON pointer, cut to a length that can be read."""
    return key[:80].replace("~", "~0").replace("/", "~1")


def _at(pointer: str, sentence: str) -> Invalid:
    return Invalid(sentence, Fault(pointer, "invalid", sentence))
