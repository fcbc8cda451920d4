"""Is the database's schema the one of this code, and how does it become so?

Migrations run as the owner role in a process of their own: the supervisor never loads Django. A stamp beside the data
says which migrations an embedded database has, so that a warm start asks nobody.
"""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from console.embedded import roles
from console.embedded.errors import SetupError
from console.embedded.layout import CHECKOUT
from console.embedded.processes import python_environment

Run = Callable[[Sequence[str], dict[str, str]], "subprocess.CompletedProcess[str]"]

_APPS = ("allocations", "reservations", "console")
_ADVISORY_LOCK = 7_340_011  # two consoles on one external database: one migrates, the other waits


def fingerprint() -> str:
    """A hash of every migration: ours by their text, those of libraries by the lock file that pins them."""
    digest = hashlib.sha256((CHECKOUT / "requirements.lock").read_bytes())
    for app in _APPS:
        for path in sorted((CHECKOUT / app / "migrations").glob("*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def alone(command: Sequence[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Runs a command where nobody watches over processes (see ProcessTree.run for where somebody does)."""
    return subprocess.run(
        command,
        env=environment,
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )


def run_django(arguments: list[str], environment: dict[str, str], run: Run = alone) -> None:
    """Runs a Django command in a process of its own. Raises SetupError with what it said."""
    done = run([sys.executable, "-m", "django", *arguments], python_environment(environment))
    if done.returncode:
        raise SetupError(f"`{arguments[0]}` failed:\n{done.stdout}{done.stderr}".rstrip())


def bring_up_to_date(environment: dict[str, str], stamp: Path | None, run: Run = alone) -> bool:
    """Migrates as DATABASE_OWNER_URL and gives the web role its rights; False when `stamp` says that nothing is new."""
    wanted = fingerprint()
    if stamp and stamp.exists() and stamp.read_text() == wanted:
        return False
    web_url = environment["DATABASE_URL"]
    owner_url = environment.get("DATABASE_OWNER_URL") or web_url
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_ADVISORY_LOCK,))
        migrate = ["migrate", "--no-input", "--skip-checks", "--verbosity", "0"]
        run_django(migrate, {**environment, "DATABASE_URL": owner_url}, run)
        roles.grant_web(owner_url, web_url)
    if stamp:
        stamp.write_text(wanted)
    return True
