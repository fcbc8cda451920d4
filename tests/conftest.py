"""What holds for every test: the order of the rooms, missing parts, and a clean database after a transactional test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db.backends.postgresql.operations import DatabaseOperations

from tests import parts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The quiet study first: where it is wrong, everything above it is. Real servers and browsers come last.
_ORDER = ("scheduling", "allocations", "reservations", "house", "frame", "drivers", "web", "api", "scenarios", "golden")
_LAST = ("races", "real", "journeys")
# With pytest-xdist one worker runs all of these, one after the other: they start servers that would starve each other.
_TOGETHER = ("frame", "races", "real", "journeys")
_CHROMIUM_FLAGS = (
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)


def _room(item: pytest.Item) -> str:
    below = item.path.relative_to(Path(__file__).parent).parts
    return below[0] if len(below) > 1 else ""


def _place(room: str) -> int:
    if room in _LAST:
        return len(_ORDER) + 1 + _LAST.index(room)
    return _ORDER.index(room) if room in _ORDER else len(_ORDER)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the rooms and keeps together what must not run beside itself."""
    items.sort(key=lambda item: _place(_room(item)))
    for item in items:
        if (room := _room(item)) in _TOGETHER:
            item.add_marker(pytest.mark.xdist_group("servers"))
        if room == "journeys":
            item.add_marker(pytest.mark.part("chromium"))
    if any("browser" in getattr(item, "fixturenames", ()) for item in items):
        # Playwright keeps an event loop in the thread of the test, in which Django would refuse every query.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose part is missing, or fails it where the part could have been installed."""
    for mark in item.iter_markers("part"):
        for name in mark.args:
            if why := parts.reason(name):
                if parts.is_failure(name):
                    pytest.fail(f"CI: {why}", pytrace=False)
                pytest.skip(why)


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """One Chromium for all tests of a worker: Playwright can be started only once in a process."""
    from playwright.sync_api import sync_playwright

    flags = [*_CHROMIUM_FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(_CHROMIUM_FLAGS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=parts.chromium(), args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session", autouse=True)
def _append_only_tables_can_be_emptied() -> Iterator[None]:
    """A transactional test ends by emptying every table; triggers refuse that for some, so they rest meanwhile."""
    with _resting_triggers():
        yield


@contextmanager
def _resting_triggers() -> Iterator[None]:
    original = DatabaseOperations.execute_sql_flush

    def flush(self: Any, statements: Any) -> None:
        rest = ("SET session_replication_role = replica", *statements, "SET session_replication_role = DEFAULT")
        original(self, rest)

    patch = pytest.MonkeyPatch()
    patch.setattr(DatabaseOperations, "execute_sql_flush", flush)
    yield
    patch.undo()
