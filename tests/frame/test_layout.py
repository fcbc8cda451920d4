"""Do the folders of an installation land where a socket and an unprivileged account can reach them?"""

import os
from pathlib import Path

import pytest

from console.embedded import layout
from console.embedded.layout import Layout, default_home, is_reachable, server_account


def test_everything_lies_below_a_plain_home(home: Path) -> None:
    made = Layout.make(home / "plain")
    assert made.run == made.home / "run"
    assert made.logs.is_dir() and not made.is_split


@pytest.mark.parametrize("name", ["a folder", "n" * 110, "käfig"])
def test_sockets_leave_a_home_whose_name_is_long_or_odd(home: Path, name: str) -> None:
    made = Layout.make(home / name)
    try:
        assert made.home == home / name
        assert len(str(made.run / "pg" / ".s.PGSQL.5432")) < 100
        assert " " not in str(made.run) and made.run.is_dir()
    finally:
        made.run.rmdir()


def test_two_homes_never_share_a_socket_folder(home: Path) -> None:
    made = [Layout.make(home / name) for name in ("first one", "second one")]
    for each in made:
        each.run.rmdir()
    assert made[0].run != made[1].run


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an account beside its own for the database")
def test_as_root_database_files_leave_a_home_that_is_closed_to_their_account(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_SHARED_PARENT", home / "shared-parent")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    made = Layout.make(closed / "var")
    assert made.is_split and made.home == closed / "var"
    assert made.database_home.parent == home / "shared-parent"
    assert is_reachable(made.database_home, server_account())


def test_an_unset_home_is_var_in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTH_HOME")
    assert default_home() == layout.CHECKOUT / "var"
    monkeypatch.setenv("BERTH_HOME", "/srv/berth")
    assert default_home() == Path("/srv/berth")
