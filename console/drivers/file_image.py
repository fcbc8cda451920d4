"""What do the files of a cluster say after one more step? (texts + step -> texts; pure)

The image of a cluster is what its dialect reads out of its files. A step changes one object of it, and the dialect
writes the whole again, so that the files after a plan are byte for byte those of an export of the same state.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from console.drivers.base import DriverError
from scheduling.dialects import dialect
from scheduling.dialects.slurm.accounts import account
from scheduling.dialects.slurm.reservations import create, reservation
from scheduling.plan import NativeObject, Rendered, Step

Texts = Mapping[str, str]
_Key = tuple[str, str]


def file_names(kind: str) -> tuple[str, ...]:
    """The files that Berth owns in the folder of a cluster of this kind, sorted."""
    return tuple(sorted(dialect(kind).files(Rendered(()))))


def with_step(kind: str, cluster: str, texts: Texts, step: Step) -> dict[str, str]:
    """The texts after the step, file name -> text. Raises DialectError for texts that the dialect cannot read."""
    image = _slurm_image(cluster, texts, step) if kind == "slurm" else _manifest_image(kind, texts, step)
    return dict(dialect(kind).files(Rendered(image)))


def _slurm_image(cluster: str, texts: Texts, step: Step) -> tuple[NativeObject, ...]:
    """Accounts with parents first, then reservations by name: the order in which the commands can be run."""
    words = dialect("slurm")
    observed = words.parse(words.parse_files(texts), installation="files")
    found = {item.key: dict(item.attributes) for item in observed.objects if item.key != ("account", "root")}
    key = (step.object_class, step.name)
    if step.verb == "delete":
        found.pop(key, None)
    else:
        found.setdefault(key, {}).update({change.attribute: change.after for change in step.changes})
    accounts = {name: values for (object_class, name), values in found.items() if object_class == "account"}
    bookings = {name: values for (object_class, name), values in found.items() if object_class == "reservation"}
    return (
        *(account(name, accounts[name], cluster) for name in sorted(accounts, key=lambda n: (_depth(n, accounts), n))),
        *(_written_out(name, values) for name, values in sorted(bookings.items())),
    )


def _written_out(name: str, values: Mapping[str, Any]) -> NativeObject:
    """A reservation as a file holds it: with its start, however long ago that was."""
    return replace(reservation(name, values), native=(create(None, name, values),))


def _depth(name: str, accounts: Mapping[str, Mapping[str, Any]]) -> int:
    depth = 0
    while name in accounts and depth <= len(accounts):
        name, depth = str(accounts[name].get("parent", "")), depth + 1
    return depth


def _manifest_image(kind: str, texts: Texts, step: Step) -> tuple[NativeObject, ...]:
    """One document per object, in the dialect's creation order, then by name."""
    words = dialect(kind)
    if not isinstance(step.native, dict):
        raise DriverError("refused", f"the step on {step.object_class} {step.name} holds no object")
    native = words.parse_files(texts)
    found: dict[_Key, Any] = {(each["kind"], _name_of(each)): each for items in native.values() for each in items}
    key = (step.native["kind"], _name_of(step.native))
    if step.verb == "delete":
        found.pop(key, None)
    else:
        found[key] = step.native
    order = {object_class: place for place, object_class in enumerate(words.classes)}
    keys = sorted(found, key=lambda each: (order.get(each[0], len(order)), each[1]))
    return tuple(NativeObject(each[0], each[1], {}, found[each]) for each in keys)


def _name_of(document: Mapping[str, Any]) -> str:
    metadata = document["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
