"""What does the push start from in tests? (the calendar's world, with a folder of files as its cluster)"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine

from console.models import ClusterEndpoint
from console.push import endpoints
from tests.reservations.world import NOW, World, make_world


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """The time of the world's tests, standing still until a test moves it."""
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def world(db: None, clock: time_machine.Traveller) -> World:
    return make_world(racks=4, nodes=4)


@pytest.fixture
def endpoint(world: World, tmp_path: Path) -> ClusterEndpoint:
    """The world's cluster as a folder of files that Berth may write."""
    return connected(tmp_path)


def connected(folder: Path, name: str = "sol", mode: str = "enforce") -> ClusterEndpoint:
    """A files endpoint of this cluster in the folder."""
    return endpoints.connect(
        name=name,
        kind="slurm",
        driver="files",
        options={"dir": str(folder)},
        modes={"*": mode},
        actor=None,
        at=NOW,
    )
