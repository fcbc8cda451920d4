"""Does a reservation come from an approval to a real slurmctld, verified, put back and taken away?"""

from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from allocations.models import Flavor, Node, Rack
from console.embedded.slurm import LocalSlurm
from console.embedded.slurm_processes import wait_until
from console.models import ClusterEndpoint, Installation
from console.push import endpoints, observe
from reservations.models import Reservation
from reservations.services import approve, fleet, submit
from reservations.services.cancel import cancel
from scheduling.spec import ReservationSpec
from tests.push.passes import generations, push, told
from tests.reservations.world import World, _people, _teams, grant

pytestmark = pytest.mark.part("slurm")
INSTALLATION = "realtest"


@pytest.fixture
def endpoint(db: None, slurm: LocalSlurm) -> ClusterEndpoint:
    """The real controller as a cluster of ours; accounts of earlier tests are ours too, by the installation."""
    Installation.objects.create(pk=1, code=INSTALLATION)
    options = {"conf": str(slurm.conf), **({"commands": str(slurm.commands)} if slurm.commands else {})}
    return endpoints.connect(
        name="sol",
        kind="slurm",
        driver="slurm_cli",
        options=options,
        modes={"*": "enforce"},
        actor=None,
        at=timezone.now(),
    )


@pytest.fixture
def world(endpoint: ClusterEndpoint) -> World:
    """The controller's own inventory, and teams with allocations of it."""
    cluster = endpoint.cluster
    fleet.import_fleet(
        cluster=cluster, inventory=observe.read_fleet(cluster_id=cluster.pk), actor=None, at=timezone.now()
    )
    flavor = Flavor.objects.get(cluster=cluster)
    team, other = _teams()
    now = timezone.now()
    period = {"start_at": now - timedelta(days=30), "end_at": now + timedelta(days=365)}
    allocation = grant(team, flavor, **period)
    grant(other, flavor, **period)
    racks = list(Rack.objects.filter(cluster=cluster).order_by("name"))
    return World(cluster, flavor, racks, team, other, allocation, _people(team, other, cluster))


def reserve(world: World, racks: int = 2, start_in: int = -2) -> Reservation:
    """Asked for by the lead and approved: whole racks for an hour, since two minutes or in some minutes."""
    now = timezone.now() + timedelta(minutes=min(start_in, 0))
    minute = int(now.timestamp()) // 60 + max(start_in, 0)
    spec = ReservationSpec(flavor=world.flavor.name, racks=racks, duration_minutes=60, earliest_start_minute=minute)
    asked = submit.submit(team=world.team, cluster=world.cluster, spec=spec, purpose="A run", actor=world.lead, at=now)
    return approve.approve(reservation=asked, actor=world.approver, at=now)


def shown(slurm: LocalSlurm, reservation: Reservation) -> dict[str, str]:
    """What scontrol tells of it, by key; {} when there is none."""
    every = slurm.run("scontrol", "-o", "show", "reservation").splitlines()
    lines = [line for line in every if line.startswith(f"ReservationName=berth-{reservation.public_id} ")]
    return dict(word.partition("=")[::2] for word in lines[0].split()) if lines else {}


def moment(text: str) -> datetime:
    """A time of scontrol's, in this machine's zone."""
    return datetime.fromisoformat(text).astimezone()


def test_the_real_inventory_has_racks_blocks_and_healthy_nodes(world: World) -> None:
    assert len(world.racks) == 4
    assert [rack.block.name for rack in world.racks if rack.block] == ["b1", "b1", "b2", "b2"]
    assert (world.flavor.gpus_per_node, world.flavor.nodes_per_rack) == (4, 18)
    assert set(Node.objects.values_list("condition", "is_drained")) == {("healthy", False)}
    result = fleet.import_fleet(
        cluster=world.cluster,
        inventory=observe.read_fleet(cluster_id=world.cluster.pk),
        actor=None,
        at=timezone.now(),
    )
    assert result.is_empty


def test_two_racks_come_from_an_approval_to_the_controller(
    world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm
) -> None:
    reservation = reserve(world, start_in=30)
    outcome = push(endpoint)
    assert outcome.ended == "verified", outcome.sentence
    there = shown(slurm, reservation)
    assert there["Nodes"] == "gb[001-036]"
    assert there["Accounts"] == "vision"
    assert (moment(there["StartTime"]), moment(there["EndTime"])) == (reservation.start_at, reservation.end_at)
    assert generations(endpoint)[0] == generations(endpoint)[1]
    accounts = slurm.run("sacctmgr", "-nP", "show", "account", "format=Account,Org")
    assert f"vision|berth-{INSTALLATION}" in accounts.splitlines()
    assert push(endpoint).ended == "equal"


def test_one_that_runs_already_is_verified_too(world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm) -> None:
    reservation = reserve(world)
    assert push(endpoint).ended == "verified"
    assert shown(slurm, reservation)["State"] == "ACTIVE"
    assert push(endpoint).ended == "equal"


def test_one_deleted_by_hand_is_told_and_put_back(world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm) -> None:
    reservation = reserve(world, start_in=30)
    push(endpoint)
    before = shown(slurm, reservation)
    slurm.run("scontrol", "delete", f"ReservationName=berth-{reservation.public_id}")
    assert push(endpoint, dry_run=True).ended == "differs"
    assert push(endpoint).ended == "verified"
    after = shown(slurm, reservation)
    assert [after[key] for key in ("Nodes", "StartTime", "EndTime", "Accounts")] == [
        before[key] for key in ("Nodes", "StartTime", "EndTime", "Accounts")
    ]
    (sentence,) = told("push.drift_found")
    assert reservation.public_id in sentence


