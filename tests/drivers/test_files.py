"""Does a folder of files hold exactly what was applied, at every instant, with its history and other people's files?"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from dulwich.repo import Repo

from console.drivers import files as files_module
from console.drivers.base import DriverError, Endpoint
from console.drivers.credentials import Credentials
from console.drivers.file_image import file_names, with_step
from console.drivers.files import FolderOfFiles
from scheduling.desired import DesiredFlavor, DesiredQuota, DesiredReservation, DesiredState, DesiredTeam
from scheduling.dialects import dialect
from scheduling.plan import Observed, Plan, Rendered, diff

NODES = tuple(f"gb{number:03d}" for number in range(1, 73))


def desired(kind: str, *reservations: DesiredReservation, shares: int = 1) -> DesiredState:
    quota = (DesiredQuota("gb200-nvl72", 72),)
    return DesiredState(
        cluster="sol",
        kind=kind,
        installation="test",
        generation=1,
        at_minute=1000,
        flavors=(DesiredFlavor("gb200-nvl72", "GB200", 4, 18, node_labels=(("gpu", "gb200"),)),),
        teams=(
            DesiredTeam("Zoology", "aa-parent", quotas=quota),
            DesiredTeam("Bees", "a-child", "aa-parent", shares, quota),
        ),
        reservations=reservations,
        pool_gpus=(("gb200-nvl72", 0),),
    )


def booking(identity: str, first: int, start: int = 900, end: int = 2000, size: int = 3) -> DesiredReservation:
    return DesiredReservation(identity, "gb200-nvl72", ("a-child",), NODES[first : first + size], start, end)


STATES = (
    lambda kind: desired(kind, booking("R-1", 0), booking("R-2", 18)),
    lambda kind: desired(kind, booking("R-2", 36, end=3000), booking("R-3", 0), shares=7),
    lambda kind: desired(kind),
)


def opened(folder: Path, kind: str = "slurm") -> FolderOfFiles:
    return FolderOfFiles(Endpoint("sol", kind, "files", dir=str(folder)), Credentials())


def seen(driver: FolderOfFiles, kind: str) -> Observed:
    return dialect(kind).parse(driver.read(), installation="test")


def plan_of(driver: FolderOfFiles, state: DesiredState) -> Plan:
    return diff(dialect(state.kind).render(state, None), seen(driver, state.kind))


def texts(folder: Path, kind: str) -> dict[str, str]:
    return {name: (folder / "sol" / name).read_text() for name in file_names(kind)}


@pytest.mark.parametrize("kind", ["slurm", "kueue"])
def test_plan_after_plan_leaves_the_state_that_was_wanted(tmp_path: Path, kind: str) -> None:
    driver = opened(tmp_path, kind)
    for state in STATES:
        for step in plan_of(driver, state(kind)).steps:
            assert driver.apply(step).ok
        assert plan_of(driver, state(kind)).is_empty


def test_files_after_a_plan_are_those_of_an_export(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    for state in STATES:
        for step in plan_of(driver, state("slurm")).steps:
            driver.apply(step)
        assert texts(tmp_path, "slurm") == dialect("slurm").files(dialect("slurm").render(state("slurm"), None))


@pytest.mark.parametrize("kind", ["slurm", "kueue"])
def test_one_step_changes_one_file(kind: str) -> None:
    words = dialect(kind)
    before: dict[str, str] = dict(words.files(Rendered(())))
    steps = diff(words.render(STATES[0](kind), None), words.parse(words.parse_files({}), installation="test")).steps
    for step in steps:
        after = with_step(kind, "sol", before, step)
        assert sum(after[name] != before[name] for name in after) == 1
        before = after


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sol" / "slurm").mkdir(parents=True)
    (tmp_path / "sol" / "slurm" / "notes.md").write_text("ours")
    driver = opened(tmp_path)
    for step in plan_of(driver, STATES[0]("slurm")).steps:
        driver.apply(step)
    assert (tmp_path / "sol" / "slurm" / "notes.md").read_text() == "ours"
    with Repo(str(tmp_path / "sol")) as repo:
        assert sorted(path.decode() for path in repo.open_index()) == ["slurm/reservations.txt", "slurm/sacctmgr.txt"]


def messages(folder: Path) -> list[str]:
    with Repo(str(folder / "sol")) as repo:
        return [entry.commit.message.decode() for entry in repo.get_walker()][::-1]


def test_each_step_is_a_commit_by_berth(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    steps = plan_of(driver, STATES[0]("slurm")).steps
    for step in steps:
        driver.apply(step)
    assert messages(tmp_path) == [f"{step.verb} {step.object_class} {step.name}" for step in steps]
    with Repo(str(tmp_path / "sol")) as repo:
        assert {entry.commit.author for entry in repo.get_walker()} == {b"Berth <berth@localhost>"}


def test_an_edit_by_hand_is_drift_and_stays_in_the_history(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    state = STATES[0]("slurm")
    for step in plan_of(driver, state).steps:
        driver.apply(step)
    file = tmp_path / "sol" / "slurm" / "reservations.txt"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:1]))
    drift = plan_of(driver, state).steps
    assert [(step.verb, step.name) for step in drift] == [("create", "berth-R-2")]
    driver.apply(drift[0])
    assert plan_of(driver, state).is_empty
    assert messages(tmp_path)[-2].startswith("Found as changed outside Berth")


def test_a_file_that_is_garbage_is_refused_with_its_name_and_not_overwritten(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    step = plan_of(driver, STATES[0]("slurm")).steps[0]
    (tmp_path / "sol" / "slurm").mkdir()
    file = tmp_path / "sol" / "slurm" / "sacctmgr.txt"
    file.write_text("drop table accounts\n")
    for deed in (driver.read, lambda: driver.apply(step)):
        with pytest.raises(DriverError, match=r"slurm/sacctmgr\.txt") as caught:
            deed()
        assert caught.value.code == "refused"
    assert file.read_text() == "drop table accounts\n"


CRASH = """
import os, sys
from pathlib import Path
import tests.drivers.test_files as here
from console.drivers import files
instant, folder = sys.argv[1], Path(sys.argv[2])
driver = here.opened(folder)
steps = here.plan_of(driver, here.STATES[1]("slurm")).steps
driver.apply(steps[0])
if instant == "before the rename":
    files.os.fsync = lambda handle: os.kill(os.getpid(), 9)
