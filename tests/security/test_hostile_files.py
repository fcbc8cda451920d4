"""Is a hostile file refused whole, with its place and a reason? (policy and inventory: bombs, binary, links, sizes)"""

import os
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from allocations.models import Cluster, Event, Node, Rack, Team
from console.management.commands import import_fleet as importing

LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
POLICIES = {
    "a bomb of aliases": LAUGHS,
    "an anchor alone": "teams:\n- &t {path: acme}\n",
    "a merge key": "base: &b {path: x}\nteams:\n- <<: *b\n",
    "a tag that makes objects": "teams:\n- !!python/object/apply:os.system [true]\n",
    "a tag of a time": "teams:\n- {path: !!timestamp 2001-01-01}\n",
    "depth": "teams: " + "[" * 5000,
    "NUL": "teams:\n- {path: 'ac\0me'}\n",
    "an escaped NUL": 'teams:\n- {path: "ac\\0me"}\n',
    "an escaped NUL in a title": 'teams:\n- {path: fine}\n- {path: acme, title: "a\\0b"}\n',
    "a lone surrogate": 'teams:\n- {path: fine}\n- {path: acme, title: "a\\ud800b"}\n',
    "two documents": "teams: []\n---\nteams: []\n",
    "a key twice": "teams: []\nteams: []\n",
    "markup as a name": "teams:\n- {path: fine}\n- {path: '<script>'}\n",
    "a path upwards": "teams:\n- {path: fine}\n- {path: fine/..}\n",
    "shares beyond every scheduler": "teams:\n- {path: fine}\n- {path: acme, shares: 99999999999}\n",
    "negative shares": "teams:\n- {path: fine}\n- {path: acme, shares: -1}\n",
    "a name beyond its column": f"teams:\n- {{path: fine}}\n- {{path: {'a' * 3000}}}\n",
    "an address that is none": "teams:\n- {path: fine}\npeople:\n- {email: 'a\\0@b'}\n",
    "an escaped NUL in an address": 'teams:\n- {path: fine}\npeople:\n- {email: "a\\0@b.org"}\n',
    "a person with a long name": f"teams:\n- {{path: fine}}\npeople:\n- {{email: a@b.org, name: {'a' * 3000}}}\n",
    "a role that is none": "teams:\n- {path: fine}\npeople:\n- {email: a@b.org, roles: [{role: root}]}\n",
    "a role of no name": "teams:\n- {path: fine}\npeople:\n- {email: a@b.org, roles: [{role: [admin]}]}\n",
    "a role on no team": 'teams:\n- {path: fine}\npeople:\n- {email: a@b.org, roles: [{role: lead, team: "x\\0"}]}\n',
    "a priority beyond its column": "teams:\n- {path: fine}\ntiers:\n- {name: high, priority: 999999999999999999}\n",
    "a tier with a NUL": 'teams:\n- {path: fine}\ntiers:\n- {name: "hi\\0gh", priority: 1}\n',
    "a tier that preempts a number": "teams:\n- {path: fine}\ntiers:\n- {name: high, priority: 1, preempts: [[1]]}\n",
    "a rule with a depth": "teams:\n- {path: fine}\napproval_policies:\n- {name: x, steps: [[[[]]]]}\n",
    "a rule that holds for ever": "teams:\n- {path: fine}\napproval_policies:\n"
    "- {name: x, hold_minutes: 99999999999, steps: [{role: approver, quorum: 1}]}\n",
    "a rule with an endless quorum": "teams:\n- {path: fine}\napproval_policies:\n"
    "- {name: x, steps: [{role: approver, quorum: 99999999999}]}\n",
    "a rule at no place": "teams:\n- {path: fine}\napproval_policies:\n- {name: x, position: 99999999999, steps: []}\n",
    "a limit without end": "teams:\n- {path: fine}\nreservation_policies:\n- {name: x, lead_minutes: 99999999999}\n",
    "a percentage of thousands": "teams:\n- {path: fine}\nreservation_policies:\n"
    "- {name: x, team_share_percent: 9999}\n",
}
GRANT = "teams:\n- {path: fine}\nallocations:\n- {team: fine, cluster: sol, flavor: gb200, "
ALLOCATIONS = {
    "a year beyond all": GRANT + "start_at: '9999-12-31T23:59:59-14:00', end_at: '9999-12-31', guaranteed_gpus: 1}\n",
    "the first year": GRANT + "start_at: '0001-01-01T00:00:00+14:00', end_at: '2028-01-01', guaranteed_gpus: 1}\n",
    "a negative guarantee": GRANT + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: -5}\n",
    "a guarantee beyond its column": GRANT
    + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: 999999999999999999}\n",
    "GPU-hours beyond their column": GRANT
    + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: 0, gpu_hours: 999999999999999999}\n",
    "GPU-hours below nothing": GRANT
    + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: 0, gpu_hours: -1.5}\n",
    "a walltime beyond its column": GRANT
    + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: 0, max_walltime_minutes: 99999999999}\n",
    "a walltime in halves": GRANT
    + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: 0, max_walltime_minutes: 1.5}\n",
    "a reason with a NUL": GRANT + "start_at: '2027-01-01', end_at: '2028-01-01', guaranteed_gpus: 0, "
    'reason: "a\\0b"}\n',
}


