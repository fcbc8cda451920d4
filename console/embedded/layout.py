"""Where does everything that Berth keeps on this machine lie, and which account owns it?

BERTH_HOME (var/ in the checkout) holds the lock, the record of the running tree, logs, the broker's folder and
secrets. The database files lie there too, except where root runs below a folder that no other account can enter:
PostgreSQL refuses to run as root, so its files then go to /var/lib/berth/HASH.
"""

import hashlib
import os
import pwd
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from console.embedded.errors import SetupError

CHECKOUT = Path(__file__).resolve().parent.parent.parent
_SHARED_PARENT = Path("/var/lib/berth")
_SOCKET_PATH_LIMIT = 100  # bytes of sun_path: 108 on Linux, 104 on macOS, less what a server adds while it binds
_PLAIN_PATH = re.compile(r"[\w./-]+", re.ASCII)


def is_root() -> bool:
    """Whether this process runs as root."""
    return os.geteuid() == 0


def server_account() -> pwd.struct_passwd:
    """The account that runs PostgreSQL when Berth runs as root. It must be in the password file: initdb asks."""
    for name in (os.environ.get("BERTH_PG_USER"), "postgres", "nobody"):
        if name:
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
    raise SetupError("PostgreSQL does not run as root and there is no account postgres or nobody: set BERTH_PG_USER")


def is_reachable(path: Path, account: pwd.struct_passwd) -> bool:
    """Whether `account` may walk down to `path`, judged by the mode of each folder that exists."""
    for folder in (path, *path.parents):
        if not folder.exists():
            continue
        found = folder.stat()
        if found.st_uid == account.pw_uid:
            needed = stat.S_IXUSR
        elif found.st_gid == account.pw_gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not found.st_mode & needed:
            return False
    return True


@dataclass(frozen=True)
class Layout:
    """The folders of one installation; `home` and `database_home` exist once `make` has returned."""

    home: Path
    database_home: Path
    run: Path

    @classmethod
    def make(cls, home: Path) -> "Layout":
        """Makes the folders below `home` and settles where database files and sockets go."""
        home.mkdir(parents=True, exist_ok=True)
        home = home.resolve()
        tag = hashlib.sha256(str(home).encode()).hexdigest()[:10]
        database_home = home
        if is_root() and not is_reachable(home, server_account()):
            database_home = _SHARED_PARENT / tag
            database_home.mkdir(parents=True, exist_ok=True)
        (home / "logs").mkdir(exist_ok=True)
        return cls(home=home, database_home=database_home, run=_socket_folder(database_home / "run", tag))

    @property
    def is_split(self) -> bool:
        """Whether the database files lie outside `home`."""
        return self.home != self.database_home

    @property
    def logs(self) -> Path:
        """One file per process."""
        return self.home / "logs"

    @property
    def lock(self) -> Path:
        """Held (flock) by the one process that runs servers on this home."""
        return self.home / "lock"

    @property
    def record(self) -> Path:
        """What the holder of the lock runs: see console.embedded.record."""
        return self.home / "running.json"

    @property
    def demo_passwords(self) -> Path:
        """The sign-ins of the demo people, mode 0600."""
        return self.home / "demo-passwords"


def _socket_folder(wanted: Path, tag: str) -> Path:
    """`wanted`, or a short plain folder where its name is too long for a socket or would need quoting in a URL."""
    folder = wanted
    if len(os.fsencode(wanted)) > _SOCKET_PATH_LIMIT - len("/pg/.s.PGSQL.5432") or not _PLAIN_PATH.fullmatch(
        str(wanted)
    ):
        folder = Path(tempfile.gettempdir()) / f"berth-{os.getuid()}-{tag}"
    # As root the folder is only walked through by the database's account; what lies inside is closed by itself.
    folder.mkdir(mode=0o711 if is_root() else 0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SetupError(f"{folder} belongs to another user: remove it, or set TMPDIR to a folder of yours")
    return folder


def default_home() -> Path:
    """BERTH_HOME, else var/ in the checkout."""
    given = os.environ.get("BERTH_HOME")
    return Path(given).expanduser() if given else CHECKOUT / "var"
