"""`restore FILE`: the database becomes what `dump` wrote, whatever it held before."""

import os
import subprocess
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

from console.embedded.postgres import client_program
from console.embedded.schema import bring_up_to_date
from console.management.base import BerthCommand


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
        program = str(client_program("pg_restore"))
        words = [
            "--clean",
            "--if-exists",
            "--no-owner",
            "--no-privileges",
            "--single-transaction",
            "--dbname",
            owner_url,
        ]
        done = subprocess.run([program, *words, str(source)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandError(f"nothing was changed: pg_restore failed: {done.stderr.strip()}")
        bring_up_to_date({"DATABASE_URL": web_url, "DATABASE_OWNER_URL": owner_url}, stamp=None)
        self.stdout.write(f"Restored {source}.")
