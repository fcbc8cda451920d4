"""Does a wrong command line exit with 64 in every command?"""

from argparse import ArgumentParser
from typing import Any

import pytest
from django.core.management import call_command, get_commands, load_command_class

from console.embedded import entrance
from console.management.base import BerthCommand, UsageError, exit_with_usage_status

OURS = sorted(name for name, app in get_commands().items() if app in ("console", "reservations", "allocations"))


@pytest.fixture(autouse=True)
def _usage_status(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.management import base

    monkeypatch.setattr(base, "CommandParser", base.CommandParser)  # undone after the test
    exit_with_usage_status()


@pytest.mark.parametrize("name", [*OURS, "migrate", "check", "shell"])
def test_an_unknown_option_exits_64(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = load_command_class(get_commands()[name], name)
    command._called_from_command_line = True
    with pytest.raises(SystemExit) as exited:
        command.run_from_argv(["manage.py", name, "--no-such-option"])
    assert exited.value.code == 64
    assert "usage: manage.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["no_such_command"], ["../up"], ["--no-such-option"], ["up", "--no-such-option"]]
)
def test_an_unknown_command_exits_64_and_starts_nothing(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any) -> None:
        pytest.fail("a server was started for a command that does not exist")

    monkeypatch.setattr(entrance, "database_for", start)
    monkeypatch.setattr(entrance, "_run_django", start)
    try:
        status = entrance.main(arguments)
    except SystemExit as exited:
        assert exited.code == 64
    else:
        assert status == 64


@pytest.mark.parametrize("port", ["0", "65536", "web", "-1", "٣", "9" * 5000])
def test_a_port_that_is_none_exits_64(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        entrance.main(["up", f"--port={port}"])
    assert exited.value.code == 64
    assert "is not a number between 1 and 65535" in capsys.readouterr().err


class Asking(BerthCommand):
    """A command with one option."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--status", type=int, default=0)

    def perform(self, **options: Any) -> int:
        if options["status"] < 0:
            raise UsageError("a status is not negative")
        return int(options["status"])


def test_a_status_that_a_command_returns_ends_the_process_with_it() -> None:
    call_command(Asking())
    with pytest.raises(SystemExit) as exited:
        call_command(Asking(), "--status", "2")
    assert exited.value.code == 2


def test_a_usage_error_found_by_the_command_exits_64(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        Asking().run_from_argv(["manage.py", "asking", "--status", "-1"])
    assert exited.value.code == 64
    assert "a status is not negative" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["reconcile", "--cluster", "sol"], True),
        (["reconcile", "--help"], False),
        (["export", "--demo", "--out", "x"], False),
        (["export", "--out", "x"], True),
        (["help"], False),
        (["bench", "--quick"], False),
    ],
)
def test_a_database_is_started_only_for_what_needs_one(arguments: list[str], expected: bool) -> None:
    assert entrance.needs_database(arguments) is expected
