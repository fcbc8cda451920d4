"""Can two workers write to one cluster at once? (no; and with the lease away, to see that they would)"""

import threading
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from console.drivers.base import Applied
from console.drivers.files import FolderOfFiles
from console.models import ClusterEndpoint, PushPlan
from console.push import endpoints, lease, pipeline
from console.push.closing import Outcome
from tests.races.conftest import race
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, two_racks

pytestmark = pytest.mark.django_db(transaction=True)
TOGETHER = 2


@pytest.fixture
def endpoint(world: World, tmp_path: Path) -> ClusterEndpoint:
    endpoint = endpoints.connect(
        name="sol",
        kind="slurm",
        driver="files",
        options={"dir": str(tmp_path)},
        modes={"*": "enforce"},
        actor=None,
        at=NOW,
    )
    approved(world, spec=two_racks(racks=1))
    return endpoint


@pytest.fixture
def steps_written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each step was sent to the cluster, whoever sent it."""
    counts: Counter[str] = Counter()
    guard = threading.Lock()

    def counted(self: Any, step: Any) -> Applied:
        with guard:
            counts[f"{step.verb} {step.name}"] += 1
            return real(self, step)

    real = FolderOfFiles.apply
    monkeypatch.setattr(FolderOfFiles, "apply", counted)
    return counts


def pushes(endpoint: ClusterEndpoint) -> list[str]:
    def push() -> Outcome:
        return pipeline.push(cluster_id=endpoint.cluster_id, at=timezone.now())

    return [getattr(each, "ended", repr(each)) for each in race([push] * TOGETHER)]


def test_of_two_pushes_at_once_only_one_writes(endpoint: ClusterEndpoint, steps_written: Counter[str]) -> None:
    ended = pushes(endpoint)
    assert "verified" in ended
    assert set(ended) <= {"verified", "busy", "equal"}
    assert max(steps_written.values()) == 1
    assert PushPlan.objects.count() == 1


def test_without_the_lease_both_write(
    endpoint: ClusterEndpoint, steps_written: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    everyone_looked = threading.Barrier(TOGETHER)
    real_look = pipeline.look
    looked: set[int] = set()

    def take(*, cluster_id: int, at: datetime) -> ClusterEndpoint:
        return ClusterEndpoint.objects.select_related("cluster").get(cluster_id=cluster_id)

    def look_together(*given: Any) -> Any:
        seen = real_look(*given)
        if threading.get_ident() not in looked:
            looked.add(threading.get_ident())
            everyone_looked.wait(60)
        return seen

    monkeypatch.setattr(lease, "take", take)
    monkeypatch.setattr(pipeline, "look", look_together)
    ended = pushes(endpoint)
    assert max(steps_written.values(), default=0) == TOGETHER, ended