def test_nodes_taken_out_of_it_by_hand_are_put_back(world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm) -> None:
    reservation = reserve(world, start_in=30)
    push(endpoint)
    slurm.run("scontrol", "update", f"ReservationName=berth-{reservation.public_id}", "Nodes=gb[001-020]")
    assert push(endpoint).ended == "verified"
    assert shown(slurm, reservation)["Nodes"] == "gb[001-036]"
    assert len(told("push.drift_found")) == 1


@pytest.mark.parametrize("start_in", [-2, 30])
def test_cancelling_takes_it_away(world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm, start_in: int) -> None:
    reservation = reserve(world, start_in=start_in)
    push(endpoint)
    cancel(reservation=reservation, actor=world.lead, at=timezone.now())
    assert push(endpoint).ended == "verified"
    assert shown(slurm, reservation) == {}


def test_what_others_made_is_left(world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm) -> None:
    slurm.run(
        "scontrol", "create", "reservation", "ReservationName=physics", "StartTime=now+3600", "Duration=60",
        "Nodes=gb[055-060]", "Users=root",
    )  # fmt: skip
    if "physics" not in slurm.run("sacctmgr", "-nP", "show", "account", "format=Account").split():
        slurm.run("sacctmgr", "-i", "add", "account", "physics", "cluster=local", "Organization=site", "fairshare=7")
    reservation = reserve(world, start_in=30)
    assert push(endpoint).ended == "verified"
    cancel(reservation=reservation, actor=world.lead, at=timezone.now())
    assert push(endpoint).ended == "verified"
    assert "Nodes=gb[055-060]" in slurm.run("scontrol", "-o", "show", "reservation", "physics")
    associations = slurm.run("sacctmgr", "-nP", "show", "assoc", "account=physics", "user=", "format=Account,Share")
    assert associations.split() == ["physics|7"]


def test_a_controller_that_is_down_is_unreachable_and_comes_back(
    world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm
) -> None:
    reservation = reserve(world, start_in=30)
    slurm.stop_controller()
    outcome = push(endpoint)
    assert outcome.ended == "unreachable"
    assert "does not answer" in outcome.sentence
    with pytest.raises(SystemExit) as ended:
        call_command("reconcile", "--cluster", "sol", "--dry-run", stdout=StringIO())
    assert ended.value.code == 1
    slurm.start_controller()
    assert push(endpoint).ended == "verified"
    assert shown(slurm, reservation)["Nodes"] == "gb[001-036]"


def test_a_node_drained_on_the_controller_is_drained_here(world: World, slurm: LocalSlurm) -> None:
    slurm.run("scontrol", "update", "NodeName=gb007", "State=DRAIN", "Reason=bad fan")
    try:
        call_command("observe", "--cluster", "sol", stdout=StringIO())
        node = Node.objects.get(name="gb007")
        assert node.is_drained and "bad fan" in node.reason
        assert Node.objects.filter(is_drained=True).count() == 1
    finally:
        slurm.run("scontrol", "update", "NodeName=gb007", "State=RESUME")
    call_command("observe", "--cluster", "sol", stdout=StringIO())
    assert not Node.objects.filter(is_drained=True).exists()


def send(slurm: LocalSlurm, script: Path, user: str, account: str, reservation: Reservation) -> str:
    """Send a one-node job into the reservation; what sbatch said on its output ("" when it was refused)."""
    return slurm.run(
        "sbatch", f"--uid={user}", f"--account={account}", f"--reservation=berth-{reservation.public_id}",
        "--parsable", "--nodes=1", "--gres=gpu:4", "--time=5", "--chdir=/tmp", "--output=/dev/null", str(script),
        check=False,
    ).strip()  # fmt: skip


def test_the_team_runs_a_job_in_its_reservation_and_another_team_is_refused(
    world: World,
    endpoint: ClusterEndpoint,
    slurm: LocalSlurm,
    put_into: Callable[[str, str], None],
    tmp_path: Path,
) -> None:
    reservation = reserve(world)
    assert push(endpoint).ended == "verified"
    put_into("u0000", "vision")
    put_into("u0001", "speech")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    assert send(slurm, script, "u0001", "speech", reservation) == ""
    job = send(slurm, script, "u0000", "vision", reservation)
    assert job.isdigit()

    def state() -> str:
        return slurm.run("sacct", "-nXP", "-j", job, "--format=State,NodeList").strip()

    assert wait_until(lambda: state().startswith("COMPLETED"), 60), state()
    node = Node.objects.get(name=state().partition("|")[2])
    assert node.rack in world.racks[:2]


def test_a_reservation_with_a_failed_node_goes_to_other_racks(
    world: World, endpoint: ClusterEndpoint, slurm: LocalSlurm
) -> None:
    """What the controller says of its nodes decides where the next one is placed."""
    slurm.run("scontrol", "update", "NodeName=gb003", "State=DRAIN", "Reason=link down")
    try:
        observe.observe(cluster_id=world.cluster.pk, at=timezone.now())
        reservation = reserve(world, start_in=30)
        assert push(endpoint).ended == "verified"
        assert shown(slurm, reservation)["Nodes"] == "gb[037-072]"
    finally:
        slurm.run("scontrol", "update", "NodeName=gb003", "State=RESUME")