def refused(*line: str) -> str:
    """The reason of a command that refuses; anything but a refusal with a reason fails here."""
    with pytest.raises(CommandError) as error:
        call_command(*line)
    assert "Traceback" not in str(error.value)
    return str(error.value)


@pytest.fixture
def sol(db: None) -> Cluster:
    from tests.reservations.world import make_world

    return make_world(racks=1, nodes=1).cluster


@pytest.mark.parametrize("what", [*POLICIES, *ALLOCATIONS])
def test_a_hostile_policy_is_refused_whole_with_its_line(sol: Cluster, tmp_path: Path, what: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_bytes({**POLICIES, **ALLOCATIONS}[what].encode("utf-8", "surrogatepass"))
    events = Event.objects.count()
    assert refused("apply_policy", str(file)).startswith(f"{file}:")
    assert not Team.objects.filter(path="fine").exists()
    assert Event.objects.count() == events


@pytest.mark.parametrize(
    "content", [os.urandom(4096), b"\x7fELF" + b"\0" * 999, b"\x1f\x8b\x08\0\0", b"\xff\xfet\0e\0"]
)
def test_a_binary_file_is_refused(sol: Cluster, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "binary"
    file.write_bytes(content)
    assert refused("apply_policy", str(file)).startswith(f"{file}:")
    for kind in ("slurm", "kubernetes"):
        assert refused("import_fleet", "sol", str(file), "--kind", kind).startswith(f"{file}:")
    assert (Rack.objects.count(), Node.objects.count()) == (1, 1)


def test_fifty_megabytes_are_refused_before_they_are_understood(sol: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_text("teams:\n" + "- {path: a}\n" * 4_300_000)
    assert "characters of YAML" in refused("apply_policy", str(file))
    assert "characters of YAML" in refused("import_fleet", "sol", str(file), "--kind", "kubernetes")


def test_a_file_beyond_all_bounds_is_not_read(sol: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "endless"
    with file.open("wb") as sparse:
        sparse.truncate(importing.MAX_BYTES + 1)
    assert "at most" in refused("import_fleet", "sol", str(file), "--kind", "slurm")


@pytest.mark.parametrize("path", ["/dev/zero", "."])
def test_what_is_no_file_is_not_read(sol: Cluster, path: str) -> None:
    assert refused("import_fleet", "sol", path, "--kind", "slurm").startswith(f"{path}:")
    assert refused("apply_policy", path).startswith(f"{path}:")


@pytest.mark.parametrize("target", ["../secret.conf", "/etc/hostname", "sub/../../secret.conf", "link.conf", "%h.conf"])
def test_include_reaches_nothing_outside_the_upload(sol: Cluster, tmp_path: Path, target: str) -> None:
    (tmp_path / "secret.conf").write_text("NodeName=secret1 Gres=gpu:gb200:4 CPUs=1\n")
    upload = tmp_path / "upload"
    upload.mkdir()
    (upload / "link.conf").symlink_to(tmp_path / "secret.conf")
    conf = upload / "slurm.conf"
    conf.write_text(f"ClusterName=sol\nInclude {target}\n")
    said = refused("import_fleet", "sol", str(conf), "--kind", "slurm")
    assert said.startswith(f"{conf}:2")
    assert "secret1" not in said
    assert not Node.objects.filter(name__startswith="secret").exists()


@pytest.mark.parametrize(
    "names",
    [
        "n[1-999999999]",
        "n[0-99][0-99][0-99][0-99]",
        "n[1-99999999999999999999]",
        "n[5-1]",
        "n[[1-2]]",
        "n[1-2",
        "@all",
        "a!b",
    ],
)
def test_a_bomb_of_node_names_is_refused_with_its_line(sol: Cluster, tmp_path: Path, names: str) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"ClusterName=sol\nNodeName={names} Gres=gpu:gb200:4 CPUs=1\n")
    assert refused("import_fleet", "sol", str(conf), "--kind", "slurm").startswith(f"{conf}:2")
    assert Node.objects.count() == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"nodes": ' + "[" * 100_000,
        '{"nodes": [{"name": ' + "9" * 10_000 + "}]}",
        '{"nodes": [{"name": "n1", "name": "n2"}]}',
        '{"nodes": 1e999}',
        '{"nodes": [{"name": "n\\u00001", "gres": "gpu:gb200:4", "cpus": 1}]}',
        '{"nodes": [{"name": "n1", "gres": "gpu:gb200:99999999999999999999", "cpus": 1}]}',
    ],
    ids=lambda text: text[:40],
)
def test_hostile_json_is_refused_with_its_line(sol: Cluster, tmp_path: Path, text: str) -> None:
    file = tmp_path / "nodes.json"
    file.write_text(text)
    assert refused("import_fleet", "sol", str(file), "--kind", "slurm").startswith(f"{file}:")
    assert Node.objects.count() == 1
