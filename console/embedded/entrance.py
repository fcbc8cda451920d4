"""Where does `manage.py COMMAND` go once .venv is there? To `up`, or to a Django command with a database to work on.

Exit statuses: 64 for every usage error (an unknown command, option or value) whichever command it is; 1 for a fault
that the sentence on standard error explains; the rest is the command's own.
"""

import os
import re
import sys
import sysconfig
from pathlib import Path

from console.embedded.errors import SetupError
from console.embedded.layout import CHECKOUT, Layout, default_home
from console.embedded.options import USAGE_ERROR, parse_up
from console.embedded.session import database_for

_NEED_NO_DATABASE = frozenset(
    {"help", "version", "check", "makemigrations", "collectstatic", "findstatic", "diffsettings", "bench", "soak"}
)
_HELP = frozenset({"-h", "--help", "--version"})
_AS_OWNER = frozenset({"migrate", "flush"})


def needs_database(arguments: list[str]) -> bool:
    """Whether a command line works on the database of this home; benchmarks and soak make throw-away ones."""
    name, *rest = arguments
    if name in _NEED_NO_DATABASE or name in _HELP or _HELP & set(rest):
        return False
    return not (name == "export" and "--demo" in rest)  # the demo export is one built-in value


def is_command(name: str) -> bool:
    """Whether some installed package brings a command of this name; asked before anything is started for it."""
    if not re.fullmatch(r"\w+", name, re.ASCII):
        return name in _HELP
    packages = Path(sysconfig.get_path("purelib"))
    folders = ("*/management/commands", "django/core/management/commands", "django/contrib/*/management/commands")
    places = [(CHECKOUT, folders[0]), *((packages, folder) for folder in folders)]
    return name in {"help", "version"} or any(any(root.glob(f"{folder}/{name}.py")) for root, folder in places)


def main(arguments: list[str]) -> int:
    """Runs one command line; its exit status."""
    if not arguments or not is_command(arguments[0]):
        print(
            f"manage.py: there is no command {' '.join(arguments[:1])!r}; `manage.py help` lists them", file=sys.stderr
        )
        return USAGE_ERROR
    if arguments[0] == "up" and not _HELP & set(arguments):
        from console.embedded.supervisor import up  # never loads Django: it stays small for as long as it runs

        chosen = parse_up(arguments[1:])
        return up(chosen.port, chosen.slurm)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        layout = Layout.make(default_home())
        os.environ["BERTH_HOME"] = str(layout.home)
        if not needs_database(arguments):
            return _run_django(arguments)
        with database_for(arguments[0], layout):
            return _run_django(arguments)
    except (SetupError, OSError) as error:
        print(f"manage.py {arguments[0]}: {error}", file=sys.stderr)
        return 1


def _run_django(arguments: list[str]) -> int:
    if arguments[0] in _AS_OWNER and "DATABASE_OWNER_URL" in os.environ:
        os.environ["DATABASE_URL"] = os.environ["DATABASE_OWNER_URL"]
    from django.core.management import ManagementUtility

    from console.management.base import exit_with_usage_status

    exit_with_usage_status()
    ManagementUtility(["manage.py", *arguments]).execute()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
