"""Does the embedded database survive kill -9, keep its roles apart, and come back from a dump?"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from console.embedded import roles, servers
from console.embedded.layout import Layout
from console.embedded.postgres import SUPERUSER, Postgres
from console.embedded.processes import ProcessTree, stop_leftovers
from console.embedded.schema import bring_up_to_date
from tests.frame.conftest import Up


class Database:
    """One embedded database on a home, started and stopped by hand."""

    def __init__(self, home: Path) -> None:
        self.layout = Layout.make(home)
        self.start()

    def start(self) -> None:
        self.tree = ProcessTree(self.layout, "test")
        self.postgres: Postgres = servers.start_postgres(self.tree)
        self.urls = servers.finish_postgres(self.tree, self.postgres)

    @property
    def pid(self) -> int:
        process = self.tree.servers[0].process
        assert process is not None
        return process.pid

    def stop(self) -> None:
        for server in self.tree.servers:
            self.tree.stop(server)
        self.tree.close()


@pytest.fixture(scope="module")
def database(home: Path) -> Iterator[Database]:
    """Migrated as `up` does it."""
    database = Database(home)
    bring_up_to_date({**database.urls, "BERTH_HOME": str(home)}, servers.schema_stamp(database.layout))
    yield database
    database.stop()


def _rows(url: str, question: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(question.encode()).fetchall()


def test_the_web_role_owns_no_table(database: Database) -> None:
    owners = _rows(
        database.urls["DATABASE_URL"], "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    )
    assert owners == [(roles.OWNER,)]


def test_the_web_role_may_write_every_table_but_only_add_to_events(database: Database) -> None:
    asked = _rows(
        database.urls["DATABASE_URL"],
        "SELECT relname, has_table_privilege(oid, 'INSERT'), has_table_privilege(oid, 'UPDATE'),"
        " has_table_privilege(oid, 'DELETE'), has_table_privilege(oid, 'TRUNCATE'), has_table_privilege(oid, 'TRIGGER')"
        " FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    )
    rights = {row[0]: row[1:] for row in asked}
    for table in roles.APPEND_ONLY_TABLES:
        assert rights.pop(table) == (True, False, False, False, False)
    assert set(rights.values()) == {(True, True, True, False, False)}


def test_the_web_role_makes_no_table_and_cannot_become_the_owner(database: Database) -> None:
    for statement in ("CREATE TABLE mine ()", f"SET ROLE {roles.OWNER}", "DROP TABLE allocations_event"):
        with psycopg.connect(database.urls["DATABASE_URL"]) as web, pytest.raises(psycopg.errors.InsufficientPrivilege):
            web.execute(statement.encode())


def test_a_warm_start_asks_nobody_for_migrations(database: Database) -> None:
    nobody = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    assert bring_up_to_date(nobody, servers.schema_stamp(database.layout)) is False


def test_committed_rows_outlive_kill_9_of_the_server(database: Database) -> None:
    superuser = database.postgres.url(SUPERUSER)
    with psycopg.connect(superuser) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
    os.killpg(database.pid, signal.SIGKILL)
    stop_leftovers(database.layout)
    database.start()
    assert _rows(superuser, "SELECT count(*) FROM kept") == [(1000,)]
    with psycopg.connect(superuser) as connection:
        connection.execute("DROP TABLE kept")


def test_locks_that_name_a_living_stranger_do_not_stop_a_start(database: Database) -> None:
    database.stop()
    with subprocess.Popen(["sleep", "600"]) as stranger:
        locks = (database.postgres.data / "postmaster.pid", database.postgres.socket_folder / ".s.PGSQL.5432.lock")
        for lock in locks:
            lock.write_text(f"{stranger.pid}\n{database.postgres.data}\n")
        database.start()
        assert stranger.poll() is None
        stranger.kill()
    assert _rows(database.urls["DATABASE_URL"], "SELECT 1") == [(1,)]


def test_a_half_made_cluster_is_made_again(home: Path) -> None:
    half = Layout.make(home / "half")
    (half.database_home / "pg" / "data.new" / "base").mkdir(parents=True)
    database = Database(home / "half")
    assert _rows(database.urls["DATABASE_URL"], "SELECT 1") == [(1,)]
    database.stop()


def test_a_dump_restores_everything_into_another_home(home: Path) -> None:
    first, second, archive = Up(home / "first"), Up(home / "second"), home / "berth.dump"
    for up in (first, second):
        up.home.mkdir()
    made = first.command("seed_demo", "--scale", "small")
    assert made.returncode == 0, made.stderr
    dumped = first.command("dump", str(archive))
    assert dumped.returncode == 0, dumped.stderr
    assert archive.stat().st_mode & 0o777 == 0o600
    _add_a_later_table(second.home)
    restored = second.command("restore", str(archive))
    assert restored.returncode == 0, restored.stderr
    databases = [Database(up.home) for up in (first, second)]
    people = [_rows(each.urls["DATABASE_URL"], "SELECT * FROM allocations_user ORDER BY id") for each in databases]
    assert people[0] and people[0] == people[1]
    assert _rows(databases[1].urls["DATABASE_URL"], "SELECT to_regclass('later')") == [(None,)]
    with psycopg.connect(databases[1].urls["DATABASE_URL"]) as web, pytest.raises(psycopg.errors.InsufficientPrivilege):
        web.execute("DELETE FROM allocations_event")
    for each in databases:
        each.stop()


def _add_a_later_table(home: Path) -> None:
    """What a newer Berth than the dump's has: a table that the dump does not name, tied to one that it does."""
    newer = Database(home)
    bring_up_to_date({**newer.urls, "BERTH_HOME": str(home)}, servers.schema_stamp(newer.layout))
    with psycopg.connect(newer.urls["DATABASE_OWNER_URL"]) as owner:
        owner.execute("CREATE TABLE later (person bigint REFERENCES allocations_user)")
    newer.stop()


def test_a_file_that_is_no_dump_changes_nothing_and_exits_1(home: Path) -> None:
    up = Up(home / "refusing")
    up.home.mkdir()
    (home / "broken.dump").write_text("not a dump")
    assert up.command("restore", str(home / "broken.dump")).returncode == 1
    assert up.command("restore", str(home / "missing.dump")).returncode == 1
    assert up.command("showmigrations", "allocations").returncode == 0
