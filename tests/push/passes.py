"""How do tests push, look and change by hand, in one line each?"""

from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from allocations.models import Cluster, Event
from console.models import ClusterEndpoint
from console.push import pipeline
from console.push.closing import Outcome

RESERVATIONS = Path("sol/slurm/reservations.txt")


def push(endpoint: ClusterEndpoint, *, dry_run: bool = False) -> Outcome:
    """One pass at the time of the test's clock."""
    return pipeline.push(cluster_id=endpoint.cluster_id, at=timezone.now(), dry_run=dry_run)


def generations(endpoint: ClusterEndpoint) -> tuple[int, int]:
    """What is desired and what was verified."""
    cluster = Cluster.objects.get(pk=endpoint.cluster_id)
    return cluster.desired_generation, cluster.applied_generation


def written(folder: Path) -> str:
    """The reservations' file, "" where there is none."""
    path = folder / RESERVATIONS
    return path.read_text() if path.exists() else ""


def fresh(endpoint: ClusterEndpoint) -> ClusterEndpoint:
    """The endpoint's row as it stands now."""
    return ClusterEndpoint.objects.select_related("cluster").get(pk=endpoint.pk)


def told(verb: str) -> list[str]:
    """The sentences of all events of a verb, in order."""
    return list(Event.objects.filter(verb=verb).order_by("id").values_list("sentence", flat=True))


def seconds_until_next(endpoint: ClusterEndpoint) -> float:
    """How long until the endpoint's next look, by the test's clock."""
    planned = fresh(endpoint).next_push_at
    assert planned is not None
    return (planned - timezone.now()) / timedelta(seconds=1)
