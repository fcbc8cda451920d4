"""Do all pages and answers of the API tell of a cluster whose nodes lie in no rack?"""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import call_command
from django.test import Client

from allocations.models import Cluster, Flavor, Node, Rack
from console import tokens
from console.push.endpoints import connect
from tests.parts import SHARED
from tests.reservations.world import NOW, World, grant

REAL = SHARED / "cases" / "files"
BARE = "NodeName=n[1-3] Arch=x86_64 Gres=gpu:h100:8 State=IDLE"
FILES = [
    ("slurm", "scontrol_nodes/clockwork-node-2.txt"),
    ("slurm", "scontrol_nodes/clockwork-node-small.txt"),
    ("slurm", "scontrol_nodes/sckyzo-24.11.7-oneline.txt"),
    ("slurm", "sinfo/gcm-sinfo.txt"),
    ("slurm", "sinfo/sckyzo-25.05-node-gres.txt"),
    ("slurm", "sinfo_json/clockwork-sinfo-1.json"),
    ("slurm", "sinfo_json/rivos-sinfo.json"),
    ("slurm", "slurmrestd_json/slurmweb-25.11-0.0.44-slurm-nodes.json"),
    ("kubernetes", "k8s_nodes/kwok-virtual-dgx-node.yaml"),
    ("kubernetes", "k8s_nodes/opensim-new-node.yaml"),
    ("kubernetes", "k8s_nodes/opensim-pai-node-01.yaml"),
]


@pytest.fixture
def mine(world: World, tmp_path: Path) -> Any:
    """`mine(kind, file)`: the cluster of that name, with what the file tells and plenty for acme/vision."""

    def made(kind: str, file: Path) -> Cluster:
        scheduler = "kueue" if kind == "kubernetes" else "slurm"
        options = {"dir": str(tmp_path)}
        connect(name="mine", kind=scheduler, driver="files", options=options, actor=None, at=NOW)
        call_command("import_fleet", "mine", str(file), "--kind", kind)
        for flavor in Flavor.objects.filter(cluster__name="mine"):
            grant(world.team, flavor)
        return Cluster.objects.get(name="mine")

    return made


@pytest.mark.part("shared")
@pytest.mark.parametrize(("kind", "name"), FILES)
def test_no_page_breaks_on_nodes_without_racks(world: World, visit: Any, mine: Any, kind: str, name: str) -> None:
    cluster = mine(kind, REAL / name)
    rack, node = Rack.objects.filter(cluster=cluster).first(), Node.objects.filter(cluster=cluster).first()
    assert rack is not None and rack.is_pseudo and node is not None
    place, form = quote(rack.name), f"team=acme/vision&cluster=mine&flavor={rack.flavor.name}&duration=1+day"
    sizes = ("nodes=1", "gpus=1", "racks=1", "nodes=9999", "racks=1&same_block=on")
    asks = [f"/reservations/new{tail}?{form}&{size}" for tail in ("", "/answer") for size in sizes]
    pages = [
        *("/", "/fleet", "/fleet/mine", f"/fleet/mine/{place}", "/clusters", "/clusters/mine", "/board?cluster=mine"),
        *("/board?cluster=mine&span=day", "/find?q=mine", f"/find?q={node.name}", "/reservations?cluster=mine"),
        *asks,
    ]
    api = ["racks?cluster=mine", f"racks/mine/{place}", "nodes?cluster=mine", f"nodes/mine/{node.name}"]
    api += ["clusters/mine", "flavors?cluster=mine", f"flavors/mine/{rack.flavor.name}"]
    for who in ("lead", "operator"):
        client: Client = visit(who)
        statuses = {page: client.get(page, follow=True).status_code for page in pages}
        assert {page: each for page, each in statuses.items() if each not in (200, 403)} == {}
        _, secret = tokens.create(owner=getattr(world, who), name="x", scopes=["read"], days=1, at=NOW)
        read = Client(headers={"Authorization": f"Bearer {secret}"})
        assert {read.get(f"/api/v1/{path}").status_code for path in api} == {200}


def test_nodes_without_racks_are_shown_as_one(visit: Any, words: Any, mine: Any, tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(BARE)
    mine("slurm", tmp_path / "nodes.txt")
    client = visit("lead")
    says = words(client.get("/fleet/mine"))
    assert "Nodes without a rack" in says and "block" not in says.partition("Racks now")[0]
    assert "0 racks" not in says
    name = Rack.objects.get(is_pseudo=True).name
    says = words(client.get(f"/fleet/mine/{quote(name)}"))
    assert "Nodes without a rack" in says and all(f"n{number}" in says for number in (1, 2, 3))


def test_an_ask_for_nodes_without_racks_is_answered_in_words(visit: Any, words: Any, mine: Any, tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(BARE)
    mine("slurm", tmp_path / "nodes.txt")
    flavor = Flavor.objects.get(cluster__name="mine").name
    ask = {"team": "acme/vision", "cluster": "mine", "flavor": flavor, "duration": "1 day"}
    says = words(visit("lead").get("/reservations/new", {**ask, "nodes": "1"}))
    assert " 1 node. The earliest start there is." in says and "no rack" not in says.partition("Where")[0]
    says = words(visit("lead").get("/reservations/new", {**ask, "racks": "1", "nodes_per_rack": "1"}))
    assert "1 rack with 1 node can never be had" in says
    assert "with 1 node instead of racks" in says
    assert "several blocks" not in says and "crosses the spine" not in says
