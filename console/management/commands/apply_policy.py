"""manage.py apply_policy: is everything as this file says? Teams, people, grants, rules, through the same services."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from console.management.base import BerthCommand
from console.management.commands.import_fleet import read_files
from console.policy_file import read_policy
from reservations.services.policy import RowRefused, apply_policy
from scheduling.inventory.fleet import InventoryError


class Command(BerthCommand):
    """Exit 0 applied or nothing to do, 1 refused with file:line: path, 64 wrong usage. All rows or none."""

    help = "Apply a YAML file of policy. Applying it again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")

    def perform(self, **given: Any) -> int | None:
        file = given["file"]
        try:
            policy = read_policy(file, read_files([file])[file])
        except InventoryError as error:
            raise CommandError(str(error)) from error
        try:
            results = apply_policy(sections=policy.sections, actor=None, at=timezone.now(), dry_run=given["dry_run"])
        except RowRefused as error:
            raise CommandError(f"{policy.place(error.section, error.number, error.key)}: {error.sentence}") from error
        changed = [result for result in results if result.changed]
        for result in changed:
            self.stdout.write(f"{result.section}: {result.name}")
        would = "would change" if given["dry_run"] else "changed"
        self.stdout.write(f"{len(changed)} rows {would}, {len(results) - len(changed)} are as they were.")
        return None
