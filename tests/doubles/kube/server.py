"""How does the double answer over HTTP? (paths, verbs, tokens, pages, injected faults)"""

import base64
import copy
import fnmatch
import json
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from tests.doubles.kube.answers import Json, Refusal
from tests.doubles.kube.store import Ask, Resource, Store, check_preconditions

_VERBS = ["create", "delete", "get", "list", "patch", "update"]
_PATCHES = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
VERSION = "v1.36.2"


@dataclass
class Fault:
    """What goes wrong next: for `times` requests whose "VERB /path" matches `pattern`.

    `hang` is waited for before the answer (no answer at all until it is set); `drop` closes the connection.
    """

    pattern: str
    times: int
    status: int = 0
    drop: bool = False
    hang: threading.Event | None = None


class KubeServer(ThreadingHTTPServer):
    """The listening socket with what its handlers share."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, store: Store, tokens: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store, self.tokens = store, tokens
        self.faults: list[Fault] = []
        self.requests: list[str] = []

    def next_fault(self, asked: str) -> Fault | None:
        """The fault that hits this request, used up by one."""
        with self.store.lock:
            self.requests.append(asked)
            for fault in self.faults:
                if fault.times > 0 and fnmatch.fnmatch(asked, fault.pattern):
                    fault.times -= 1
                    return fault
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is a fault of the double and must be seen."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request, read apart."""

    verb: str
    path: str
    query: dict[str, str]
    content_type: str
    raw: bytes
    agent: str

    def body(self) -> Json:
        try:
            found = yaml.safe_load(self.raw) if "yaml" in self.content_type else json.loads(self.raw)
        except (ValueError, yaml.YAMLError) as error:
            raise Refusal(400, "BadRequest", f"error decoding: {error}") from None
        if not isinstance(found, dict):
            raise Refusal(400, "BadRequest", "the body is no object")
        return found

    def ask(self, subresource: str, manager: str | None = None) -> Ask:
        return Ask(
            manager=self.query.get("fieldManager", self.agent) if manager is None else manager,
            subresource=subresource,
            dry_run="dryRun" in self.query,
            force=self.query.get("force") == "true",
            validation=self.query.get("fieldValidation", "Warn"),
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: KubeServer

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the requests are kept in the server."""

    def _answer(self) -> None:
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = _Asked(
            self.command,
            url.path,
            dict(parse_qsl(url.query, keep_blank_values=True)),
            (self.headers.get("Content-Type") or "").split(";")[0],
            raw,
            (self.headers.get("User-Agent") or "unknown").split("/")[0],
        )
        warnings: list[str] = []
        try:
            if not self._survives(self.server.next_fault(f"{asked.verb} {asked.path}")):
                return
            self._check_token(asked)
            with self.server.store.lock:
                code, body, warnings = _Router(self.server.store, asked).answer()
        except Refusal as refusal:
            code, body = refusal.code, refusal.body
        self._send(code, body, warnings)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def _survives(self, fault: Fault | None) -> bool:
        if fault is None:
            return True
        if fault.hang is not None:
            fault.hang.wait(60)
        if fault.drop:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return False
        if fault.status:
            more = {"retryAfterSeconds": 1} if fault.status == 429 else {}
            raise Refusal(fault.status, "InternalError", "injected", **more)
        return True

    def _check_token(self, asked: _Asked) -> None:
        tokens = self.server.tokens
        if not tokens or asked.path in ("/version", "/healthz", "/readyz", "/livez"):
            return
        given = self.headers.get("Authorization") or ""
        if not given:
            told = f'forbidden: User "system:anonymous" cannot get path "{asked.path}"'
            raise Refusal(403, "Forbidden", told)
        role = tokens.get(given.removeprefix("Bearer "))
        if role is None:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        if role == "ro" and asked.verb != "GET":
            raise Refusal(403, "Forbidden", f'forbidden: User "reader" cannot {asked.verb.lower()} path "{asked.path}"')

    def _send(self, code: int, body: Json, warnings: list[str]) -> None:
        text = json.dumps(body).encode()
        with suppress(ConnectionError):
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            for warning in warnings:
                self.send_header("Warning", f"299 - {json.dumps(warning)}")
            self.end_headers()
            self.wfile.write(text)


class _Router:
    """One request against the store, which is locked meanwhile."""

    def __init__(self, store: Store, asked: _Asked) -> None:
        self.store, self.asked = store, asked

    def answer(self) -> tuple[int, Json, list[str]]:
        parts = [unquote(part) for part in self.asked.path.strip("/").split("/")]
        if parts[0] in ("healthz", "readyz", "livez", "version"):
            return 200, {"major": "1", "minor": "36", "gitVersion": VERSION}, []
        if parts == ["apis"]:
            return 200, self._groups(), []
        if parts == ["openapi", "v3"]:
            found = {f"apis/{group}/{version}": {} for group, version, _ in self.store.resources if group}
            return 200, {"paths": found}, []
        if parts[0] == "api" and len(parts) > 1:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 2:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise _nothing_here()
        if not rest:
            return 200, self._kinds(group, version), []
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = self.store.resources.get((group, version, rest[0]))
        subresource = rest[2] if len(rest) > 2 else ""
        if resource is None or (subresource and not (subresource == "status" and resource.has_status)):
            raise _nothing_here()
        if len(rest) == 1:
            return self._collection(resource, namespace)
        return self._one(resource, (namespace, rest[1]), subresource)

    def _groups(self) -> Json:
        versions: dict[str, set[str]] = {}
        for group, version, _ in self.store.resources:
            if group:
                versions.setdefault(group, set()).add(version)
        listed = [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{each}", "version": each} for each in sorted(found)],
            }
            for group, found in versions.items()
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}

    def _kinds(self, group: str, version: str) -> Json:
        found = [each for (g, v, _), each in self.store.resources.items() if (g, v) == (group, version)]
        if not found:
            raise _nothing_here()
        listed = [{"name": r.plural, "namespaced": r.namespaced, "kind": r.kind, "verbs": _VERBS} for r in found]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": found[0].api_version,
            "resources": listed,
        }

    def _collection(self, resource: Resource, namespace: str) -> tuple[int, Json, list[str]]:
        if self.asked.verb == "GET":
            return 200, self._list(resource, namespace), []
        if self.asked.verb != "POST":
            raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        self._check_namespace(resource, namespace)
        body = self.asked.body()
        if body.get("kind") not in (None, resource.kind):
            raise Refusal(400, "BadRequest", f"the object provided is unrecognized (must be of type {resource.kind})")
        name = str((body.get("metadata") or {}).get("name", ""))
        if (namespace, name) in self.store.table(resource):
            told = f"{resource.named(name)} already exists"
            raise Refusal(409, "AlreadyExists", told, name=name, group=resource.group, kind=resource.plural)
        made, warnings = self.store.write(resource, (namespace, name), body, None, self.asked.ask(""))
        return 201, _shown(resource, made), warnings

    def _list(self, resource: Resource, namespace: str) -> Json:
        query = self.asked.query
        found = [
            _shown(resource, document)
            for key, document in sorted(self.store.table(resource).items())
            if (not namespace or key[0] == namespace) and _is_selected(document, query)
        ]
        first = int(base64.b64decode(query["continue"])) if query.get("continue") else 0
        most = int(query.get("limit") or 0) or len(found)
        metadata: Json = {"resourceVersion": str(self.store.version)}
        if first + most < len(found):
            metadata["continue"] = base64.b64encode(str(first + most).encode()).decode()
            metadata["remainingItemCount"] = len(found) - first - most
        kind = f"{resource.kind}List"
        return {
            "apiVersion": resource.api_version,
            "kind": kind,
            "metadata": metadata,
            "items": found[first : first + most],
        }

    def _one(self, resource: Resource, key: tuple[str, str], subresource: str) -> tuple[int, Json, list[str]]:
        old = self.store.table(resource).get(key)
        asked, verb = self.asked, self.asked.verb
        if verb == "DELETE":
            wanted = (asked.body() if asked.raw else {}).get("preconditions") or {}
            left = self.store.delete(resource, key, wanted, "dryRun" in asked.query)
            return 200, left if left.get("kind") == "Status" else _shown(resource, left), []
        if verb == "PATCH" and asked.content_type == "application/apply-patch+yaml":
            self._check_namespace(resource, key[0])
            applied = self._apply(resource, key, old, subresource)
            return 201 if old is None else 200, _shown(resource, applied), []
        if old is None:
            raise resource.missing(key[1])
        if verb == "GET":
            return 200, _shown(resource, old), []
        if verb == "PUT":
            body = asked.body()
            check_preconditions(resource, key[1], body, old, needs_version=True)
        elif asked.content_type == "application/merge-patch+json" or (
            asked.content_type == "application/strategic-merge-patch+json" and resource.definition is None
        ):
            patch = asked.body()
            check_preconditions(resource, key[1], patch, old)
            body = _merge_patched(copy.deepcopy(old), patch)
        else:
            told = f"the body of the request was in an unknown format - accepted media types include: {_PATCHES}"
            raise Refusal(415, "UnsupportedMediaType", told)
        written, warnings = self.store.write(resource, key, body, old, asked.ask(subresource))
        return 200, _shown(resource, written), warnings

    def _apply(self, resource: Resource, key: tuple[str, str], old: Json | None, subresource: str) -> Json:
        body = self.asked.body()
        if (body.get("apiVersion"), body.get("kind")) != (resource.api_version, resource.kind):
            told = f"invalid object type: {body.get('apiVersion')}, Kind={body.get('kind')}"
            raise Refusal(400, "BadRequest", told)
        name = (body.get("metadata") or {}).get("name")
        if name and name != key[1]:
            told = f"the name of the object ({name}) does not match the name on the URL ({key[1]})"
            raise Refusal(400, "BadRequest", told)
        ask = self.asked.ask(subresource, manager=self.asked.query.get("fieldManager", ""))
        return self.store.apply(resource, key, body, old, ask)

    def _check_namespace(self, resource: Resource, namespace: str) -> None:
        namespaces = self.store.table(self.store.resources["", "v1", "namespaces"])
        if resource.namespaced and ("", namespace) not in namespaces:
            told = f'namespaces "{namespace}" not found'
            raise Refusal(404, "NotFound", told, name=namespace, kind="namespaces")


def _nothing_here() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource")


def _shown(resource: Resource, document: Json) -> Json:
    return {**copy.deepcopy(document), "apiVersion": resource.api_version, "kind": resource.kind}


def _is_selected(document: Json, query: dict[str, str]) -> bool:
    """labelSelector (k, !k, k=v, k!=v) and fieldSelector on name, namespace and spec.nodeName."""
    metadata = document["metadata"]
    labels = metadata.get("labels") or {}
    for rule in filter(None, (query.get("labelSelector") or "").split(",")):
        key, differs, value = rule.partition("!=")
        if differs:
            fits = labels.get(key) != value
        elif "=" in rule:
            key, _, value = rule.replace("==", "=").partition("=")
            fits = labels.get(key) == value
        else:
            fits = (rule.lstrip("!") in labels) != rule.startswith("!")
        if not fits:
            return False
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", ""),
        "spec.nodeName": (document.get("spec") or {}).get("nodeName", ""),
    }
    rules = (
        rule.replace("==", "=").partition("=") for rule in filter(None, (query.get("fieldSelector") or "").split(","))
    )
    return all(fields.get(key) == value for key, _, value in rules)


def _merge_patched(there: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = there if isinstance(there, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge_patched(result.get(key), value)
    return result
