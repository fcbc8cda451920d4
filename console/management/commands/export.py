"""manage.py export: what would each cluster's configuration be, as files, the same bytes for the same state?"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from allocations.models import Cluster
from console.management.base import BerthCommand
from console.push.desired import gather
from scheduling.dialects import KINDS, DialectError, dialect
from scheduling.dialects.demo import demo_state


class Command(BerthCommand):
    """Exit 0 written or equal, 2 when --check finds a difference, 1 refused."""

    help = "Write every cluster's configuration as files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster")
        parser.add_argument("--demo", action="store_true", help="one built-in state for every kind; needs no database")
        parser.add_argument("--out", required=True)
        parser.add_argument("--check", action="store_true", help="write nothing; exit 2 when the folder differs")

    def perform(self, **given: Any) -> int | None:
        out = Path(given["out"])
        try:
            folders = dict(_demo() if given["demo"] else self._clusters(given["cluster"]))
        except DialectError as error:
            raise CommandError(error.sentence) from error
        differing = []
        for folder, files in folders.items():
            for name, text in files.items():
                path = out / folder / name
                if not path.is_file() or path.read_text() != text:
                    differing.append(path)
                    if not given["check"]:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_text(text)
        for path in differing:
            self.stdout.write(f"{'differs' if given['check'] else 'wrote'} {path}")
        return 2 if given["check"] and differing else 0

    def _clusters(self, name: str | None) -> Iterator[tuple[str, Mapping[str, str]]]:
        clusters = Cluster.objects.filter(name=name) if name else Cluster.objects.filter(kind__in=KINDS)
        if name and not clusters:
            raise CommandError(f"There is no cluster {name}.")
        for cluster in clusters:
            speech = dialect(cluster.kind)
            state = gather(cluster_id=cluster.pk, at=timezone.now())
            yield cluster.name, speech.files(speech.render(state, None))


def _demo() -> Iterator[tuple[str, Mapping[str, str]]]:
    for kind in KINDS:
        speech = dialect(kind)
        yield f"demo-{kind}", speech.files(speech.render(demo_state(kind), None))
