"""How is a cluster kept as a folder of files? (whole files, one atomic replacement per step, a git history)

DIR/CLUSTER/ holds the files of the cluster's kind; whatever else lies there is left alone. A step changes one object,
hence one file: it is written beside, made durable, and renamed over the old one, so that a reader and a crash see the
state before or after a step and nothing between. The history is a convenience: losing a commit loses no state, and
what a hand changed is committed as it was found before it is put right.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from console.drivers.base import MOST_BYTES, Applied, DriverError, Endpoint, Ping
from console.drivers.credentials import Credentials
from console.drivers.file_history import History
from console.drivers.file_image import file_names, with_step
from scheduling.dialects import DialectError, dialect
from scheduling.plan import Step

_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")


class FolderOfFiles:
    """A Driver whose cluster is a folder. `credentials` are not needed: the folder's own rights decide."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials) -> None:
        if not endpoint.dir or not _CLUSTER.match(endpoint.cluster):
            raise DriverError("refused", f"{endpoint.cluster!r} needs a folder, and a name that can be a folder's")
        self._endpoint = endpoint
        self._folder = Path(endpoint.dir) / endpoint.cluster
        self._names = file_names(endpoint.kind)
        self._history = History(self._folder, self._names)

    def ping(self) -> Ping:
        """Whether the folder can be written."""
        began = time.monotonic()
        try:
            self._make_folder()
        except DriverError as error:
            return Ping(False, "", error.sentence, 0)
        ok = os.access(self._folder, os.W_OK | os.X_OK)
        told = f"{self._folder} can be written" if ok else f"{self._folder} cannot be written by this user"
        return Ping(ok, "files", told, round((time.monotonic() - began) * 1000))

    def read(self) -> Mapping[str, Any]:
        """What the dialect reads out of the files; a folder without them is a cluster without objects."""
        self._make_folder()
        try:
            return dialect(self._endpoint.kind).parse_files(self._texts())
        except DialectError as error:
            raise DriverError("refused", f"a file of {self._endpoint.cluster} cannot be read: {error}") from None

    def read_inventory(self) -> Mapping[str, str]:
        """Nobody reports nodes in a folder of files: they are imported."""
        told = f"{self._endpoint.cluster} is a folder of files and reports no nodes: use import_fleet"
        raise DriverError("refused", told)

    def apply(self, step: Step) -> Applied:
        """Write the files as they are after the step. Safe to kill at any instant, and to do twice."""
        self._make_folder()
        with self._alone():
            before = self._texts()
            found = self._history.keep("Found as changed outside Berth, or left by a write that was cut short")
            try:
                after = with_step(self._endpoint.kind, self._endpoint.cluster, before, step)
            except DialectError as error:
                raise DriverError("refused", f"a file of {self._endpoint.cluster} cannot be read: {error}") from None
            changed = [name for name in self._names if after.get(name, "") != before.get(name)]
            for name in changed:
                self._replace(name, after.get(name, ""))
            told = f"{step.verb} {step.object_class} {step.name}"
            kept = self._history.keep(told)
        lines = [*(f"wrote {name}" for name in changed), *filter(None, (found, kept))]
        return Applied(True, "\n".join(lines), f"{told}: written to {', '.join(changed) or 'no file'}")

    # The folder

    def _make_folder(self) -> None:
        """DIR must be there or be new in its parent: a share that is not mounted is no empty cluster."""
        root = self._folder.parent
        try:
            if root.parent.is_dir():
                root.mkdir(exist_ok=True)
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            told = f"the folder {root} of {self._endpoint.cluster} is not there: {error.strerror}"
            raise DriverError("unreachable", told, retryable=True) from None

    def _texts(self) -> dict[str, str]:
        texts = {}
        for name in self._names:
            try:
                with (self._folder / name).open("rb") as file:
                    content = file.read(MOST_BYTES + 1)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise DriverError("unreachable", f"{name} cannot be read: {error.strerror}", retryable=True) from None
            if len(content) > MOST_BYTES:
                raise DriverError("partial", f"{name} is larger than {MOST_BYTES} bytes; nothing of it is used")
            texts[name] = content.decode(errors="replace")
        return texts

    def _replace(self, name: str, text: str) -> None:
        """One file, durable before it is visible, and visible all at once."""
        path = self._folder / name
        draft = path.with_name(f".{path.name}.new")
        try:
            path.parent.mkdir(exist_ok=True)
            with draft.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            _sync_folder(path.parent)
        except OSError as error:
            raise DriverError("unreachable", f"{name} cannot be written: {error.strerror}", retryable=True) from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time; the kernel lets go of the lock when its holder dies."""
        with (self._folder / ".berth.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DriverError("refused", f"another push writes {self._folder} now", retryable=True) from None
            yield


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot; the rename is atomic all the same
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
