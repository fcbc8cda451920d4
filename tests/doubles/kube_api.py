"""A Kubernetes API server for tests: real HTTP on loopback, with Kueue's kinds. (KubeApi)

    with KubeApi() as api:
        api.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gb001"}})
        endpoint = Endpoint("luna", "kueue", "kubernetes", kubeconfig=str(api.write_kubeconfig(folder / "config")))

It answers as a recorded real server does where a client can see it: server-side apply with managers and conflicts,
resourceVersion and uid preconditions, dry runs, pages, webhook and schema refusals. Where real CRDs lie beside the
checkout they are served; else the built-in definitions of the kinds that Berth writes.
"""

import copy
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Self

import yaml

from tests.doubles.kube import kueue
from tests.doubles.kube.answers import Json
from tests.doubles.kube.server import Fault, KubeServer
from tests.doubles.kube.store import Resource, Store
from tests.parts import SHARED

WRITER, READER = "token-that-writes", "token-that-reads"
REAL_DEFINITIONS = SHARED / "contracts" / "crds" / "kueue"


class KubeApi:
    """The double, started by `with` or start(); `url` is its address.

    With `tokens` it wants one of WRITER and READER. `definitions` are files of CustomResourceDefinitions.
    """

    def __init__(self, *, tokens: bool = True, definitions: Iterable[Path] | None = None) -> None:
        self._store = Store()
        for resource in kueue.definitions():
            self._store.serve(resource)
        for file in sorted(REAL_DEFINITIONS.glob("*.yaml")) if definitions is None else definitions:
            for document in _definitions(file):
                self._store.serve_definition(document)
        self._store.mutating.append(kueue.refuse_unreadable)
        self._store.validating += [kueue.refuse_wrong_rules, kueue.refuse_impossible_quotas]
        self._server = KubeServer(self._store, {WRITER: "rw", READER: "ro"} if tokens else {})

    def start(self) -> Self:
        """Listen. The socket is open from the constructor on, so no request can come too early."""
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop listening and let go of every request that hangs."""
        for fault in self._server.faults:
            if fault.hang is not None:
                fault.hang.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[str]:
        """Every request so far, as "VERB /path"."""
        return list(self._server.requests)

    def write_kubeconfig(self, path: Path, token: str = WRITER) -> Path:
        """A kubeconfig with one context, "double"."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "double",
            "clusters": [{"name": "double", "cluster": {"server": self.url}}],
            "users": [{"name": "berth", "user": {"token": token}}],
            "contexts": [{"name": "double", "context": {"cluster": "double", "user": "berth"}}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    # What a test puts there, finds there and lets go wrong

    def add(self, document: Json) -> Json:
        """Put an object there as it is, or over what is there; nothing is checked."""
        with self._store.lock:
            resource = self._resource(document["apiVersion"], document["kind"])
            key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
            there = self._store.table(resource).get(key, {"metadata": {}})
            kept = {k: v for k, v in there["metadata"].items() if k in ("uid", "creationTimestamp", "managedFields")}
            new = copy.deepcopy(document)
            new["metadata"] = {**kept, **new["metadata"]}
            return copy.deepcopy(self._store.put(resource, new))

    def get(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """The object as it stands, None when there is none."""
        with self._store.lock:
            for resource in self._store.resources.values():
                if resource.kind == kind and (namespace, name) in self._store.table(resource):
                    return copy.deepcopy(self._store.table(resource)[namespace, name])
        return None

    def names(self, kind: str) -> list[str]:
        """The names of all objects of a kind, sorted."""
        with self._store.lock:
            tables = [self._store.table(each) for each in self._store.resources.values() if each.kind == kind]
            return sorted({name for table in tables for _, name in table})

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Take an object away behind everybody's back."""
        with self._store.lock:
            for resource in self._store.resources.values():
                if resource.kind == kind:
                    self._store.table(resource).pop((namespace, name), None)

    def fail_next(self, pattern: str = "*", times: int = 1, *, status: int = 0, drop: bool = False) -> None:
        """Let the next requests whose "VERB /path" matches fail: with a status, or by a closed connection."""
        self._server.faults.append(Fault(pattern, times, status, drop))

    def hang_next(self, pattern: str = "*", times: int = 1) -> threading.Event:
        """Let the next matching requests wait until the returned event is set."""
        released = threading.Event()
        self._server.faults.append(Fault(pattern, times, hang=released))
        return released

    def _resource(self, api_version: str, kind: str) -> Resource:
        for resource in self._store.resources.values():
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise KeyError(f"{api_version} {kind}")


@cache
def _definitions(file: Path) -> tuple[Json, ...]:
    """The CustomResourceDefinitions of a file; read once, for they are long."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = yaml.load_all(file.read_text(), Loader=loader)
    return tuple(each for each in found if (each or {}).get("kind") == "CustomResourceDefinition")
