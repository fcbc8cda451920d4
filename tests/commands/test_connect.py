"""Does connect keep references alone, refuse what cannot work, and change only what it is told?"""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import base, call_command
from django.core.management.base import CommandError

from allocations.models import Cluster, Event
from console.management.base import UsageParser
from console.models import ClusterEndpoint

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _usage_is_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "CommandParser", UsageParser)


def endpoint() -> ClusterEndpoint:
    return ClusterEndpoint.objects.select_related("cluster").get(cluster__name="sol")


def files(folder: Path, *more: str) -> tuple[str, ...]:
    return ("sol", "--kind", "slurm", "--driver", "files", "--dir", str(folder), *more)


def test_a_new_cluster_is_only_observed(tmp_path: Path) -> None:
    call_command("connect", *files(tmp_path))
    assert endpoint().modes == {"*": "observe"}
    assert endpoint().options == {"dir": str(tmp_path)}
    assert endpoint().cluster.zone == "UTC"


def test_a_changed_endpoint_is_only_observed_unless_a_mode_is_named(tmp_path: Path, capsys: Any) -> None:
    call_command("connect", *files(tmp_path, "--mode", "enforce"))
    assert "Lowered" not in capsys.readouterr().out
    call_command("connect", *files(tmp_path / "another"))
    assert endpoint().modes == {"*": "observe"}
    assert "modes: * observe.\nLowered from * enforce" in capsys.readouterr().out


def test_the_same_again_changes_nothing_and_keeps_the_zone(tmp_path: Path) -> None:
    call_command("connect", *files(tmp_path, "--mode", "enforce", "--zone", "Europe/Zurich"))
    events = Event.objects.count()
    call_command("connect", *files(tmp_path, "--mode", "enforce"))
    assert Event.objects.count() == events
    assert (endpoint().modes, endpoint().cluster.zone) == ({"*": "enforce"}, "Europe/Zurich")


def test_a_token_is_kept_by_the_name_of_its_file_alone(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    call_command(
        "connect", "luna", "--kind", "kueue", "--driver", "kubernetes", "--url", "https://luna.example:6443",
        "--token-file", str(tmp_path / "token"),
    )  # fmt: skip
    (row,) = ClusterEndpoint.objects.values("options", "credential")
    assert row["options"]["token_file"] == str(tmp_path / "token")
    assert "s3cret" not in str(row) + str(list(Event.objects.values("before", "after", "sentence")))


@pytest.mark.parametrize(
    "arguments",
    [
        ("sol", "--kind", "slurm", "--driver", "files"),
        ("sol", "--kind", "slurm", "--driver", "slurm_cli"),
        ("sol", "--kind", "kueue", "--driver", "kubernetes"),
        ("sol", "--kind", "slurm", "--driver", "slurmrestd", "--url", "http://localhost"),
        ("sol", "--kind", "pbs", "--driver", "files", "--dir", "x"),
        ("sol", "--kind", "slurm", "--driver", "files", "--dir", "x", "--mode", "always"),
    ],
)
def test_a_line_that_makes_no_sense_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("connect", *arguments)
    assert refused.value.returncode == 64
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sol", "--kind", "slurm", "--driver", "slurm_cli", "--conf", "/no/slurm.conf"), "there is no file"),
        (("sol", "--kind", "slurm", "--driver", "kubernetes", "--url", "https://x"), "does not reach a slurm"),
        (("sol", "--kind", "slurm", "--driver", "files", "--dir", "x", "--zone", "Mars/Base"), "time zone"),
        (("sol", "--kind", "slurm", "--driver", "files", "--dir", "x", "--zone", "Europe"), "time zone"),
        (("Sol!", "--kind", "slurm", "--driver", "files", "--dir", "x"), "name"),
    ],
)
def test_what_cannot_work_is_refused_whole(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("connect", *arguments)
    assert refused.value.returncode == 1
    assert said in str(refused.value)
    assert not Cluster.objects.exists() and not ClusterEndpoint.objects.exists()


def test_a_kind_is_for_life(tmp_path: Path) -> None:
    call_command("connect", *files(tmp_path))
    with pytest.raises(CommandError, match="another name"):
        call_command("connect", "sol", "--kind", "kueue", "--driver", "files", "--dir", str(tmp_path))
    assert endpoint().cluster.kind == "slurm"
