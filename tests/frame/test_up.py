"""Does `up` survive whatever is killed, stop cleanly, and refuse a second one?"""

import re
import subprocess
from pathlib import Path

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
