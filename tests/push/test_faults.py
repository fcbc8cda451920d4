"""What becomes of a push whose worker is killed, whose database goes, or which is overtaken?"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from allocations.models import Cluster, Event, Flavor, Node
from console.embedded.layout import CHECKOUT
from console.models import ClusterEndpoint, OwnedObject, PushPlan
from console.push import endpoints, pipeline
from tests.doubles.kube_api import KubeApi
from tests.push.passes import fresh, generations, push, told
from tests.reservations.asks import approved
from tests.reservations.world import World, grant, make_world, two_racks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(transactional_db: None) -> World:
    """The world at the real time: another process pushes here."""
    world = make_world(racks=2, nodes=4)
    for team in (world.team, world.other_team):
        grant(
            team, world.flavor, start_at=timezone.now() - timedelta(days=1), end_at=timezone.now() + timedelta(days=9)
        )
    Cluster.objects.update(kind="kueue")
    Flavor.objects.update(node_labels={"gpu": "gb200"})
    return world


@pytest.fixture
def api(world: World) -> Iterator[KubeApi]:
    with KubeApi() as double:
        for name in Node.objects.values_list("name", flat=True):
            double.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"gpu": "gb200"}}})
        yield double


@pytest.fixture
def endpoint(world: World, api: KubeApi, tmp_path: Path) -> ClusterEndpoint:
    """A Kueue cluster on which a running reservation of one rack is still to be written."""
    config = api.write_kubeconfig(tmp_path / "config")
    endpoint = endpoints.connect(
        name="sol",
        kind="kueue",
        driver="kubernetes",
        options={"kubeconfig": str(config)},
        modes={"*": "enforce"},
        actor=None,
        at=timezone.now(),
    )
    now = timezone.now() - timedelta(minutes=2)
    approved(world, spec=two_racks(racks=1, duration_minutes=240), at=now)
    return endpoint


def pushed_and_killed(endpoint: ClusterEndpoint, where: str, marker: Path) -> None:
    """A worker of its own pushes and is killed with kill -9 when it has come to the step."""
    database = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}"))
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.push.killed", str(endpoint.cluster_id), where, str(marker)],
        cwd=CHECKOUT,
        env={**os.environ, "DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "console.settings"},
    )
    end = time.monotonic() + 60
    while not marker.exists():
        assert worker.poll() is None, "the push ended before it came to the step"
        assert time.monotonic() < end
        time.sleep(0.02)
    worker.kill()
    worker.wait(30)


def lease_runs_out(endpoint: ClusterEndpoint) -> None:
    ClusterEndpoint.objects.filter(pk=endpoint.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def writes(api: KubeApi) -> Counter[str]:
    """How often each object was written."""
    return Counter(request for request in api.requests if request.startswith(("PATCH", "POST", "PUT", "DELETE")))


@pytest.mark.parametrize("where", ["1", "3", "5+", "9"])
def test_a_push_killed_between_two_steps_is_finished_by_the_next_and_nothing_is_done_twice(
    world: World, api: KubeApi, endpoint: ClusterEndpoint, tmp_path: Path, where: str
) -> None:
    pushed_and_killed(endpoint, where, tmp_path / "stopped")
    done = writes(api)
    assert sum(done.values()) == int(where.rstrip("+")) - (0 if where.endswith("+") else 1)
    assert generations(endpoint)[1] == 0
    assert pipeline.due(at=timezone.now()) == [], "the dead worker's lease still stands"
    assert push(endpoint).ended == "busy"

    lease_runs_out(endpoint)
    assert pipeline.due(at=timezone.now()) == [endpoint.cluster_id]
    assert push(endpoint).ended == "verified"
    assert max(writes(api).values()) == 1, "every object was written once"
    assert generations(endpoint)[0] == generations(endpoint)[1]
    assert len(told("push.verified")) == 1
    assert told("push.drift_found") == []
    assert sorted(PushPlan.objects.values_list("state", flat=True)) == ["superseded", "verified"]
    assert OwnedObject.objects.filter(deleted_at=None).count() == len(
        set(OwnedObject.objects.filter(deleted_at=None).values_list("object_class", "name"))
    )
    assert push(endpoint).ended == "equal"


def test_a_push_killed_after_its_last_step_is_verified_by_the_next_look(
    world: World, api: KubeApi, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    last = len(push(endpoint, dry_run=True).steps)
    pushed_and_killed(endpoint, f"{last}+", tmp_path / "stopped")
    written = writes(api)
    lease_runs_out(endpoint)
    assert push(endpoint).ended == "equal"
    assert writes(api) == written
    assert generations(endpoint)[0] == generations(endpoint)[1]
    assert PushPlan.objects.get().state == "verified"
    assert set(PushPlan.objects.get().steps.values_list("state", flat=True)) == {"verified"}
    assert len(told("push.verified")) == 1


def test_a_push_that_was_overtaken_writes_nothing_more(
    world: World, api: KubeApi, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of a slow worker runs out in the middle of its plan: whoever came after it finishes alone."""
    from console.drivers.kubernetes import KubernetesApi

    real, calls = KubernetesApi.apply, []

    def slow(self: Any, step: Any) -> Any:
        calls.append(step.name)
        applied = real(self, step)
        if len(calls) == 2:
            monkeypatch.setattr(KubernetesApi, "apply", real)
            lease_runs_out(endpoint)
            assert push(endpoint).ended == "verified"
        return applied

    monkeypatch.setattr(KubernetesApi, "apply", slow)
    outcome = push(endpoint)
    assert (outcome.ended, len(calls)) == ("busy", 2)
    assert max(writes(api).values()) == 1
    assert fresh(endpoint).state == "verified"
    assert generations(endpoint)[0] == generations(endpoint)[1]
    assert len(told("push.verified")) == 1


