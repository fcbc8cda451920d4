"""How many queries does each answer take? (pinned: the same for one row and for many)"""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.callers import Caller
from tests.api.test_lists import rows
from tests.api.test_reservations import Of, put_endpoint, wanted
from tests.reservations.asks import approved, ask
from tests.reservations.world import World


def count(call: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as seen:
        call()
    return len([each for each in seen if "SAVEPOINT" not in each["sql"]])


@pytest.fixture
def lead(world: World, of: Of) -> Caller:
    who = of("lead")
    who.get("me")  # the token's last use is noted once a minute
    return who


READS = {
    "me": 3,
    "tokens": 2,
    "clusters": 9,
    "flavors": 8,
    "racks": 6,
    "nodes": 4,
    "reservations": 9,
    "decisions": 4,
}


@pytest.mark.parametrize("path", READS)
def test_a_list_takes_as_many_queries_for_many_as_for_one(world: World, lead: Caller, path: str) -> None:
    put_endpoint(world)
    approved(world)
    few = count(lambda: lead.get(path))
    rows(world, 20)
    ask(world)
    assert count(lambda: lead.get(path)) == few == READS[path]


def test_one_reservation(world: World, lead: Caller) -> None:
    row = approved(world)
    assert count(lambda: lead.get(f"reservations/{row.public_id}")) == 9


def test_one_node(world: World, lead: Caller) -> None:
    assert count(lambda: lead.get("nodes/sol/sol0001")) == 5


def test_a_preview(world: World, lead: Caller) -> None:
    content = {key: value for key, value in wanted(world).items() if key != "purpose"}
    lead.post("reservations/preview", content)
    assert count(lambda: lead.post("reservations/preview", content)) == 15
