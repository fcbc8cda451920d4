"""What does the double hold, and what does a write do to it? (Resource, Store)"""

import copy
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.doubles.kube import ownership, schema
from tests.doubles.kube.answers import Json, Refusal, cause, invalid

_DNS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
Admission = Callable[["Resource", Json, Json | None], None]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of thing at one version. `definition` is its structural schema, None for core kinds (all allowed)."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    definition: Json | None = None
    has_status: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def named(self, name: str) -> str:
        return f'{self.plural}.{self.group} "{name}"' if self.group else f'{self.plural} "{name}"'

    def missing(self, name: str) -> Refusal:
        message = f"{self.named(name)} not found"
        return Refusal(404, "NotFound", message, name=name, group=self.group, kind=self.plural)

    def wrong(self, name: str, causes: list[Json]) -> Refusal:
        return invalid(f"{self.kind}.{self.group}", name, causes, group=self.group, kind=self.kind)


@dataclass(frozen=True, slots=True)
class Ask:
    """How a write was asked for: its manager and the query parameters that matter."""

    manager: str
    subresource: str = ""
    dry_run: bool = False
    force: bool = False
    validation: str = "Warn"


class Store:
    """Objects by resource and (namespace, name), one running resourceVersion, and the admission of writes.

    Hold `lock` around every call. `mutating` runs before the schema, `validating` after it, as webhooks do.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 100
        self.resources: dict[tuple[str, str, str], Resource] = {}
        self.mutating: list[Admission] = []
        self.validating: list[Admission] = []
        self._objects: dict[tuple[str, str], dict[tuple[str, str], Json]] = {}
        for plural, kind, namespaced in (
            ("namespaces", "Namespace", False),
            ("nodes", "Node", False),
            ("pods", "Pod", True),
        ):
            self.serve(Resource("", "v1", plural, kind, namespaced, has_status=plural != "namespaces"))
        for name in ("default", "kube-system"):
            self.put(self.resources["", "v1", "namespaces"], {"metadata": {"name": name}})

    def serve(self, resource: Resource) -> None:
        """Answer for this resource from now on."""
        self.resources[resource.group, resource.version, resource.plural] = resource

    def serve_definition(self, crd: Json) -> None:
        """Answer for every served version of a CustomResourceDefinition."""
        spec = crd["spec"]
        for version in spec["versions"]:
            if version["served"]:
                names, namespaced = spec["names"], spec["scope"] == "Namespaced"
                definition = version["schema"]["openAPIV3Schema"]
                has_status = "status" in (version.get("subresources") or {})
                self.serve(
                    Resource(
                        spec["group"],
                        version["name"],
                        names["plural"],
                        names["kind"],
                        namespaced,
                        definition,
                        has_status,
                    )
                )

    def table(self, resource: Resource) -> dict[tuple[str, str], Json]:
        """All objects of a resource; its versions share one table."""
        return self._objects.setdefault((resource.group, resource.plural), {})

    def put(self, resource: Resource, document: Json) -> Json:
        """Keep an object as it is, with the next resourceVersion."""
        self.version += 1
        metadata = document.setdefault("metadata", {})
        metadata["resourceVersion"] = str(self.version)
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", _now())
        self.table(resource)[metadata.get("namespace", ""), metadata["name"]] = document
        return document

    def delete(self, resource: Resource, key: tuple[str, str], preconditions: Json, dry_run: bool) -> Json:
        """Delete one object, or mark it where a finalizer holds it."""
        old = self.table(resource).get(key)
        if old is None:
            raise resource.missing(key[1])
        for name, field in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted, there = preconditions.get(name), old["metadata"][name]
            if wanted and wanted != there:
                told = f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {there}"
                message = f"Operation cannot be fulfilled on {resource.named(key[1])}: {told}"
                raise Refusal(409, "Conflict", message, name=key[1], group=resource.group, kind=resource.plural)
        if dry_run:
            return old
        if old["metadata"].get("finalizers"):
            if not old["metadata"].get("deletionTimestamp"):
                marked = copy.deepcopy(old)
                marked["metadata"]["deletionTimestamp"] = _now()
                self.put(resource, marked)
            return self.table(resource)[key]
        self.version += 1
        del self.table(resource)[key]
        details = {"name": key[1], "group": resource.group, "kind": resource.plural, "uid": old["metadata"]["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def apply(self, resource: Resource, key: tuple[str, str], body: Json, old: Json | None, ask: Ask) -> Json:
        """Server-side apply: lay the body over the object, take away what this manager no longer names."""
        if not ask.manager:
            told = "Required value: is required for apply patch"
            where = cause("fieldManager", told, "FieldValueRequired")
            raise invalid("PatchOptions.meta.k8s.io", "", [where])
        if (body.get("metadata") or {}).get("managedFields"):
            raise Refusal(400, "BadRequest", "metadata.managedFields must be nil")
        check_preconditions(resource, key[1], body, old)
        _refuse_untyped(resource, key, body)
        paths = ownership.field_set(ownership.owned_part(body), resource.definition)
        live = copy.deepcopy(old) if old else {"metadata": {"name": key[1]}}
        managers = _managers(live)
        _take_over(resource, ask, body, live, managers, paths)
        mine = _entry(managers, ask.manager, "Apply", ask.subresource)
        if mine:
            others = set().union(*(each["paths"] for each in managers if each is not mine))
            for path in sorted(mine["paths"] - paths - others, key=len, reverse=True):
                ownership.remove_at(live, resource.definition, path)
            mine["time"] = mine["time"] if mine["paths"] == paths else _now()
            mine["paths"] = paths
        else:
            managers.append(_new_entry(resource, ask, "Apply", paths))
        wanted = copy.deepcopy(body)
        for name in ("uid", "resourceVersion", "generation", "creationTimestamp"):
            wanted.get("metadata", {}).pop(name, None)
        new = ownership.merged(live, wanted, resource.definition)
        return self.write(resource, key, new, old, ask, managers)[0]

    def write(
        self,
        resource: Resource,
        key: tuple[str, str],
        new: Json,
        old: Json | None,
        ask: Ask,
        managers: list[Json] | None = None,
    ) -> tuple[Json, list[str]]:
        """The common end of create, update, patch and apply: prune, default, admit, validate, own, keep.

        Gives the object and the warnings. `managers` is given by an apply; otherwise the change decides who owns.
        """
        new["apiVersion"], new["kind"] = resource.api_version, resource.kind
        warnings = _unknown_fields(resource, new, ask)
        new = _with_server_fields(resource, key, new, old, ask)
        if resource.definition:
            schema.set_defaults(new, resource.definition)
        for admit in self.mutating:
            admit(resource, new, old)
        causes = [] if _DNS.match(key[1]) and len(key[1]) <= 253 else [_bad_name(key[1])]
        causes += schema.validate(new, resource.definition)
        if causes:
            raise resource.wrong(key[1], causes)
        for admit in self.validating:
            admit(resource, new, old)
        new["metadata"].pop("managedFields", None)
        owners = _owners_after(resource, new, old, ask) if managers is None else managers
        if owners:
            new["metadata"]["managedFields"] = [
                {**{k: v for k, v in each.items() if k != "paths"}, "fieldsV1": ownership.to_fields(each["paths"])}
                for each in owners
                if each["paths"]
            ]
        return self._keep(resource, key, new, old, ask), warnings

    def _keep(self, resource: Resource, key: tuple[str, str], new: Json, old: Json | None, ask: Ask) -> Json:
        if old and _same(new, old):
            return copy.deepcopy(old)
        generation = 1 if old is None else old["metadata"].get("generation", 1)
        changed = old is not None and _spec_of(new) != _spec_of(old)
        new["metadata"]["generation"] = generation + 1 if changed else generation
        if ask.dry_run:
            new["metadata"].setdefault("uid", str(uuid.uuid4()))
            return new
        kept = self.put(resource, new)
        if old and kept["metadata"].get("deletionTimestamp") and not kept["metadata"].get("finalizers"):
            del self.table(resource)[key]
        return kept


def check_preconditions(
    resource: Resource, name: str, body: Json, old: Json | None, needs_version: bool = False
) -> None:
    """409 for an outdated resourceVersion; 422 for another uid, or where an update of a custom resource has none."""
    metadata = body.get("metadata") or {}
    version, uid = metadata.get("resourceVersion"), metadata.get("uid")
    if needs_version and not version and resource.definition:
        told = "Invalid value: 0: must be specified for an update"
        raise resource.wrong(name, [cause("metadata.resourceVersion", told)])
    if old and version and version != old["metadata"]["resourceVersion"]:
        told = "the object has been modified; please apply your changes to the latest version and try again"
        message = f"Operation cannot be fulfilled on {resource.named(name)}: {told}"
        raise Refusal(409, "Conflict", message, name=name, group=resource.group, kind=resource.plural)
    if old and uid and uid != old["metadata"]["uid"]:
        raise resource.wrong(name, [cause("metadata.uid", f'Invalid value: "{uid}": field is immutable')])
    if uid and old is None:
        told = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
        message = f"Operation cannot be fulfilled on {resource.named(name)}: {told}"
        raise Refusal(409, "Conflict", message, name=name, group=resource.group, kind=resource.plural)


def _refuse_untyped(resource: Resource, key: tuple[str, str], body: Json) -> None:
    """A real server answers 500 here, whatever fieldValidation says."""
    if resource.definition is None:
        return
    unknown = next(schema.prune(copy.deepcopy(body), resource.definition), None)
    wrong = (
        f".{unknown}: field not declared in schema" if unknown else schema.first_type_error(body, resource.definition)
    )
    if wrong:
        where = f"{key[0]}/{key[1]}; {resource.api_version}, Kind={resource.kind}"
        raise Refusal(500, "", f"failed to create typed patch object ({where}): {wrong}")


def _managers(document: Json) -> list[Json]:
    entries = document["metadata"].pop("managedFields", None) or []
    return [
        {**{k: v for k, v in each.items() if k != "fieldsV1"}, "paths": ownership.from_fields(each["fieldsV1"])}
        for each in entries
    ]


def _entry(managers: list[Json], manager: str, operation: str, subresource: str) -> Json | None:
    wanted = (manager, operation, subresource)
    return next((m for m in managers if (m["manager"], m["operation"], m.get("subresource", "")) == wanted), None)


def _new_entry(resource: Resource, ask: Ask, operation: str, paths: set[ownership.Path]) -> Json:
    entry = {
        "manager": ask.manager,
        "operation": operation,
        "apiVersion": resource.api_version,
        "time": _now(),
        "fieldsType": "FieldsV1",
        "paths": paths,
    }
    return {**entry, "subresource": ask.subresource} if ask.subresource else entry


def _take_over(
    resource: Resource, ask: Ask, body: Json, live: Json, managers: list[Json], paths: set[ownership.Path]
) -> None:
    """409 where others own what would change; with force they lose it."""
    mine, conflicts = _entry(managers, ask.manager, "Apply", ask.subresource), []
    wanted, there = ownership.owned_part(body), ownership.owned_part(live)
    for other in managers:
        if other is mine:
            continue
        hit = {
            path
            for path in paths & other["paths"]
            if not path[-1].startswith("k:")
            and ownership.value_at(wanted, resource.definition, path)
            != ownership.value_at(there, resource.definition, path)
        }
        if ask.force:
            other["paths"] -= hit
            continue
        using = f" using {other['apiVersion']}" if other["operation"] == "Update" else ""
        told = f'conflict with "{other["manager"]}"{using}'
        conflicts += [cause(ownership.dotted(path), told, "FieldManagerConflict") for path in sorted(hit)]
    if conflicts:
        count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
        listed = ", ".join(f"{each['message']}: {each['field']}" for each in conflicts)
        raise Refusal(409, "Conflict", f"Apply failed with {count}: {listed}", conflicts)


def _owners_after(resource: Resource, new: Json, old: Json | None, ask: Ask) -> list[Json]:
    """After an update: who changed a field owns it."""
    definition = resource.definition
    wanted, there = ownership.owned_part(new), ownership.owned_part(old) if old else {}
    now, before = ownership.field_set(wanted, definition), ownership.field_set(there, definition)
    changed = {
        path
        for path in now
        if path not in before
        or ownership.value_at(wanted, definition, path) != ownership.value_at(there, definition, path)
    }
    managers = _managers(copy.deepcopy(old)) if old else []
    mine = _entry(managers, ask.manager, "Update", ask.subresource)
    for each in managers:
        each["paths"] -= (before - now) | (changed if each is not mine else set())
    if mine:
        mine["paths"] |= changed
    elif changed:
        managers.append(_new_entry(resource, ask, "Update", changed))
    return managers


def _unknown_fields(resource: Resource, new: Json, ask: Ask) -> list[str]:
    unknown = [f'unknown field "{path}"' for path in schema.prune(new, resource.definition)]
    if unknown and ask.validation == "Strict":
        head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise Refusal(400, "BadRequest", f"{head}: strict decoding error: {', '.join(unknown)}")
    return unknown if ask.validation == "Warn" else []


def _with_server_fields(resource: Resource, key: tuple[str, str], new: Json, old: Json | None, ask: Ask) -> Json:
    """What only the server sets stays as it was; status changes through its subresource alone."""
    if resource.has_status and ask.subresource == "status" and old:
        new = {**copy.deepcopy(old), **({"status": new["status"]} if "status" in new else {})}
    elif resource.has_status and old and "status" in old:
        new["status"] = copy.deepcopy(old["status"])
    elif resource.has_status and resource.definition:
        new.pop("status", None)
    metadata = new.setdefault("metadata", {})
    metadata |= {"name": key[1], **({"namespace": key[0]} if key[0] else {})}
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp"):
        if old and name in old["metadata"]:
            metadata[name] = old["metadata"][name]
        else:
            metadata.pop(name, None)
    return new


def _bad_name(name: str) -> Json:
    rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
    return cause("metadata.name", f'Invalid value: "{name}": {rule}')


def _spec_of(document: Json) -> Json:
    return {key: value for key, value in document.items() if key not in ("apiVersion", "metadata", "status")}


def _same(new: Json, old: Json) -> bool:
    """Equal but for resourceVersion and the times of managers: then a write changes nothing."""

    def comparable(document: Json) -> tuple[Any, ...]:
        metadata = dict(document["metadata"])
        metadata.pop("resourceVersion", None)
        managers = [{k: v for k, v in each.items() if k != "time"} for each in metadata.pop("managedFields", [])]
        return _spec_of(document), document.get("status"), metadata, managers

    return comparable(new) == comparable(old)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
