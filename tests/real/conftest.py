"""A real Slurm for the tests of this folder: 72 nodes in 4 racks, one for the whole run."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.drivers import Credentials, Endpoint
from console.drivers.slurm_cli import SlurmCommands
from console.embedded.slurm import LocalSlurm
from console.embedded.slurm_processes import wait_until


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


@pytest.fixture
def put_into(slurm: LocalSlurm) -> Iterator[Callable[[str, str], None]]:
    """`put_into(user, account)` lets a made-up user send jobs; afterwards their jobs are ended and they are gone.

    Skips for anybody but root, who alone sends jobs of other users.
    """
    if os.geteuid() != 0:
        pytest.skip("only root sends jobs of other users")
    put: set[str] = set()

    def put_into_account(user: str, account: str) -> None:
        put.add(user)
        slurm.run("sacctmgr", "-i", "add", "user", user, f"account={account}", "cluster=local")
        told = ("scontrol", "show", "assoc_mgr", f"users={user}", f"accounts={account}", "flags=assoc")
        assert wait_until(lambda: f"UserName={user}" in slurm.run(*told), 30), slurm.run(*told)

    yield put_into_account
    jobs = slurm.run("squeue", "-h", "-o", "%A").split()
    if jobs:
        slurm.run("scancel", *jobs, check=False)
        assert wait_until(lambda: not slurm.run("squeue", "-h", "-o", "%A").split(), 30)
    if put:
        slurm.run("sacctmgr", "-i", "delete", "user", ",".join(sorted(put)))


def _remove_reservations(slurm: LocalSlurm) -> None:
    for line in slurm.run("scontrol", "-o", "show", "reservation").splitlines():
        name = line.partition("ReservationName=")[2].split(" ")[0]
        if name:
            slurm.run("scontrol", "delete", f"ReservationName={name}")
