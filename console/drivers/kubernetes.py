"""How is a Kubernetes cluster read and written? (one small client: list, apply, patch, delete)

Objects of ours go by server-side apply as field manager `berth`. What a hand changed in our fields is taken back; what
another applier keeps claiming is foreign and left. Nodes are merged with their resourceVersion, because `taints` is one
atomic list; a delete carries the uid of what was read.
"""

import json
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from console.drivers import kube_access
from console.drivers.base import MOST_BYTES, Applied, DriverError, Endpoint, Ping, shortened
from console.drivers.credentials import Credentials
from console.drivers.kube_errors import conflicting_managers, refusal
from scheduling.dialects import dialect
from scheduling.dialects.kueue import node_patch
from scheduling.plan import Step

FIELD_MANAGER = "berth"
MANAGED_BY = "app.kubernetes.io/managed-by"
PAGE = 500
_MOST_OBJECTS = 200_000
_TRIES = 4
_APPLY, _MERGE, _JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json"
Document = dict[str, Any]


class KubernetesApi:
    """A Driver for every scheduler that is configured by objects of a Kubernetes API."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, seconds: float = kube_access.SECONDS) -> None:
        self._endpoint, self._credentials, self._seconds = endpoint, credentials, seconds
        self._paths: Mapping[str, str] = dialect(endpoint.kind).reads
        self._client = kube_access.connect(endpoint, credentials, seconds)
        weakref.finalize(self, self._client.close)  # connections live as long as the driver of one push

    def ping(self) -> Ping:
        """The server's version, and whether Berth may list the first kind that it manages."""
        began = time.monotonic()
        kind, path = next(iter(self._paths.items()))
        try:
            version = str(self._ask("GET", "/version", "ask for the version").get("gitVersion", "unknown"))
            self._ask("GET", path, f"list {kind}", params={"limit": "1"})
        except DriverError as error:
            return Ping(False, "", error.sentence, _milliseconds_since(began))
        return Ping(True, version, f"Kubernetes {version} answers", _milliseconds_since(began))

    def read(self) -> Mapping[str, list[Document]]:
        """Every object of each kind in the dialect's `reads`, complete or not at all."""
        return {kind: list(self._list(kind, path)) for kind, path in self._paths.items()}

    def read_inventory(self) -> Mapping[str, str]:
        """The nodes, as one NodeList."""
        nodes = list(self._list("Node", "/api/v1/nodes"))
        return {"nodes.json": json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": nodes})}

    def apply(self, step: Step) -> Applied:
        """Send one step. Raises DriverError("foreign") where the object, or its fields, belong to somebody else."""
        manifest = step.native
        if not isinstance(manifest, dict) or manifest.get("kind") not in self._paths:
            raise DriverError("refused", f"the step on {step.object_class} {step.name} holds no object of ours")
        if manifest["kind"] == "Node":
            return self._patch_node(step, manifest)
        if step.verb == "delete":
            return self._delete(step, manifest)
        return self._apply(step, manifest)

    # Writing

    def _apply(self, step: Step, manifest: Document) -> Applied:
        path, what = self._path_of(manifest), f"write {step.object_class} {step.name}"
        there = self._find(path, what)
        if there is not None:
            self._refuse_foreign(step, manifest, there)
            uid = there["metadata"]["uid"]  # what we looked at is what we write, or the server says no
            manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}
        params = {"fieldManager": FIELD_MANAGER}
        code, answer = self._request("PATCH", path, what, params=params, body=manifest, content_type=_APPLY)
        if code == 409 and there is not None and not any(conflicting_managers(answer).values()):
            params["force"] = "true"  # hands edited fields of ours: take them back
            code, answer = self._request("PATCH", path, what, params=params, body=manifest, content_type=_APPLY)
        self._raise_refusal(what, code, answer)
        metadata = answer.get("metadata") or {}
        output = f"PATCH {path}: {code}, resourceVersion {metadata.get('resourceVersion', '?')}"
        if metadata.get("deletionTimestamp"):
            told = f"{step.object_class} {step.name} is being deleted; it is written again when it has gone"
            return Applied(False, output, told)
        return Applied(True, output, f"{step.verb} {step.object_class} {step.name}: sent")

    def _delete(self, step: Step, manifest: Document) -> Applied:
        path, what = self._path_of(manifest), f"delete {step.object_class} {step.name}"
        there = self._find(path, what)
        if there is None:
            return Applied(True, f"GET {path}: 404", f"{step.object_class} {step.name} has gone already")
        self._refuse_foreign(step, manifest, there)
        options = {"preconditions": {"uid": there["metadata"]["uid"]}, "propagationPolicy": "Background"}
        code, answer = self._request("DELETE", path, what, body=options, content_type=_JSON)
        if code != 404:
            self._raise_refusal(what, code, answer)
        held_by = (answer.get("metadata") or {}).get("finalizers") if code == 200 else None
        told = f"{step.object_class} {step.name}: deleted"
        if held_by:
            told = f"{step.object_class} {step.name} goes as soon as {', '.join(held_by)} lets it go"
        return Applied(True, f"DELETE {path}: {code}", told)

    def _patch_node(self, step: Step, manifest: Document) -> Applied:
        """Our label and our taint, on the node exactly as it was read; read again when somebody wrote in between."""
        path, what = self._path_of(manifest), f"mark Node {step.name}"
        for _ in range(_TRIES):
            there = self._find(path, what)
            if there is None:
                gone = step.verb == "delete"
                told = "has gone, and its mark with it" if gone else "is not there"
                return Applied(gone, f"GET {path}: 404", f"Node {step.name} {told}")
            patch = node_patch(there, manifest, step.verb)
            code, answer = self._request(
                "PATCH", path, what, params={"fieldManager": FIELD_MANAGER}, body=patch, content_type=_MERGE
            )
            if code != 409:
                self._raise_refusal(what, code, answer)
                return Applied(True, f"PATCH {path}: {code}", f"{step.verb} Node {step.name}: sent")
        told = f"Node {step.name} changed under each of {_TRIES} tries"
        raise DriverError("refused", told, retryable=True)

    def _refuse_foreign(self, step: Step, manifest: Document, there: Document) -> None:
        """An object under a name of ours is ours by its label, and by the installation that the step names."""
        labels = there["metadata"].get("labels") or {}
        wanted = (manifest["metadata"].get("labels") or {}).items()
        marks = {MANAGED_BY: FIELD_MANAGER} | {key: value for key, value in wanted if key.endswith("/installation")}
        if all(labels.get(key) == value for key, value in marks.items()):
            return
        managers = sorted({str(each.get("manager")) for each in there["metadata"].get("managedFields") or []})
        told = f" (written by {', '.join(managers)})" if managers else ""
        raise DriverError(
            "foreign", f"{step.object_class} {step.name} belongs to somebody else{told}: it is left alone"
        )

    # Asking

    def _path_of(self, manifest: Document) -> str:
        metadata = manifest["metadata"]
        collection = self._paths[manifest["kind"]]
        parts = [metadata["name"], metadata.get("namespace", "")]
        if any("/" in part or part in (".", "..") for part in parts) or not parts[0]:
            raise DriverError("refused", f"{parts[0]!r} cannot be the name of an object")
        if parts[1]:
            above, _, plural = collection.rpartition("/")
            collection = f"{above}/namespaces/{parts[1]}/{plural}"
        return f"{collection}/{parts[0]}"

    def _find(self, path: str, what: str) -> Document | None:
        code, answer = self._request("GET", path, what)
        if code == 404:
            return None
        self._raise_refusal(what, code, answer)
        return answer

    def _list(self, kind: str, path: str) -> Iterator[Document]:
        """All pages. A list whose token runs out in between is partial: nothing of it is used."""
        params = {"limit": str(PAGE)}
        seen = 0
        while True:
            code, answer = self._request("GET", path, f"list {kind}", params=params)
            if code == 404:
                raise DriverError(
                    "refused", f"{self._endpoint.cluster} knows no {kind}: is its scheduler installed? ({path})"
                )
            if code == 410:
                raise DriverError("partial", f"the list of {kind} changed too much while it was read", retryable=True)
            self._raise_refusal(f"list {kind}", code, answer)
            items = answer.get("items")
            if not isinstance(items, list):
                raise DriverError("partial", f"the list of {kind} has no items", retryable=True)
            seen += len(items)
            if seen > _MOST_OBJECTS:
                raise DriverError("partial", f"more than {_MOST_OBJECTS} objects of kind {kind}")
            yield from (_without_ballast(item, kind) for item in items)
            following = (answer.get("metadata") or {}).get("continue")
            if not following:
                return
            params["continue"] = following

    def _ask(self, verb: str, path: str, what: str, **more: Any) -> Document:
        code, answer = self._request(verb, path, what, **more)
        self._raise_refusal(what, code, answer)
        return answer

    def _raise_refusal(self, what: str, code: int, answer: Document) -> None:
        if not 200 <= code < 300:
            scrubbed = json.loads(self._credentials.scrubbed(json.dumps(answer)))
            raise refusal(self._endpoint.cluster, what, code, scrubbed)

    def _request(
        self,
        verb: str,
        path: str,
        what: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Document | None = None,
        content_type: str = "",
    ) -> tuple[int, Document]:
        """One request and its whole answer, within the limits of time and size."""
        cluster = self._endpoint.cluster
        headers = {"Accept": _JSON, "User-Agent": FIELD_MANAGER, **({"Content-Type": content_type} if body else {})}
        content = json.dumps(body).encode() if body else None
        try:
            with self._client.stream(verb, path, params=params, headers=headers, content=content) as response:
                raw = self._bounded(response, what)
                code = response.status_code
        except httpx.TimeoutException:
            told = f"{cluster} did not answer within {self._seconds:g} s ({what})"
            raise DriverError("timeout", told, retryable=True) from None
        except httpx.TransportError as error:
            raw_text = self._credentials.scrubbed(shortened(str(error)))
            raise DriverError(
                "unreachable", f"{cluster} cannot be reached ({what})", retryable=True, raw=raw_text
            ) from None
        try:
            answer = json.loads(raw) if raw else {}
        except ValueError:
            answer = {"message": shortened(raw[:500].decode(errors="replace"))} if code >= 400 else None
        if not isinstance(answer, dict):
            raise DriverError("partial", f"{cluster} did not answer with an object ({what})", retryable=True)
        return code, answer

    def _bounded(self, response: httpx.Response, what: str) -> bytes:
        deadline = time.monotonic() + 6 * self._seconds  # each wait is short; so is the sum of many
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            if len(content) > MOST_BYTES:
                raise DriverError("partial", f"an answer of more than {MOST_BYTES} bytes ({what})")
            if time.monotonic() > deadline:
                raise DriverError("timeout", f"{self._endpoint.cluster} answers too slowly ({what})", retryable=True)
        return bytes(content)


def _without_ballast(item: Document, kind: str) -> Document:
    """Nodes and pods without what nobody here reads: on 10,000 nodes it is most of the bytes."""
    if kind in ("Node", "Pod", "Workload"):
        item.get("metadata", {}).pop("managedFields", None)
    if kind == "Node":
        item.get("status", {}).pop("images", None)
    return item


def _milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
