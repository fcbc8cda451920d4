"""Do the Slurm commands run with limits, without a shell, and over ssh exactly as here? (with stand-in programs)"""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from console.drivers.base import DriverError, Endpoint
from console.drivers.commands import run
from console.drivers.credentials import Credentials
from console.drivers.slurm_cli import SlurmCommands
from scheduling.plan import Step

ODD = "a 'quoted' \"name\" $(touch {}) ; `id` \\ *"


def program(folder: Path, name: str, script: str) -> Path:
    """A stand-in for a command, run by a shell."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def opened(folder: Path, seconds: float = 10, **options: Any) -> SlurmCommands:
    endpoint = Endpoint("sol", "slurm", "slurm_cli", conf="/etc/sol.conf", commands=str(folder), **options)
    return SlurmCommands(endpoint, Credentials(registered=endpoint.registered), seconds=seconds)


def a_step(*argvs: tuple[str, ...]) -> Step:
    return Step("create", "reservation", "berth-R-1", (), argvs, ())


def test_arguments_arrive_as_they_are_and_the_environment_is_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "/somebody/elses.conf")
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "1")
    program(tmp_path, "scontrol", 'printf "[%s]" "$@"; echo; env')
    odd = ODD.format(tmp_path / "made")
    applied = opened(tmp_path).apply(a_step(("scontrol", "create", odd)))
    assert f"[create][{odd}]" in applied.output
    assert not (tmp_path / "made").exists()
    for variable in ("SLURM_CONF=/etc/sol.conf", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "LC_ALL=C"):
        assert variable in applied.output
    assert "SECRET_OF_THE_WORKER" not in applied.output


def test_over_ssh_the_same_arguments_arrive(tmp_path: Path) -> None:
    program(tmp_path, "scontrol", 'printf "[%s]" "$@"; echo; env')
    program(tmp_path, "ssh", f'echo "$@" >{tmp_path}/asked; for last; do :; done; exec /bin/sh -c "$last"')
    (tmp_path / "hosts").write_text("")
    files = {"ssh": "berth@login", "host_key_file": str(tmp_path / "hosts")}
    endpoint = Endpoint("sol", "slurm", "slurm_cli", conf="/etc/sol.conf", commands=str(tmp_path), **files)
    credentials = Credentials(registered=endpoint.registered)
    driver = SlurmCommands(endpoint, credentials, ssh_program=str(tmp_path / "ssh"))
    odd = ODD.format(tmp_path / "made")
    applied = driver.apply(a_step(("scontrol", "create", odd)))
    assert f"[create][{odd}]" in applied.output
    assert "SLURM_CONF=/etc/sol.conf" in applied.output
    assert not (tmp_path / "made").exists()
    asked = (tmp_path / "asked").read_text()
    for option in ("-F none", "BatchMode=yes", "StrictHostKeyChecking=yes", "IdentityAgent=none", "ForwardAgent=no"):
        assert option in asked
    assert f"UserKnownHostsFile={tmp_path}/hosts" in asked


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "a@b@c", "login;id", "a@-x"])
def test_a_host_that_could_be_an_option_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(DriverError, match="USER@HOST"):
        opened(tmp_path, ssh=host, host_key_file="/etc/hosts")


def test_ssh_without_a_pinned_host_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="host key"):
        opened(tmp_path, ssh="berth@login")


@pytest.mark.parametrize("argv", [("sbatch", "job"), ("/bin/sh", "-c", "id"), ("../scontrol",), ()])
def test_only_the_two_commands_are_run(tmp_path: Path, argv: tuple[str, ...]) -> None:
    with pytest.raises(DriverError, match="only scontrol and sacctmgr") as caught:
        opened(tmp_path).apply(a_step(argv))
    assert caught.value.code == "refused"


def test_the_first_command_that_fails_ends_the_step(tmp_path: Path) -> None:
    program(
        tmp_path, "scontrol", f'echo "$1" >>{tmp_path}/ran; [ "$1" != second ] || {{ echo "Nodes busy" >&2; exit 1; }}'
    )
    step = a_step(("scontrol", "first"), ("scontrol", "second"), ("scontrol", "third"))
    applied = opened(tmp_path).apply(step)
    assert not applied.ok
    assert applied.sentence == "command 2 of 3 for berth-R-1 ended with 1: Nodes busy"
    assert (tmp_path / "ran").read_text().split() == ["first", "second"]


REFUSALS = {
    "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)": ("unreachable", True),
    "sacctmgr: error: Problem talking to the database: Connection refused": ("unreachable", True),
    "slurm_reconfigure error: Access/permission denied": ("credentials", False),
}


@pytest.mark.parametrize(("said", "meaning"), REFUSALS.items())
def test_a_cluster_that_could_not_be_asked_is_an_error(tmp_path: Path, said: str, meaning: tuple[str, bool]) -> None:
    program(tmp_path, "scontrol", f"echo {shlex.quote(said)} >&2; exit 1")
    for deed in (opened(tmp_path).read, lambda: opened(tmp_path).apply(a_step(("scontrol", "x")))):
        with pytest.raises(DriverError) as caught:
            deed()
        assert (caught.value.code, caught.value.retryable) == meaning
        assert said in caught.value.raw
    assert not opened(tmp_path).ping().ok


def test_an_empty_answer_is_partial_and_nothing_is_derived_from_it(tmp_path: Path) -> None:
    program(tmp_path, "scontrol", "exit 0")
    program(tmp_path, "sacctmgr", "exit 0")
    with pytest.raises(DriverError) as caught:
        opened(tmp_path).read()
    assert (caught.value.code, caught.value.retryable) == ("partial", True)


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    program(tmp_path, "scontrol", f"sleep 300 & echo $! >{tmp_path}/child; wait")
    with pytest.raises(DriverError) as caught:
        opened(tmp_path, seconds=0.5).read()
    assert (caught.value.code, caught.value.retryable) == ("timeout", True)
    state = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] in "ZX"


def test_a_command_that_floods_us_is_cut_off() -> None:
    with pytest.raises(DriverError) as caught:
        run([sys.executable, "-c", "while True: print('x' * 9999)"], {}, seconds=30, most_bytes=100_000)
    assert caught.value.code == "partial"


def test_control_characters_of_a_cluster_do_not_reach_a_page(tmp_path: Path) -> None:
    program(tmp_path, "scontrol", r"printf 'a\033[31mb\000c'")
    assert "a\ufffd[31mb\ufffdc" in opened(tmp_path).apply(a_step(("scontrol", "x"))).output


def test_a_command_that_is_not_installed_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.drivers.slurm_cli.USUAL_PLACES", str(tmp_path))
    with pytest.raises(DriverError, match="apt-get install slurm-client"):
        opened(tmp_path).read()
