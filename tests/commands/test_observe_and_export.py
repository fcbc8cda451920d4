"""Do observe and export tell what is there and what should be, and exit as promised?"""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError

from allocations.models import Cluster, Node
from console.push import endpoints
from scheduling.dialects import KINDS
from tests.doubles.kube_api import KubeApi
from tests.push.passes import push
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, make_world


@pytest.fixture
def world(db: None) -> Iterator[World]:
    with time_machine.travel(NOW, tick=False):
        yield make_world(racks=2, nodes=4)


def test_a_node_that_is_not_ready_is_seen_and_the_same_again_changes_nothing(world: World, tmp_path: Path) -> None:
    Cluster.objects.update(kind="kueue")
    with KubeApi() as api:
        for name in Node.objects.values_list("name", flat=True):
            ready = "False" if name == "sol0003" else "True"
            status = {"conditions": [{"type": "Ready", "status": ready}], "capacity": {"nvidia.com/gpu": "4"}}
            spec = {"unschedulable": True} if name == "sol0005" else {}
            api.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status})
        config = api.write_kubeconfig(tmp_path / "config")
        endpoints.connect(
            name="sol", kind="kueue", driver="kubernetes", options={"kubeconfig": str(config)}, actor=None, at=NOW
        )
        out = StringIO()
        call_command("observe", "--cluster", "sol", stdout=out)
        assert "8 nodes read on sol, 2 changed." in out.getvalue()
        assert Node.objects.get(name="sol0003").condition != "healthy"
        assert Node.objects.get(name="sol0005").is_drained
        call_command("observe", "--cluster", "sol", stdout=(again := StringIO()))
        assert ", 0 changed." in again.getvalue()
        api.fail_next("GET *", status=503)
        with pytest.raises(CommandError) as refused:
            call_command("observe", "--cluster", "sol")
    assert refused.value.returncode == 1
    assert Node.objects.filter(condition="healthy", is_drained=False).count() == 6


@pytest.mark.django_db
def test_an_unknown_cluster_and_a_folder_of_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no connected cluster"):
        call_command("observe", "--cluster", "nowhere")
    endpoints.connect(name="sol", kind="slurm", driver="files", options={"dir": str(tmp_path)}, actor=None, at=NOW)
    with pytest.raises(CommandError, match="import_fleet"):
        call_command("observe", "--cluster", "sol")


def export(out: Path, *arguments: str) -> int:
    try:
        call_command("export", "--out", str(out), *arguments, stdout=StringIO())
    except SystemExit as ended:
        return int(str(ended.code))
    return 0


def test_an_export_is_byte_for_byte_what_a_push_writes(world: World, tmp_path: Path) -> None:
    endpoint = endpoints.connect(
        name="sol",
        kind="slurm",
        driver="files",
        options={"dir": str(tmp_path / "pushed")},
        modes={"*": "enforce"},
        actor=None,
        at=NOW,
    )
    approved(world)
    push(endpoint)
    assert export(tmp_path / "out", "--cluster", "sol") == 0
    for name in ("sacctmgr.txt", "reservations.txt"):
        exported = (tmp_path / "out/sol/slurm" / name).read_bytes()
        assert exported and exported == (tmp_path / "pushed/sol/slurm" / name).read_bytes()


def test_a_check_writes_nothing_and_is_2_only_when_the_folder_differs(world: World, tmp_path: Path) -> None:
    approved(world)
    assert export(tmp_path, "--check") == 2
    assert list(tmp_path.iterdir()) == []
    assert export(tmp_path) == 0
    assert export(tmp_path, "--check") == 0
    file = tmp_path / "sol/slurm/reservations.txt"
    file.write_text(file.read_text() + "\n")
    assert export(tmp_path, "--check") == 2


def test_the_demo_needs_no_database_and_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    assert export(tmp_path / "one", "--demo") == export(tmp_path / "two", "--demo") == 0

    def content(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    first = content(tmp_path / "one")
    assert first == content(tmp_path / "two")
    assert {name.split("/")[0] for name in first} == {f"demo-{kind}" for kind in KINDS}


@pytest.mark.django_db
def test_an_unknown_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no cluster nowhere"):
        call_command("export", "--out", str(tmp_path), "--cluster", "nowhere")
