"""Is a process ever mistaken for ours, and is one of ours ever left behind?"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.embedded.guardian import is_alive
from console.embedded.layout import Layout
from console.embedded.logs import rotate
from console.embedded.processes import ProcessTree, Server, stop_leftovers, take_lock
from console.embedded.record import Record, birth, command_line
from tests.frame.conftest import wait_for

_SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(_SLEEP, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_the_lock_of_a_home_is_held_once_and_freed_by_closing(home: Path) -> None:
    layout = Layout.make(home / "lock")
    lock = take_lock(layout)
    assert lock is not None
    assert take_lock(layout) is None
    lock.close()
    with take_lock(layout) or pytest.fail("the lock was not freed"):
        pass


def test_a_number_that_was_given_to_another_program_is_not_ours(home: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    layout = Layout.make(home / "reused")
    Record(command="up", processes={str(sleeper.pid): "1"}).write(layout.record)
    assert stop_leftovers(layout) == 0
    assert is_alive(sleeper.pid)


def test_a_recorded_process_is_stopped(home: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    layout = Layout.make(home / "recorded")
    Record(command="up", processes={str(sleeper.pid): birth(sleeper.pid)}).write(layout.record)
    assert stop_leftovers(layout) == 1
    assert not is_alive(sleeper.pid)
    assert layout.record.stat().st_mode & 0o777 == 0o600  # it names the database


def test_a_zombie_is_dead_and_has_no_command_line() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    wait_for(lambda: not is_alive(child.pid), "the child ends")
    assert command_line(child.pid) == ""
    child.wait()


def test_a_broken_record_is_no_record(home: Path) -> None:
    path = home / "broken.json"
    for text in ("", "[]", '{"command": "up", "surprise": 1}'):
        path.write_text(text)
        assert Record.read(path) is None


def test_the_guardian_stops_the_servers_of_a_killed_holder(home: Path) -> None:
    place = home / "guarded"
    program = (
        "import sys, time; from pathlib import Path; from console.embedded.layout import Layout;"
        "from console.embedded.processes import ProcessTree, Server;"
        f"tree = ProcessTree(Layout.make(Path({str(place)!r})), 'test');"
        f"tree.at_death(['touch', {str(place / 'told')!r}]);"
        f"tree.start(Server(name='sleeper', command={_SLEEP!r}));"
        "print('started', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "started\n"
        record = Record.read(place / "running.json")
        assert record is not None
        pids = [int(pid) for pid in record.processes]
        assert all(map(is_alive, pids))
        holder.kill()
    wait_for(lambda: not any(map(is_alive, pids)), "the guardian stops the server and ends")
    assert (place / "told").exists()


def test_a_command_is_ended_with_a_killed_holder(home: Path) -> None:
    place = home / "commanded"
    program = (
        "import os; from pathlib import Path; from console.embedded.layout import Layout;"
        "from console.embedded.processes import ProcessTree;"
        f"tree = ProcessTree(Layout.make(Path({str(place)!r})), 'test');"
        f"tree.run({_SLEEP!r}, dict(os.environ), lambda: not print('running', flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "running\n"
        record = Record.read(place / "running.json")
        assert record is not None
        guardian, command = map(int, record.processes)
        assert is_alive(command)
        holder.kill()
    wait_for(lambda: not is_alive(command) and not is_alive(guardian), "the guardian ends the command, and itself")


def test_a_command_says_what_it_said_and_is_stopped_when_it_is_not_wanted(home: Path) -> None:
    layout = Layout.make(home / "told")
    tree = ProcessTree(layout, "test")
    talk = "import sys; print('x' * 100_000); print('y', file=sys.stderr); sys.exit(3)"
    done = tree.run([sys.executable, "-c", talk], dict(os.environ))
    assert (done.returncode, len(done.stdout), done.stderr) == (3, 100_001, "y\n")
    assert tree.run(_SLEEP, dict(os.environ), lambda: False).returncode == -signal.SIGTERM
    assert len(tree.record.processes) == 1  # the guardian
    tree.close()


def test_a_server_that_ignores_the_gentle_signal_is_killed(home: Path) -> None:
    layout = Layout.make(home / "deaf")
    tree = ProcessTree(layout, "test")
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    server = tree.start(Server(name="deaf", command=[sys.executable, "-c", deaf], patience_seconds=0.2))
    assert server.process is not None
    pid = server.process.pid
    wait_for(lambda: "deaf" in (layout.logs / "deaf.log").read_text(), "it has turned deaf")
    tree.stop(server)
    tree.close()
    assert not is_alive(pid)
    assert not layout.record.exists()


def test_a_full_log_is_moved_aside_while_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    with log.open("ab", buffering=0) as writer:
        for number in range(6):
            writer.write(b"%d" % number * 10)
            assert rotate(log, full_bytes=10, kept=2)
        writer.write(b"end")
    assert log.read_bytes() == b"end"
    assert (tmp_path / "web.log.1").read_bytes() == b"5" * 10
    assert (tmp_path / "web.log.2").read_bytes() == b"4" * 10
    assert not (tmp_path / "web.log.3").exists()
    assert not rotate(log, full_bytes=10, kept=2)


def test_signals_to_a_group_reach_the_children_of_a_killed_parent(home: Path) -> None:
    parent = f"import subprocess, sys, time; print(subprocess.Popen({_SLEEP!r}).pid, flush=True); time.sleep(600)"
    layout = Layout.make(home / "orphans")
    tree = ProcessTree(layout, "test")
    server = tree.start(Server(name="parent", command=[sys.executable, "-c", parent]))
    assert server.process is not None
    wait_for(lambda: (layout.logs / "parent.log").read_text().strip(), "the child is there")
    child = int((layout.logs / "parent.log").read_text())
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    assert is_alive(child)
    tree.forget(server)
    wait_for(lambda: not is_alive(child), "the orphan is stopped")
    tree.close()
