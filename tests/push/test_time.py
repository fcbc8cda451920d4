"""When does time itself make a push? (a start or an end at an unchanged generation)"""

from datetime import timedelta
from pathlib import Path

import time_machine

from console.models import ClusterEndpoint
from console.push import pipeline
from tests.push.passes import fresh, push, seconds_until_next, written
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, two_racks

IN_40_SECONDS = NOW + timedelta(minutes=10, seconds=-40)


def in_ten_minutes(world: World) -> None:
    minute = int(NOW.timestamp()) // 60 + 10
    approved(world, spec=two_racks(racks=1, earliest_start_minute=minute, duration_minutes=30))


def test_a_verified_cluster_is_looked_at_again_at_the_next_start(
    world: World, endpoint: ClusterEndpoint, clock: time_machine.Traveller
) -> None:
    in_ten_minutes(world)
    clock.move_to(IN_40_SECONDS)
    assert push(endpoint).ended == "verified"
    assert seconds_until_next(endpoint) == 40
    assert pipeline.due(at=NOW + timedelta(minutes=10, seconds=-1)) == []
    assert pipeline.due(at=NOW + timedelta(minutes=10)) == [endpoint.cluster_id]


def test_slurm_keeps_the_calendar_so_a_start_writes_nothing(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path, clock: time_machine.Traveller
) -> None:
    in_ten_minutes(world)
    push(endpoint)
    before = written(tmp_path)
    clock.move_to(NOW + timedelta(minutes=10))
    outcome = push(endpoint)
    assert (outcome.ended, outcome.steps) == ("equal", ())
    assert written(tmp_path) == before


def test_a_cluster_is_due_when_something_newer_is_wanted_and_not_while_it_is_pushed(
    world: World, endpoint: ClusterEndpoint
) -> None:
    assert push(endpoint).ended == "verified"
    assert pipeline.due(at=NOW) == []
    approved(world)
    assert pipeline.due(at=NOW) == [endpoint.cluster_id]
    ClusterEndpoint.objects.update(lease_until=NOW + timedelta(seconds=5))
    assert pipeline.due(at=NOW) == []
    assert pipeline.due(at=NOW + timedelta(seconds=5)) == [endpoint.cluster_id]


def test_a_failed_cluster_is_not_tried_at_each_sweep_but_at_once_for_a_newer_change(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    approved(world)
    (tmp_path / "sol").write_text("a file where the folder should be")
    assert push(endpoint).ended == "unreachable"
    assert fresh(endpoint).state == "unreachable"
    assert pipeline.due(at=NOW + timedelta(seconds=9)) == []
    assert pipeline.due(at=NOW + timedelta(seconds=10)) == [endpoint.cluster_id]
    approved(world)
    assert pipeline.due(at=NOW) == [endpoint.cluster_id]
