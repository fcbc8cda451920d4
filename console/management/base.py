"""What do all commands of Berth share? Their exit statuses, and a usage error that is 64 in each of them.

A command inherits from `BerthCommand` and implements `perform`, which returns its exit status (None is 0). A wrong
command line, found by the parser or by `perform` (raise `UsageError`), exits with 64; a fault raises `CommandError`
with one sentence and exits with 1.
"""

import sys
from abc import abstractmethod
from typing import Any, NoReturn

from django.core.management import base
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.embedded.options import USAGE_ERROR


class UsageError(CommandError):
    """The command line asks for something that makes no sense; exits with 64."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, returncode=USAGE_ERROR)


class UsageParser(CommandParser):
    """Django's parser, with 64 where argparse has 2, which is an answer of some commands."""

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and exits; called from Python it raises UsageError instead."""
        if not self.called_from_command_line:
            raise UsageError(message)
        self.print_usage(sys.stderr)
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\n")


def exit_with_usage_status() -> None:
    """Gives every command, the library's too, the parser above.

    BaseCommand.create_parser offers no way to choose the class; it looks the name up in its module at each call.
    """
    base.CommandParser = UsageParser  # type: ignore[misc]


class BerthCommand(BaseCommand):
    """A command whose `perform` returns its exit status."""

    requires_system_checks: Any = ()

    @abstractmethod
    def perform(self, **options: Any) -> int | None:
        """Does the work with the parsed options; returns the exit status."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Ends the process with a status other than 0 that `perform` returned."""
        if status := self.perform(**options):
            raise SystemExit(status)
