"""Does reconcile make one pass, say what it did, and exit as promised?"""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError

from console.models import ClusterEndpoint, PushPlan
from console.push import endpoints
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(db: None) -> Iterator[World]:
    with time_machine.travel(NOW, tick=False):
        yield make_world(racks=4, nodes=4)


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    connect(tmp_path, "enforce")
    return tmp_path


def connect(folder: Path, mode: str) -> None:
    endpoints.connect(
        name="sol", kind="slurm", driver="files", options={"dir": str(folder)}, modes={"*": mode}, actor=None, at=NOW
    )


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and what was printed."""
    out = StringIO()
    try:
        call_command("reconcile", "--cluster", "sol", *arguments, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def test_a_difference_is_2_in_a_dry_run_then_written_and_then_0(world: World, folder: Path) -> None:
    reservation = approved(world)
    status, said = run("--dry-run")
    assert status == 2
    assert f"create reservation berth-{reservation.public_id}" in said
    assert "    accounts " in said and "→" not in said and "None" not in said  # what is new is no change from nothing
    assert not (folder / "sol" / "slurm").exists()
    assert run()[0] == 0
    assert reservation.public_id in (folder / "sol/slurm/reservations.txt").read_text()
    status, said = run("--dry-run")
    assert (status, "Nothing differs" in said) == (0, True)
    assert run()[0] == 0


def test_observe_mode_writes_nothing_and_exits_2(world: World, tmp_path: Path) -> None:
    connect(tmp_path, "observe")
    approved(world)
    assert run()[0] == run("--dry-run")[0] == 2
    assert not (tmp_path / "sol" / "slurm").exists()


def test_what_waits_for_a_person_exits_2(world: World, tmp_path: Path) -> None:
    connect(tmp_path, "propose")
    approved(world)
    status, said = run()
    assert status == 2
    assert "waiting" in said and "propose" in said
    assert PushPlan.objects.get().state == "waiting"


def test_a_cluster_that_cannot_be_reached_is_1_with_its_sentence(world: World, folder: Path) -> None:
    (folder / "sol").write_text("a file where the folder should be")
    for arguments in ((), ("--dry-run",)):
        status, said = run(*arguments)
        assert status == 1
        assert "is not there" in said


def test_a_push_at_work_exits_2(world: World, folder: Path) -> None:
    ClusterEndpoint.objects.update(lease_until=NOW.replace(year=2030))
    assert run()[0] == 2


def test_an_unknown_cluster_is_1() -> None:
    with pytest.raises(CommandError, match="no connected cluster") as refused:
        call_command("reconcile", "--cluster", "nowhere")
    assert refused.value.returncode == 1


def test_json_holds_each_step_with_its_changes_and_commands(world: World, folder: Path) -> None:
    reservation = approved(world)
    status, said = run("--dry-run", "--json")
    told: dict[str, Any] = json.loads(said)
    assert (status, told["cluster"], told["ended"]) == (2, "sol", "differs")
    step = next(each for each in told["steps"] if each["object_class"] == "reservation")
    assert (step["verb"], step["name"]) == ("create", f"berth-{reservation.public_id}")
    assert {"attribute": "nodes", "before": None, "after": "sol[0001-0008]"} in step["changes"]
    assert step["commands"][0].startswith("TZ=UTC scontrol create reservation")
