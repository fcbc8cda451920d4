"""manage.py seed_demo: what does a fleet look like here? Fills an empty database through the services."""

import os
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from allocations.errors import DomainError
from console.demo import seed
from console.demo.people import SIGN_INS
from console.management.base import BerthCommand


class Command(BerthCommand):
    """Exit 0 seeded, 1 when there is anything already, 64 wrong usage."""

    help = "Fill an empty database with a believable fleet and print the passwords of its people, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--scale", choices=seed.SCALES, default="small", help="about 600 or 25,000 nodes")

    def perform(self, **given: Any) -> int | None:
        try:
            with transaction.atomic():
                told = sign_ins(seed.seed(scale=given["scale"], at=timezone.now()))
                # Kept before the commit: killed at any moment, there is no demo whose passwords nobody knows.
                keep_private(Path(settings.BERTH_HOME) / "demo-passwords", told)
        except DomainError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(told, ending="")
        return None


def sign_ins(passwords: Mapping[str, str]) -> str:
    """One line per demo person: address, password, what they are for."""
    width = max(len(email) for email, *_ in SIGN_INS)
    return "".join(f"{email:{width}}  {passwords[email]}  {what}\n" for email, _, what in SIGN_INS)


def keep_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whatever was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
