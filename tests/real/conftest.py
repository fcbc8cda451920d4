"""A real Slurm for the tests of this folder: 72 nodes in 4 racks, one for the whole run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.drivers import Credentials, Endpoint
from console.drivers.slurm_cli import SlurmCommands
from console.embedded.slurm import LocalSlurm


@pytest.fixture(scope="session")
def local_slurm() -> Iterator[LocalSlurm]:
    """A running Slurm with made-up users u0000 and u0001; its folder and processes are gone afterwards.

    pytest's own folders are closed to those users, whose jobs run below this one.
    """
    slurm = LocalSlurm(Path(tempfile.mkdtemp(prefix="berth-test-slurm-")), users=2)
    try:
        yield slurm.up()
    finally:
        slurm.down(purge=True)


@pytest.fixture
def slurm(local_slurm: LocalSlurm) -> Iterator[LocalSlurm]:
    """The same, running and without reservations."""
    local_slurm.start_controller()
    _remove_reservations(local_slurm)
    yield local_slurm
    local_slurm.start_controller()
    _remove_reservations(local_slurm)


@pytest.fixture
def slurm_endpoint(slurm: LocalSlurm) -> Endpoint:
    """How Berth reaches it."""
    return Endpoint("sol", "slurm", "slurm_cli", conf=str(slurm.conf), commands=str(slurm.commands or ""))


@pytest.fixture
def slurm_driver(slurm_endpoint: Endpoint) -> SlurmCommands:
    return SlurmCommands(slurm_endpoint, Credentials())


def _remove_reservations(slurm: LocalSlurm) -> None:
    for line in slurm.run("scontrol", "-o", "show", "reservation").splitlines():
        name = line.partition("ReservationName=")[2].split(" ")[0]
        if name:
            slurm.run("scontrol", "delete", f"ReservationName={name}")
