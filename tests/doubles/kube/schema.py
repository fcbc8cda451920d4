"""What does a structural schema say about an object? (prune, default, validate, typed errors)

Only what a client can see is done: unknown fields go, defaults come, types, enums, patterns, bounds, required fields
and list keys are checked. CEL rules are not evaluated; those that matter to Berth stand in kueue.py as code.
"""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.doubles.kube.answers import Json, cause

Schema = dict[str, Any]
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def child(schema: Schema | None, key: str) -> Schema | None:
    """The schema of a field, through properties or additionalProperties; None where nothing is said."""
    if schema is None:
        return None
    found = (schema.get("properties") or {}).get(key)
    more = schema.get("additionalProperties")
    return found if found is not None else more if isinstance(more, dict) else None


def items(schema: Schema | None) -> Schema | None:
    return (schema or {}).get("items")


def list_type(schema: Schema | None) -> str:
    return str((schema or {}).get("x-kubernetes-list-type", "atomic"))


def list_key(entry: Any, schema: Schema) -> str:
    """The key of an entry of a map list as managedFields writes it."""
    keys = (
        {name: entry.get(name) for name in schema["x-kubernetes-list-map-keys"]} if isinstance(entry, dict) else entry
    )
    return json.dumps(keys, separators=(",", ":"), sort_keys=True)


def prune(value: Any, schema: Schema | None, path: str = "") -> Iterator[str]:
    """Remove what the schema does not know, in place, and name each removed path."""
    if schema is None or not isinstance(value, dict | list):
        return
    if isinstance(value, list):
        for number, entry in enumerate(value):
            yield from prune(entry, items(schema), f"{path}[{number}]")
        return
    for key in list(value):
        where = f"{path}.{key}" if path else key
        if not path and key in ("apiVersion", "kind", "metadata"):
            continue
        known = child(schema, key)
        if known is not None:
            yield from prune(value[key], known, where)
        elif not (schema.get("additionalProperties") is True or schema.get("x-kubernetes-preserve-unknown-fields")):
            del value[key]
            yield where


def set_defaults(value: Any, schema: Schema | None) -> None:
    """Fill in what the schema gives a default for, in place."""
    if schema is None:
        return
    if isinstance(value, list):
        for entry in value:
            set_defaults(entry, items(schema))
    elif isinstance(value, dict):
        for key, known in (schema.get("properties") or {}).items():
            if value.get(key) is None and "default" in known:
                value[key] = copy.deepcopy(known["default"])
            elif key in value and value[key] is None and not known.get("nullable"):
                del value[key]
        for key, entry in value.items():
            set_defaults(entry, child(schema, key))


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON_TYPES.get(kind, (object,)))


def validate(value: Any, schema: Schema | None, path: str = "") -> Iterator[Json]:
    """Every wrong field, as the causes of a 422."""
    if schema is None or (value is None and schema.get("nullable")):
        return
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        kind = "integer" if isinstance(value, int) else "string"
    if kind and not _is_a(value, kind):
        name = _NAMES.get(type(value), "null")
        told = f'Invalid value: "{name}": {path} in body must be of type {kind}: "{name}"'
        yield cause(path, told, "FieldValueTypeInvalid")
        return
    yield from _bounds(value, schema, path)
    if isinstance(value, dict):
        for key in schema.get("required") or ():
            if key not in value:
                yield cause(f"{path}.{key}" if path else key, "Required value", "FieldValueRequired")
        for key, entry in value.items():
            if path or key not in ("apiVersion", "kind", "metadata"):
                yield from validate(entry, child(schema, key), f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _entries(value, schema, path)


def _entries(value: list[Any], schema: Schema, path: str) -> Iterator[Json]:
    kind = list_type(schema)
    keys = [list_key(entry, schema) if kind == "map" else json.dumps(entry) for entry in value]
    for number, entry in enumerate(value):
        if kind in ("map", "set") and keys[number] in keys[:number]:
            yield cause(f"{path}[{number}]", f"Duplicate value: {keys[number]}", "FieldValueDuplicate")
        yield from validate(entry, items(schema), f"{path}[{number}]")


def _bounds(value: Any, schema: Schema, path: str) -> Iterator[Json]:
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(json.dumps(each) for each in schema["enum"])
        told = f"Unsupported value: {json.dumps(value)}: supported values: {allowed}"
        yield cause(path, told, "FieldValueNotSupported")
    if isinstance(value, int | str) and "pattern" in schema and not re.search(schema["pattern"], str(value)):
        told = f"Invalid value: {json.dumps(value)}: {path} in body should match '{schema['pattern']}'"
        yield cause(path, told)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield cause(path, f"Invalid value: {value}: {path} in body is out of bounds")
    sized = {str: ("minLength", "maxLength"), list: ("minItems", "maxItems"), dict: ("minProperties", "maxProperties")}
    least, most = sized.get(type(value), ("", ""))
    if least and not schema.get(least, 0) <= len(value) <= schema.get(most, len(value)):
        yield cause(path, f"Invalid value: {path} in body has {len(value)} entries or characters, out of bounds")


def first_type_error(value: Any, schema: Schema | None, path: str = "") -> str | None:
    """What a server-side apply refuses before anything else: a wrong type or a doubled list key."""
    if value is None or schema is None or schema.get("x-kubernetes-int-or-string"):
        return None
    if isinstance(value, list) and list_type(schema) == "map":
        keys = [list_key(entry, schema) for entry in value]
        doubled = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
        if doubled:
            pairs = ",".join(f"{name}={json.dumps(part)}" for name, part in json.loads(doubled).items())
            return f"{path}: duplicate entries for key [{pairs}]"
    kind = schema.get("type", "")
    if kind and not _is_a(value, kind):
        said = {"object": "map", "array": "list", "integer": "numeric (int or float)"}.get(kind, kind)
        return f"{path}: expected {said}, got &value.valueUnstructured{{Value:{value}}}"
    pairs_of: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        pairs_of = (
            (f"{path}.{key}", (entry, child(schema, key))) for key, entry in value.items() if path or key != "metadata"
        )
    elif isinstance(value, list):
        pairs_of = ((f"{path}[{number}]", (entry, items(schema))) for number, entry in enumerate(value))
    return next((bad for where, (entry, known) in pairs_of if (bad := first_type_error(entry, known, where))), None)
