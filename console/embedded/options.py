"""What may be written behind `manage.py up`, and how is a mistake in it answered?"""

import argparse
import os
from typing import NoReturn

USAGE_ERROR = 64  # EX_USAGE: the same in every command, never mixed up with an answer


class UsageParser(argparse.ArgumentParser):
    """An argument parser that exits with 64, not with argparse's 2, which is an answer of some commands."""

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and exits."""
        self.print_usage()
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\n")


def _port(word: str) -> int:
    if not (word.isascii() and word.isdigit() and 0 < int(word[:6]) < 65_536):
        raise argparse.ArgumentTypeError(f"{word!r} is not a number between 1 and 65535")
    return int(word)


def add_up_options(parser: argparse.ArgumentParser) -> None:
    """The options of `up`."""
    default = os.environ.get("BERTH_PORT", "8000")
    parser.add_argument("--port", type=_port, default=default, metavar="P", help=f"web port (BERTH_PORT; {default})")
    parser.add_argument("--slurm", action="store_true", help="also start a local Slurm of 72 nodes and connect it")


def parse_up(arguments: list[str]) -> argparse.Namespace:
    """The options of one `up`; exits with 64 on a mistake."""
    parser = UsageParser(
        prog="manage.py up", description="Everything in the foreground: database, broker, web, worker, beat."
    )
    add_up_options(parser)
    return parser.parse_args(arguments)
