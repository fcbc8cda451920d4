"""Do the pages of a list hold every item once, whatever happens meanwhile?"""

import random
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from allocations.models import Node, Rack
from reservations.models import Reservation
from tests.api.callers import Caller, problem
from tests.api.test_reservations import Of
from tests.reservations.world import DAY, NOW, World


def rows(world: World, count: int) -> list[Reservation]:
    """Withdrawn asks, many of which start at the same moment."""
    return Reservation.objects.bulk_create(
        Reservation(
            cluster=world.cluster,
            team=world.team,
            flavor=world.flavor,
            decision="withdrawn",
            purpose=f"number {number}",
            spec={},
            start_at=NOW + (number % 3) * DAY,
            end_at=NOW + 9 * DAY,
            created_by=world.people["lead"],
        )
        for number in range(count)
    )


def walk(who: Caller, query: str, between: Any = None) -> list[str]:
    """Ids over all pages; `between` is called before each next page."""
    seen: list[str] = []
    page = who.get(f"reservations?{query}").json()
    while True:
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return seen
        if between:
            between()
        page = who.get(f"reservations?limit=2&cursor={page['next']}").json()


@pytest.mark.parametrize("order", ["id", "-id", "start_at", "-start_at", "start_at,-id", "-start_at,end_at,id"])
def test_every_item_comes_once_and_in_order(world: World, of: Of, order: str) -> None:
    made = rows(world, 7)
    random.Random(7).shuffle(made)
    keys = [(name.removeprefix("-"), name.startswith("-")) for name in order.split(",")]
    if keys[-1][0] != "id":
        keys.append(("id", keys[-1][1]))
    for name, is_down in reversed(keys):
        made.sort(key=lambda row: getattr(row, name), reverse=is_down)
    assert walk(of("lead"), f"limit=2&order={order}") == [row.public_id for row in made]


def test_what_is_added_or_changed_meanwhile_neither_repeats_nor_vanishes(world: World, of: Of) -> None:
    made = rows(world, 6)

    def meanwhile() -> None:
        rows(world, 1)
        Reservation.objects.update(purpose="changed", version=9)

    seen = walk(of("lead"), "limit=2&order=-id", meanwhile)
    assert seen == [row.public_id for row in reversed(made)]


def test_a_cursor_keeps_its_filters(world: World, of: Of) -> None:
    made = rows(world, 5)
    Reservation.objects.filter(pk__in=[row.pk for row in made[:3]]).update(decision="lapsed")
    assert len(walk(of("lead"), "limit=2&decision=lapsed")) == 3


def test_the_link_leads_to_the_next_page(world: World, of: Of) -> None:
    rows(world, 3)
    lead = of("lead")
    first = lead.get("reservations?limit=2&fields=id&order=id")
    target, _, relation = first["Link"].partition("; ")
    assert relation == 'rel="next"'
    second = lead.get(target.strip("<>").removeprefix("/api/v1/"))
    assert [list(item) for item in second.json()["items"]] == [["id"]]
    assert "Link" not in second


def test_a_cursor_with_other_filters_or_of_another_list_is_refused(world: World, of: Of) -> None:
    rows(world, 3)
    lead = of("lead")
    cursor = lead.get("reservations?limit=2").json()["next"]
    for query in (
        f"reservations?cursor={cursor}&decision=lapsed",
        f"reservations?cursor={cursor}&order=id",
        f"tokens?cursor={cursor}",
        f"reservations?cursor={cursor}x",
    ):
        told = problem(lead.get(query), 400, "invalid")
        assert [fault["pointer"] for fault in told["errors"]] == ["?cursor"]


def test_a_cursor_works_for_a_day(world: World, of: Of) -> None:
    rows(world, 3)
    lead = of("lead")
    cursor = lead.get("reservations?limit=2").json()["next"]
    with time_machine.travel(NOW + timedelta(hours=23), tick=False):
        assert len(lead.get(f"reservations?cursor={cursor}").json()["items"]) == 1
    with time_machine.travel(NOW + timedelta(hours=25), tick=False):
        problem(lead.get(f"reservations?cursor={cursor}"), 410, "cursor_expired")


def test_a_cursor_opens_nothing_to_somebody_else(world: World, of: Of) -> None:
    rows(world, 3)
    cursor = of("lead").get("reservations?limit=2").json()["next"]
    assert of("stranger").get(f"reservations?cursor={cursor}").json()["items"] == []


def test_more_than_500_is_cut_to_500(world: World, of: Of) -> None:
    rack = world.racks[0]
    Node.objects.bulk_create(
        Node(cluster=world.cluster, rack=rack, flavor=world.flavor, name=f"x{number}", position=100 + number, gpus=4)
        for number in range(440)
    )
    shown = of("lead").get("nodes?limit=100000&count=true").json()
    assert (len(shown["items"]), shown["count"]) == (500, 512)
    assert len(of("lead").get("nodes").json()["items"]) == 100


def test_a_count_is_capped_and_says_so(world: World, of: Of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.api.lists.COUNT_MOST", 3)
    shown = of("lead").get("racks?count=true&limit=1").json()
    assert (shown["count"], shown["count_is"]) == (3, "at_least")
    Rack.objects.filter(name="r04").update(gone_at=NOW)
    shown = of("lead").get("racks?count=true&limit=1").json()
    assert (shown["count"], "count_is" in shown) == (3, False)
