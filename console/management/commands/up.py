"""`up`: everything in the foreground, until Ctrl-C (console.embedded.supervisor)."""

from argparse import ArgumentParser
from typing import Any

from console.embedded.options import add_up_options
from console.embedded.supervisor import up
from console.management.base import BerthCommand


class Command(BerthCommand):
    """manage.py runs `up` without Django; this class lists it in `help` and serves `call_command`."""

    help = "Runs everything in the foreground: database, broker, web, worker, beat, and a demo fleet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--port and --slurm."""
        add_up_options(parser)

    def perform(self, **options: Any) -> int:
        """Runs until it is told to stop."""
        return up(options["port"], options["slurm"])
