"""manage.py import_fleet: what does this cluster consist of? Real files replace what was known, whole or not at all."""

import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from allocations.errors import DomainError
from allocations.models import Cluster
from allocations.services.fleet import ImportResult
from console.management.base import BerthCommand, UsageError
from reservations.services import fleet
from scheduling.inventory import KINDS, InventoryError, parse
from scheduling.inventory.kubernetes import RACK_LABEL

MAX_BYTES = 256 * 1024 * 1024
_SHOWN = 40


class Command(BerthCommand):
    """Exit 0 applied or nothing to do, 1 refused with file:line: reason, 64 wrong usage."""

    help = "Import a cluster's inventory from real files. Importing again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="a connected cluster")
        parser.add_argument("files", nargs="+", metavar="FILE")
        parser.add_argument("--kind", required=True, choices=KINDS, help="what the files come from")
        parser.add_argument("--rack-label", default=RACK_LABEL, help="node label that names the NVLink domain")
        parser.add_argument("--block-label", help="node label that names the block above the rack")
        parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")

    def perform(self, **given: Any) -> int | None:
        cluster = Cluster.objects.filter(name=given["name"]).first()
        if cluster is None:
            raise CommandError(
                f"There is no cluster {given['name']}: connect it first (manage.py connect {given['name']} --kind …)."
            )
        files = read_files(given["files"])
        try:
            inventory = parse(given["kind"], files, rack_label=given["rack_label"], block_label=given["block_label"])
            result = fleet.import_fleet(
                cluster=cluster, inventory=inventory, actor=None, at=timezone.now(), dry_run=given["dry_run"]
            )
        except InventoryError as error:
            raise CommandError(str(error)) from error
        except DomainError as error:
            raise CommandError(f"{place_of(error, files)}: {error.sentence}") from error
        self.stdout.write(summary(cluster.name, result, is_dry=given["dry_run"]))
        return None


def read_files(paths: list[str]) -> dict[str, str]:
    """The texts by name as given. Bytes that are no UTF-8 become a sign which the parsers refuse with its line."""
    files = {}
    for path in dict.fromkeys(paths):
        try:
            with Path(path).open("rb") as file:  # bounded as it is read: a device or a pipe has no size to ask for
                content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise CommandError(f"{path}:1: the file has more than {MAX_BYTES} bytes, at most so many are read")
            files[path] = content.decode("utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
    return files


def place_of(error: DomainError, files: Mapping[str, str]) -> str:
    """file:line where the node that the refusal is about is first spoken of; else the first file's first line."""
    node = next((fault.pointer.rpartition("/")[2] for fault in error.faults), "")
    if node:
        whole_name = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])")
        for file, text in files.items():
            if found := whole_name.search(text):
                return f"{file}:{text.count(chr(10), 0, found.start()) + 1}"
    return f"{next(iter(files))}:1"


def summary(name: str, result: ImportResult, *, is_dry: bool) -> str:
    """What changed or would change, for a person: counts, the first named changes, the reader's notes."""
    would = "would be " if is_dry else ""
    lines = [
        f"{name}: {result.created} nodes {would}created, {result.changed} {would}changed, {result.gone} {would}gone, "
        f"{result.unchanged} unchanged."
    ]
    if result.is_empty:
        lines = [f"{name}: nothing to do, {result.unchanged} nodes are as known."]
    # A first import creates everything: its nodes are counted, not listed.
    told = [change for change in result.changes if (change.kind, change.verb) != ("node", "created")]
    for change in told[:_SHOWN]:
        lines.append(f"  {change.kind} {change.name}: {change.verb}{f' ({change.detail})' if change.detail else ''}")
    if len(told) > _SHOWN:
        rest = Counter(f"{change.kind} {change.verb}" for change in told[_SHOWN:])
        lines.append("  … and " + ", ".join(f"{count} × {what}" for what, count in sorted(rest.items())))
    lines += [f"  note: {note}" for note in result.notes]
    if is_dry:
        lines.append("Nothing was written.")
    return "\n".join(lines)
