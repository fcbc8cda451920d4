"""What secret does a reference stand for? (read at the moment of use, kept nowhere, shown never)

`env:NAME` is a variable of the worker. `file:PATH` is a file below BERTH_CREDENTIALS: relative, or absolute and inside;
any other absolute path must have been registered by `connect`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from console.drivers.base import DriverError

_LARGEST_SECRET = 1024 * 1024
_WORTH_HIDING = 6  # shorter texts would make holes in every sentence


class Credentials:
    """The secrets that one worker may read: a folder, its environment, and the registered files."""

    def __init__(
        self, folder: Path | None = None, environ: Mapping[str, str] | None = None, registered: Iterable[str] = ()
    ) -> None:
        self._folder = folder.resolve() if folder else None
        self._environ = os.environ if environ is None else environ
        self._registered = frozenset(os.path.abspath(path) for path in registered)
        self._seen: set[str] = set()

    def with_registered(self, paths: Iterable[str]) -> "Credentials":
        """The same, for an endpoint that may use these files too."""
        return Credentials(self._folder, self._environ, self._registered | set(paths))

    def secret(self, reference: str) -> str:
        """The value behind a reference. Raises DriverError("credentials") whose sentence names the reference only."""
        scheme, _, rest = reference.partition(":")
        if scheme == "env" and rest:
            if not self._environ.get(rest):
                raise DriverError("credentials", f"the variable {rest} named by the endpoint is not set")
            value = self._environ[rest]
        elif scheme == "file" and rest:
            value = self.text(self.path(rest))
        else:
            raise DriverError("credentials", "a credential is named as env:NAME or file:PATH")
        value = value.strip()
        self.hide(value)
        return value

    def hide(self, value: str) -> None:
        """Never let this text through scrubbed()."""
        self._seen.update(part for part in (value, *value.split()) if len(part) >= _WORTH_HIDING)

    def path(self, path: str) -> Path:
        """The file that a path means, if this worker may use it. Raises DriverError("credentials")."""
        asked = Path(path)
        if not asked.is_absolute():
            if self._folder is None:
                raise DriverError("credentials", f"BERTH_CREDENTIALS is not set, so {path} names no file")
            asked = self._folder / asked
        real = asked.resolve()
        inside = self._folder is not None and real.is_relative_to(self._folder)
        if not inside and os.path.abspath(asked) not in self._registered:
            raise DriverError("credentials", f"{path} lies outside BERTH_CREDENTIALS and was not registered by connect")
        if not real.is_file():
            raise DriverError("credentials", f"the credential file {path} does not exist")
        return real

    def text(self, path: Path) -> str:
        """The content of a file that path() allowed; bounded, and never part of an error."""
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST_SECRET + 1)
        except OSError as error:
            raise DriverError("credentials", f"the credential file {path} cannot be read: {error.strerror}") from None
        if len(content) > _LARGEST_SECRET:
            raise DriverError("credentials", f"the credential file {path} is larger than {_LARGEST_SECRET} bytes")
        return content.decode(errors="replace")

    def scrubbed(self, text: str) -> str:
        """The text without any secret that was handed out, and without what looks like a token."""
        for value in sorted(self._seen, key=len, reverse=True):
            text = text.replace(value, "***")
        return _TOKEN.sub(lambda match: f"{match[1]}***", text)


_TOKEN = re.compile(r"(?i)(bearer\s+|token[=:]\s*|password[=:]\s*|SLURM_JWT=)[^\s;,\"'\\]+")
