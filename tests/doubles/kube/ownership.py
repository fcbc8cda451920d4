"""Who owns which field, and what does a server-side apply leave? (field sets, merge, conflicts)

A path is a tuple of elements as managedFields writes them: "f:name" a field, "k:{…}" an entry of a map list, "v:…" a
value of a set.
"""

import copy
import json
from typing import Any

from tests.doubles.kube.answers import Json
from tests.doubles.kube.schema import Schema, child, items, list_key, list_type

Path = tuple[str, ...]
_SERVERS_OWN = {
    *("name", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "managedFields"),
}


def owned_part(document: Json) -> Json:
    """The document without what no manager can own."""
    part = {key: copy.deepcopy(value) for key, value in document.items() if key not in ("apiVersion", "kind")}
    metadata = {key: value for key, value in part.pop("metadata", {}).items() if key not in _SERVERS_OWN}
    return {**part, **({"metadata": metadata} if metadata else {})}


def _is_atomic(schema: Schema | None) -> bool:
    return bool(schema) and (schema or {}).get("x-kubernetes-map-type") == "atomic"


def field_set(value: Any, schema: Schema | None, above: Path = ()) -> set[Path]:
    """The paths that whoever wrote this value owns."""
    if isinstance(value, dict) and value and not _is_atomic(schema):
        found = {above} if above and above[-1].startswith("k:") else set()
        for key, entry in value.items():
            found |= field_set(entry, child(schema, key), (*above, f"f:{key}"))
        return found
    if isinstance(value, list) and value and schema is not None:
        if list_type(schema) == "map":
            found = set()
            for entry in value:
                found |= field_set(entry, items(schema), (*above, f"k:{list_key(entry, schema)}"))
            return found
        if list_type(schema) == "set":
            return {(*above, f"v:{json.dumps(entry)}") for entry in value}
    return {above} if above else set()


def value_at(value: Any, schema: Schema | None, path: Path) -> tuple[bool, Any]:
    """(whether it is there, what stands there)."""
    for element in path:
        kind, rest = element[:2], element[2:]
        if kind == "f:":
            if not isinstance(value, dict) or rest not in value:
                return False, None
            value, schema = value[rest], child(schema, rest)
        elif kind == "k:" and isinstance(value, list) and schema is not None:
            found = [entry for entry in value if list_key(entry, schema) == rest]
            if not found:
                return False, None
            value, schema = found[0], items(schema)
        else:
            return isinstance(value, list) and json.loads(rest) in value, rest
    return True, value


def remove_at(value: Any, schema: Schema | None, path: Path) -> None:
    """Take one owned path out of a document, in place."""
    for element in path[:-1]:
        there, below = value_at(value, schema, (element,))
        if not there:
            return
        schema = child(schema, element[2:]) if element.startswith("f:") else items(schema)
        value = below
    kind, rest = path[-1][:2], path[-1][2:]
    if kind == "f:" and isinstance(value, dict):
        value.pop(rest, None)
    elif isinstance(value, list) and schema is not None:
        value[:] = [
            entry for entry in value if (list_key(entry, schema) if kind == "k:" else json.dumps(entry)) != rest
        ]


def merged(live: Any, applied: Any, schema: Schema | None) -> Any:
    """What stands after `applied` was laid over `live`."""
    if isinstance(live, dict) and isinstance(applied, dict) and not _is_atomic(schema):
        for key, entry in applied.items():
            live[key] = merged(live[key], entry, child(schema, key)) if key in live else copy.deepcopy(entry)
        return live
    if isinstance(live, list) and isinstance(applied, list) and schema is not None:
        if list_type(schema) == "map":
            before = {list_key(entry, schema): entry for entry in live}
            now = {list_key(entry, schema): entry for entry in applied}
            kept = [entry for key, entry in before.items() if key not in now]
            return [
                merged(before[key], entry, items(schema)) if key in before else copy.deepcopy(entry)
                for key, entry in now.items()
            ] + kept
        if list_type(schema) == "set":
            return applied + [entry for entry in live if entry not in applied]
    return copy.deepcopy(applied)


def to_fields(paths: set[Path]) -> Json:
    """A set of paths as the tree of managedFields."""
    tree: Json = {}
    for path in sorted(paths):
        below = tree
        for element in path:
            below = below.setdefault(element, {})
        if path and path[-1].startswith("k:"):
            below.setdefault(".", {})
    return tree


def from_fields(tree: Json, above: Path = ()) -> set[Path]:
    """The tree of managedFields as a set of paths."""
    found: set[Path] = set()
    for element, below in tree.items():
        if element == ".":
            found.add(above)
        else:
            found |= from_fields(below, (*above, element)) if below else {(*above, element)}
    return found


def dotted(path: Path) -> str:
    """The path as a conflict names it: .spec.resourceGroups"""
    return "".join(f".{element[2:]}" if element.startswith("f:") else f"[{element[2:]}]" for element in path)
