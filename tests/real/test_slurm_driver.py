"""Does the Slurm driver read and write a real controller, and say rightly when it is gone?"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.drivers import DriverError
from console.drivers.slurm_cli import SlurmCommands
from console.embedded.slurm import LocalSlurm
from console.embedded.slurm_processes import LocalSlurmError, start_time, wait_until
from scheduling.desired import DesiredFlavor, DesiredReservation, DesiredState, DesiredTeam
from scheduling.dialects import Capabilities, dialect
from scheduling.inventory import parse as parse_inventory
from scheduling.plan import Plan, diff

pytestmark = pytest.mark.part("slurm")
NODES = tuple(f"gb{number:03d}" for number in range(1, 73))
NOW = 0  # the minute in which each test starts


@pytest.fixture(autouse=True)
def _now() -> None:
    """The controller takes no start that is ten minutes old, and a whole run takes longer than that."""
    global NOW
    NOW = int(time.time()) // 60


def desired(*reservations: DesiredReservation, shares: int = 1) -> DesiredState:
    return DesiredState(
        cluster="sol",
        kind="slurm",
        installation="test",
        generation=1,
        at_minute=NOW,
        flavors=(DesiredFlavor("gb200-nvl72", "GB200", 4, 18, gres_type="gb200", partition="batch"),),
        teams=(DesiredTeam("Climate", "climate"), DesiredTeam("Ocean", "Ocean", "climate", shares)),
        reservations=reservations,
    )


def booking(identity: str, first: int, racks: int = 1, start: int = 60, end: int = 1500) -> DesiredReservation:
    nodes = NODES[first : first + 18 * racks]
    return DesiredReservation(identity, "gb200-nvl72", ("Ocean",), nodes, NOW + start, NOW + end)


def plan_of(driver: SlurmCommands, state: DesiredState) -> Plan:
    words = dialect("slurm")
    observed = words.parse(driver.read(), installation="test")
    return diff(words.render(state, Capabilities("slurm", native_cluster="local")), observed)


def push(driver: SlurmCommands, state: DesiredState) -> Plan:
    plan = plan_of(driver, state)
    refused = [applied.output for step in plan.steps if not (applied := driver.apply(step)).ok]
    assert refused == []
    assert plan_of(driver, state).steps == ()
    return plan


def test_two_racks_come_to_the_controller_change_and_go(slurm: LocalSlurm, slurm_driver: SlurmCommands) -> None:
    push(slurm_driver, desired(booking("R-131", 0, racks=2)))
    told = slurm.run("scontrol", "-o", "show", "reservation", "berth-R-131")
    assert "Nodes=gb[001-036] NodeCnt=36" in told
    assert "Accounts=ocean" in told
    moved = push(slurm_driver, desired(booking("R-131", 36, end=2000), shares=5))
    assert {step.verb for step in moved.steps} == {"update"}
    assert "Nodes=gb[037-054]" in slurm.run("scontrol", "-o", "show", "reservation", "berth-R-131")
    push(slurm_driver, desired(shares=5))
    assert "No reservations" in slurm.run("scontrol", "-o", "show", "reservation")


def test_a_reservation_deleted_by_hand_is_put_back(slurm: LocalSlurm, slurm_driver: SlurmCommands) -> None:
    state = desired(booking("R-7", 0))
    push(slurm_driver, state)
    slurm.run("scontrol", "delete", "ReservationName=berth-R-7")
    assert [(step.verb, step.name) for step in push(slurm_driver, state).steps] == [("create", "berth-R-7")]


def test_what_somebody_else_reserved_is_left_alone(slurm: LocalSlurm, slurm_driver: SlurmCommands) -> None:
    slurm.run(
        "scontrol", "create", "reservation", "ReservationName=theirs", "StartTime=now+1hour", "Duration=60",
        "Accounts=root", "Nodes=gb[055-072]",
    )  # fmt: skip
    push(slurm_driver, desired(booking("R-8", 0)))
    push(slurm_driver, desired())
    assert "ReservationName=theirs" in slurm.run("scontrol", "-o", "show", "reservation")


def test_a_refusal_keeps_the_words_of_the_controller(slurm: LocalSlurm, slurm_driver: SlurmCommands) -> None:
    push(slurm_driver, desired(booking("R-1", 0)))
    clash = plan_of(slurm_driver, desired(booking("R-1", 0), booking("R-2", 9))).steps
    applied = slurm_driver.apply(clash[0])
    assert not applied.ok
    assert "overlaps with another reservation" in applied.output


def test_the_inventory_is_four_racks_of_eighteen(slurm_driver: SlurmCommands) -> None:
    found = parse_inventory("slurm", slurm_driver.read_inventory())
    racks = {rack: sum(node.rack == rack for node in found.nodes) for rack in ("r01", "r02", "r03", "r04")}
    assert racks == {"r01": 18, "r02": 18, "r03": 18, "r04": 18}
    assert {node.gpus for node in found.nodes} == {4}


def test_a_stopped_controller_is_unreachable_and_comes_back(slurm: LocalSlurm, slurm_driver: SlurmCommands) -> None:
    state = desired(booking("R-9", 0))
    push(slurm_driver, state)
    slurm.stop_controller()
    with pytest.raises(DriverError) as caught:
        slurm_driver.read()
    assert (caught.value.code, caught.value.retryable) == ("unreachable", True)
    assert not slurm_driver.ping().ok
    slurm.start_controller()
    assert slurm_driver.ping().ok
    assert plan_of(slurm_driver, state).is_empty


def test_a_real_job_runs_in_its_reservation(
    slurm: LocalSlurm, slurm_driver: SlurmCommands, put_into: Callable[[str, str], None]
) -> None:
    push(slurm_driver, desired(replace(booking("R-5", 0), start_minute=NOW)))
    put_into("u0001", "ocean")
    slurm.run("scontrol", "update", "nodename=gb001", "state=power_up")  # a job would wait for it up to 30 s
    assert wait_until(lambda: slurm.run("sinfo", "-h", "-n", "gb001", "-o", "%t").strip() in ("resv", "idle"), 60)
    sent = slurm.run(
        "sbatch", "--parsable", "--uid=u0001", "--gid=200000", "-A", "ocean", "--reservation=berth-R-5",
        "-w", "gb001", "--gres=gpu:4", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 300",
    )  # fmt: skip
    job = sent.strip()
    shown = ("squeue", "-h", "-j", job, "-o", "%T %N")
    assert wait_until(lambda: slurm.run(*shown).startswith("RUNNING gb0"), 90), slurm.run(
        "scontrol", "show", "job", job
    )


@pytest.fixture
def own_slurm(tmp_path: Path) -> Iterator[LocalSlurm]:
    """A small one, not started, in a folder that neither sockets nor slurm.conf would bear; gone afterwards."""
    slurm = LocalSlurm(tmp_path / "a folder whose name holds spaces", nodes=4, rack=2, accounts=("climate",))
    yield slurm
    slurm.down(purge=True)


def pids_of(slurm: LocalSlurm) -> list[int]:
    return [pid for pid, _ in slurm._daemons._read().values()]


def test_nothing_is_left_behind(own_slurm: LocalSlurm) -> None:
    own_slurm.up()
    assert own_slurm.running
    assert "climate" in own_slurm.run("sacctmgr", "-nP", "show", "account", "format=account").split()
    pids = pids_of(own_slurm)
    assert len(pids) == 4
    again = LocalSlurm(own_slurm.asked, nodes=4, rack=2).up()
    assert pids_of(again) == pids
    own_slurm.down(purge=True)
    assert [start_time(pid) for pid in pids] == [None] * 4
    assert not own_slurm.folder.exists()
    own_slurm.down()


def test_what_a_killed_supervisor_could_not_write_down_is_still_ended(own_slurm: LocalSlurm) -> None:
    own_slurm.up()
    pids = pids_of(own_slurm)
    (own_slurm.folder / "pids.json").unlink()
    own_slurm.down()
    assert [start_time(pid) for pid in pids] == [None] * 4


def test_a_slurm_that_cannot_start_says_why_and_leaves_no_process(own_slurm: LocalSlurm) -> None:
    (own_slurm.folder / "mysql").mkdir(parents=True)
    (own_slurm.folder / "mysql" / "made").touch()  # looks complete and is not
    with pytest.raises(LocalSlurmError, match="mariadbd ended"):
        own_slurm.up()
    assert own_slurm._daemons.names() == ()