elif instant == "before the commit":
    files._sync_folder = lambda folder: os.kill(os.getpid(), 9)
else:
    os.kill(os.getpid(), 9)
driver.apply(steps[1])
"""


@pytest.mark.parametrize("instant", ["between two steps", "before the rename", "before the commit"])
def test_killed_at_any_instant_it_converges_and_loses_nothing(tmp_path: Path, instant: str) -> None:
    driver = opened(tmp_path)
    for step in plan_of(driver, STATES[0]("slurm")).steps:
        driver.apply(step)
    here = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, instant, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(here)},
        cwd=here,
        timeout=60,
        check=False,
    )
    assert done.returncode == -9
    wanted = STATES[1]("slurm")
    for step in plan_of(driver, wanted).steps:
        assert driver.apply(step).ok
    assert plan_of(driver, wanted).is_empty
    assert texts(tmp_path, "slurm") == dialect("slurm").files(dialect("slurm").render(wanted, None))


def test_a_second_writer_is_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, other = opened(tmp_path), opened(tmp_path)
    step = plan_of(driver, STATES[0]("slurm")).steps[0]
    refused: list[DriverError] = []
    real = files_module.FolderOfFiles._replace

    def replace_while_another_tries(self: FolderOfFiles, name: str, text: str) -> None:
        with pytest.raises(DriverError) as caught:
            other.apply(step)
        refused.append(caught.value)
        real(self, name, text)

    monkeypatch.setattr(files_module.FolderOfFiles, "_replace", replace_while_another_tries)
    assert driver.apply(step).ok
    assert {(error.code, error.retryable) for error in refused} == {("refused", True)}


def test_a_lock_left_by_a_killed_git_does_not_stop_a_push(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    steps = plan_of(driver, STATES[0]("slurm")).steps
    driver.apply(steps[0])
    lock = tmp_path / "sol" / ".git" / "index.lock"
    lock.touch()
    assert "the history was not written" in driver.apply(steps[1]).output
    os.utime(lock, (1, 1))
    assert driver.apply(steps[2]).ok
    assert messages(tmp_path)[-1] == f"{steps[2].verb} {steps[2].object_class} {steps[2].name}"


def test_a_folder_that_is_not_mounted_is_unreachable_and_not_empty(tmp_path: Path) -> None:
    driver = opened(tmp_path / "share" / "clusters")
    assert not driver.ping().ok
    with pytest.raises(DriverError) as caught:
        driver.read()
    assert (caught.value.code, caught.value.retryable) == ("unreachable", True)


@pytest.mark.parametrize("name", ["../sol", "", ".git", "a/b"])
def test_a_cluster_whose_name_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DriverError):
        FolderOfFiles(replace(Endpoint("sol", "slurm", "files", dir=str(tmp_path)), cluster=name), Credentials())
