"""`restore FILE`: the database becomes what `dump` wrote, whatever it held before."""

import os
import subprocess
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

from console.embedded.postgres import client_program
from console.embedded.schema import bring_up_to_date
from console.management.base import BerthCommand

# A dump of an older Berth does not name the tables that came later, and those hold on to the ones it replaces.
_FORGET = """
DO $$ DECLARE found text; BEGIN
  FOR found IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
      WHERE schemaname = 'public' AND tableowner = current_user LOOP
    EXECUTE 'DROP TABLE IF EXISTS ' || found || ' CASCADE';
  END LOOP;
END $$
"""


class Command(BerthCommand):
    """Replaces everything in one transaction: a file that is broken changes nothing."""

    help = "Replaces everything in the database by what FILE (written by dump) holds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", type=Path, metavar="FILE")

    def perform(self, **options: Any) -> None:
        """Restores as the owner, migrates a dump of an older Berth, and gives the web role its rights again."""
        source: Path = options["file"]
        if not source.is_file():
            raise CommandError(f"there is no file {source}")
        web_url = settings.DATABASE_URL
        owner_url = os.environ.get("DATABASE_OWNER_URL") or web_url
        connections.close_all()
        _replace_everything(source, owner_url)
        bring_up_to_date({"DATABASE_URL": web_url, "DATABASE_OWNER_URL": owner_url}, stamp=None)
        self.stdout.write(f"Restored {source}.")


def _replace_everything(source: Path, owner_url: str) -> None:
    """Runs the archive's statements in one transaction, after everything that stood there is dropped in it."""
    with tempfile.NamedTemporaryFile(suffix=".sql") as script:  # mode 0600: it holds what the archive holds
        _run("pg_restore", "--clean", "--if-exists", "--no-owner", "--no-privileges", "--file", script.name, source)
        words = ("--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1", "--dbname", owner_url)
        _run("psql", *words, "--command", _FORGET, "--file", script.name)


def _run(program: str, *words: str | Path) -> None:
    command = [str(client_program(program)), *map(str, words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"nothing was changed: {program} failed: {done.stderr.strip()}")
