"""`dump FILE`: a copy of everything that the database holds, in one file."""

import os
import subprocess
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from console.embedded.postgres import client_program
from console.management.base import BerthCommand


class Command(BerthCommand):
    """Writes PostgreSQL's own archive format; `restore` reads it."""

    help = "Backs up everything into FILE. Cluster credentials are not in the database and not in the file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", type=Path, metavar="FILE")

    def perform(self, **options: Any) -> None:
        """Writes beside FILE and renames, so that a dump that fails leaves an older one alone."""
        target: Path = options["file"]
        fresh = target.with_name(target.name + ".new")
        url = os.environ.get("DATABASE_OWNER_URL") or settings.DATABASE_URL
        command = [str(client_program("pg_dump")), "--format=custom", "--no-owner", "--file", str(fresh), url]
        try:
            fresh.touch(mode=0o600)  # it holds people's names and password hashes
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CommandError(f"pg_dump failed: {done.stderr.strip()}")
            fresh.rename(target)
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}") from error
        finally:
            fresh.unlink(missing_ok=True)
        self.stdout.write(f"Wrote {target} ({target.stat().st_size:,} bytes).")