def test_a_newer_change_supersedes_a_running_plan(
    world: World, api: KubeApi, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.drivers.kubernetes import KubernetesApi

    real = KubernetesApi.apply

    def approving(self: Any, step: Any) -> Any:
        monkeypatch.setattr(KubernetesApi, "apply", real)
        approved(world, spec=two_racks(racks=1, duration_minutes=240), at=timezone.now() - timedelta(minutes=2))
        return real(self, step)

    monkeypatch.setattr(KubernetesApi, "apply", approving)
    assert push(endpoint).ended == "busy"
    assert generations(endpoint)[1] == 0
    assert pipeline.due(at=timezone.now()) == [endpoint.cluster_id]
    assert push(endpoint).ended == "verified"
    assert len([name for name in api.names("ClusterQueue") if name.startswith("rsv-")]) == 2
    assert generations(endpoint)[0] == generations(endpoint)[1]
    assert sorted(PushPlan.objects.values_list("state", flat=True)) == ["superseded", "verified"]


def test_a_database_lost_in_the_middle_of_a_push_costs_one_lease(
    world: World, api: KubeApi, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.drivers.kubernetes import KubernetesApi

    real = KubernetesApi.apply

    def cutting(self: Any, step: Any) -> Any:
        applied = real(self, step)
        monkeypatch.setattr(KubernetesApi, "apply", real)
        with connection.cursor() as cursor, pytest.raises(OperationalError):
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return applied

    monkeypatch.setattr(KubernetesApi, "apply", cutting)
    with pytest.raises(OperationalError):
        push(endpoint)
    connection.close()  # as Celery does before its next task
    assert generations(endpoint)[1] == 0
    lease_runs_out(endpoint)
    assert push(endpoint).ended == "verified"
    assert max(writes(api).values()) == 1
    assert len(told("push.verified")) == 1


def test_a_fault_of_our_own_is_said_and_tried_again_later(
    world: World, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.drivers.kubernetes import KubernetesApi

    def broken(self: Any) -> Any:
        raise KeyError("a fault")

    monkeypatch.setattr(KubernetesApi, "read", broken)
    with pytest.raises(KeyError):
        push(endpoint)
    row = fresh(endpoint)
    assert (row.state, row.failures, row.lease_until) == ("failed", 1, None)
    assert "fault of Berth's own" in row.sentence
    monkeypatch.undo()
    assert push(endpoint).ended == "verified"
    assert Event.objects.filter(verb="push.failed").count() == 1
