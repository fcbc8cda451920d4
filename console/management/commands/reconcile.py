"""manage.py reconcile: one pass of the push for one cluster, or the same pass stopped before its first write."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from console.management.base import BerthCommand
from console.models import ClusterEndpoint
from console.push import closing, pipeline, record

EXIT = {
    "equal": 0,
    "verified": 0,
    "failed": 1,
    "unreachable": 1,
    "busy": 2,
    "differs": 2,
    "converging": 2,
    "waiting": 2,
}


class Command(BerthCommand):
    """Exit 0 equal or verified; 1 failed or unreachable; 2 differs, converging or waiting for a person."""

    help = "One pass of the push for a cluster; --dry-run only tells what it would write."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", required=True)
        parser.add_argument("--dry-run", action="store_true")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def perform(self, **given: Any) -> int | None:
        found = ClusterEndpoint.objects.filter(cluster__name=given["cluster"]).first()
        if found is None:
            raise CommandError(f"There is no connected cluster {given['cluster']}: manage.py connect makes one.")
        outcome = pipeline.push(cluster_id=found.cluster_id, at=timezone.now(), dry_run=given["dry_run"])
        if given["as_json"]:
            self.stdout.write(json.dumps(_json(given["cluster"], outcome), indent=2))
        else:
            self._tell(given["cluster"], outcome)
        return EXIT[outcome.ended]

    def _tell(self, cluster: str, outcome: closing.Outcome) -> None:
        self.stdout.write(f"{cluster}: {outcome.ended}. {outcome.sentence}")
        for step in outcome.steps:
            self.stdout.write(f"  {step.verb} {step.object_class} {step.name}")
            for change in record.changes_of(step):
                self.stdout.write(f"    {record.change_words(change)}")
        for each in outcome.compromises:
            self.stdout.write(f"  cannot hold: {each.sentence}")


def _json(cluster: str, outcome: closing.Outcome) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "ended": outcome.ended,
        "sentence": outcome.sentence,
        "plan": outcome.plan.public_id if outcome.plan else None,
        "steps": [
            {
                "verb": step.verb,
                "object_class": step.object_class,
                "name": step.name,
                "changes": record.changes_of(step),
                "commands": list(step.commands),
            }
            for step in outcome.steps
        ],
        "compromises": [record.vars_of(each) for each in outcome.compromises],
        "converging": [{"reservation": each.reservation, "sentence": each.sentence} for each in outcome.converging],
    }
