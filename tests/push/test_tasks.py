"""Do the tasks wake what is due, and does a dead broker cost speed only?"""

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import TestCase
from kombu import pools
from kombu.exceptions import OperationalError

from allocations import wake
from console import tasks
from console.celery import app
from console.models import ClusterEndpoint
from tests.push.passes import generations, written
from tests.reservations.asks import approved, ask
from tests.reservations.world import World


@pytest.fixture
def dead_broker() -> Iterator[None]:
    """A broker's address on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{probe.getsockname()[1]}/0"
    before = app.conf.broker_url, app.conf.broker_transport_options
    app.conf.broker_url = app.conf.broker_write_url = address
    app.conf.broker_transport_options = {"socket_timeout": 5, "socket_connect_timeout": 2}
    _forget_connections()
    yield
    app.conf.broker_url = app.conf.broker_write_url = before[0]
    app.conf.broker_transport_options = before[1]
    _forget_connections()


def _forget_connections() -> None:
    pools.reset()  # a pool that was only closed would be handed out again for the same address
    app._pool = None
    app.amqp._producer_pool = None
    app.amqp.__dict__.pop("producer_pool", None)


@pytest.mark.usefixtures("dead_broker")
def test_the_broker_of_these_tests_is_really_dead() -> None:
    with pytest.raises(OperationalError):
        tasks.push.apply_async((1,), ignore_result=True)


@pytest.mark.usefixtures("dead_broker")
def test_with_a_dead_broker_an_approval_works_and_the_sweep_finds_the_cluster(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poked: list[int] = []

    def poke(cluster_id: int) -> None:
        poked.append(cluster_id)
        tasks.poke(cluster_id)

    monkeypatch.setattr(wake, "_listeners", [poke])
    began = time.monotonic()
    with TestCase.captureOnCommitCallbacks(execute=True):
        reservation = approved(world)
    assert reservation.decision == "approved"
    assert poked, "the approval wanted to wake a worker"
    assert time.monotonic() - began < 60, "it must not wait for a broker"
    monkeypatch.setattr(tasks, "poke", lambda cluster_id: tasks.push(cluster_id))
    tasks.sweep()
    assert f"berth-{reservation.public_id}" in written(tmp_path)
    assert generations(endpoint)[0] == generations(endpoint)[1]


def test_the_sweep_wakes_nothing_that_is_in_step(
    world: World, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(tasks, "poke", woken.append)
    tasks.sweep()
    tasks.push(endpoint.cluster_id)
    tasks.sweep()
    assert woken == [endpoint.cluster_id]


def test_an_approval_wakes_a_worker_for_its_cluster(
    world: World, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(tasks.push, "apply_async", lambda arguments, **more: sent.append(arguments[0]))
    with TestCase.captureOnCommitCallbacks(execute=True):
        approved(world)
    assert sent == [endpoint.cluster_id]


def test_an_ask_whose_hold_ran_out_lapses_with_the_beat(world: World, clock) -> None:  # type: ignore[no-untyped-def]
    asked = ask(world)
    assert asked.hold_expires_at is not None
    clock.move_to(asked.hold_expires_at + timedelta(seconds=1))
    tasks.lapse_holds()
    asked.refresh_from_db()
    assert asked.decision == "lapsed"


def test_a_folder_of_files_is_never_asked_for_its_nodes(
    world: World, endpoint: ClusterEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(tasks.observe, "delay", asked.append)
    tasks.observe_all()
    assert asked == []
    ClusterEndpoint.objects.update(driver="slurm_cli")
    tasks.observe_all()
    assert asked == [endpoint.cluster_id]
