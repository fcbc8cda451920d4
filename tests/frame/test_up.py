"""Does `up` survive whatever is killed, stop cleanly, and refuse a second one?"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.embedded.guardian import is_alive
from tests.frame.conftest import Up, wait_for


def _pid_of(up: Up, word: str) -> int:
    for pid in up.pids()[1:]:
        line = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if word in line.stdout:
            return pid
    raise AssertionError(f"no process {word}: {up.said()}")


def test_the_address_and_the_sign_ins_are_printed_at_each_start(running: Up) -> None:
    said = running.output.read_text()
    assert f"http://127.0.0.1:{running.port}/" in said
    kept = (running.home / "demo-passwords").read_text().strip()
    assert kept and kept in said
    assert (running.home / "demo-passwords").stat().st_mode & 0o777 == 0o600


def test_a_second_up_is_refused_and_names_the_running_one(running: Up) -> None:
    refused = running.command("up")
    assert refused.returncode == 1
    assert f"http://127.0.0.1:{running.port}/" in refused.stderr
    assert running.answers()


def test_a_command_joins_the_running_up(running: Up) -> None:
    before = set(running.pids())
    listed = running.command("showmigrations", "--plan")
    assert listed.returncode == 0, listed.stderr
    assert "[X]  allocations.0001" in listed.stdout
    assert set(running.pids()) == before


def test_a_taken_port_is_named(running: Up, tmp_path: Path) -> None:
    other = Up(tmp_path)
    other.port = running.port
    refused = other.command("up")
    assert refused.returncode == 1
    assert re.search(rf"port {running.port} .*--port", refused.stderr)


def test_each_server_is_started_again_after_kill_9(running: Up) -> None:
    for word in ("postgres", "valkey-server", "granian", "worker", "beat"):
        killed = _pid_of(running, word)
        running.kill(killed)
        wait_for(lambda killed=killed: len(running.pids()) == 7 and killed not in running.pids(), f"{word} is back")
    wait_for(running.answers, "the web server answers again")
    assert running.command("showmigrations", "allocations").returncode == 0


def test_the_guardian_stops_everything_when_the_supervisor_is_killed(running: Up) -> None:
    pids = running.pids()
    running.kill(pids[0])
    wait_for(lambda: not any(map(is_alive, pids)), "the guardian stops everything")


def test_the_next_up_stops_what_a_killed_supervisor_and_guardian_left(running: Up) -> None:
    pids = running.pids()
    running.kill(pids[0], pids[1])
    assert any(map(is_alive, pids))
    running.start()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert "an earlier run had left" in running.output.read_text()


def test_the_next_up_starts_after_everything_was_killed_at_once(running: Up) -> None:
    running.kill(*running.pids())
    assert running.start().answers()


def test_ctrl_c_stops_every_process_and_exits_0(running: Up) -> None:
    pids = running.pids()
    assert len(pids) == 7  # supervisor, guardian, postgres, valkey, web, worker, beat
    assert running.answers()
    assert running.stop() == 0, running.said()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert not (running.home / "running.json").exists()


@pytest.fixture
def fresh(home: Path) -> Iterator[Up]:
    """An `up` on an empty home of its own, stopped at the end."""
    place = home / "fresh"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    up = Up(place)
    yield up
    pids = up.pids() if (place / "running.json").exists() else []
    up.stop()
    wait_for(lambda: not any(map(is_alive, pids)), "everything has stopped")


def _is_whole(up: Up) -> bool:
    """Whether the demo can be signed in to and its clusters hold what they should, soon after it is ready."""
    wait_for(lambda: up.command("reconcile", "--cluster", "sol", "--dry-run").returncode == 0, "sol is in step")
    return (up.home / "demo-passwords").read_text().strip() in up.output.read_text()


@pytest.mark.parametrize("mark", ["demo-passwords", "clusters/sol/slurm/sacctmgr.txt"])
def test_everything_killed_at_the_end_of_the_seeding_is_followed_by_a_whole_demo(fresh: Up, mark: str) -> None:
    """Just before the seed's commit, and just after it, when the worker has begun to write on the clusters."""
    fresh.launch()
    wait_for((fresh.home / mark).exists, f"the seeding has come to {mark}")
    fresh.kill(*fresh.pids())
    fresh.start()
    assert _is_whole(fresh)


def test_ctrl_c_ends_a_seeding_at_once_and_the_next_up_makes_it(fresh: Up) -> None:
    fresh.launch()
    wait_for(lambda: (fresh.home / "running.json").exists() and _seeding(fresh), "the seeding has begun")
    seeding = _seeding(fresh)
    assert fresh.stop() == 0, fresh.said()
    assert not is_alive(seeding)
    assert not (fresh.home / "demo-passwords").exists()
    fresh.start()
    assert _is_whole(fresh)


def _seeding(up: Up) -> int:
    """The process that makes the demo, 0 while there is none."""
    for pid in up.pids():
        line = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if "seed_demo" in line.stdout:
            return pid
    return 0
