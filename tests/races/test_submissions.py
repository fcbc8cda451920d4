"""Can the last rack be given away twice? (many at once; and with lock and constraint away, to see that it could)"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, models

from allocations.models import Cluster
from reservations.errors import DoesNotFit
from reservations.models import Hold, Reservation
from reservations.moments import minute_from
from reservations.services import submit as submitting
from reservations.services.submit import submit
from tests.races.conftest import race
from tests.reservations.world import DAY, NOW, World, masks_and_holds, two_racks

pytestmark = pytest.mark.django_db(transaction=True)
TOGETHER = 12


def ask_for_all(world: World) -> Reservation:
    """Both racks of the cluster, in the only window there is."""
    window = {"earliest_start_minute": minute_from(NOW), "latest_end_minute": minute_from(NOW + 3 * DAY)}
    return submit(
        team=world.team,
        cluster=world.cluster,
        spec=two_racks(**window),
        purpose="The last racks",
        actor=world.lead,
        at=NOW,
    )


def held_twice() -> int:
    """Nodes that more than one reservation holds."""
    rows = Hold.objects.filter(released_at=None).values("node").annotate(count=models.Count("pk"))
    return rows.filter(count__gt=1).count()


def test_of_many_asks_for_the_last_racks_exactly_one_gets_them(world: World) -> None:
    results = race([lambda: ask_for_all(world)] * TOGETHER)
    won = [one for one in results if isinstance(one, Reservation)]
    assert len(won) == 1
    assert [type(one) for one in results if one not in won] == [DoesNotFit] * (TOGETHER - 1)
    assert held_twice() == 0
    masks, holds = masks_and_holds(won[0])
    assert masks == holds
    assert len(holds) == 8


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row lock taken away, and every thread made to look before any of them writes."""
    everyone_looked = threading.Barrier(4)
    real: Callable[..., Any] = submitting.snapshot

    def look_together(*given: Any, **more: Any) -> Any:
        view = real(*given, **more)
        everyone_looked.wait(60)
        return view

    monkeypatch.setattr(submitting, "lock_cluster", lambda cluster: Cluster.objects.get(pk=cluster.pk))
    monkeypatch.setattr(submitting, "lock_payers", lambda team, flavor: None)
    monkeypatch.setattr(submitting, "snapshot", look_together)


@pytest.fixture
def unconstrained(world: World) -> Iterator[None]:
    """The exclusion constraint taken away, and put back on a clean table."""
    law = next(each for each in Hold._meta.constraints if each.name == "node_held_once")
    with connection.schema_editor() as editor:
        editor.remove_constraint(Hold, law)
    yield
    Hold.objects.all().delete()
    with connection.schema_editor() as editor:
        editor.add_constraint(Hold, law)


@pytest.mark.usefixtures("unconstrained", "unlocked")
def test_without_lock_and_constraint_the_racks_are_sold_twice(world: World) -> None:
    results = race([lambda: ask_for_all(world)] * 4)
    assert len([one for one in results if isinstance(one, Reservation)]) == 4
    assert held_twice() == 8


@pytest.mark.usefixtures("unlocked")
def test_without_the_lock_the_constraint_still_refuses_and_says_so(world: World) -> None:
    results = race([lambda: ask_for_all(world)] * 4)
    assert len([one for one in results if isinstance(one, Reservation)]) == 1
    codes = [one.code for one in results if not isinstance(one, Reservation)]
    assert codes == ["placement_gone"] * 3
    assert held_twice() == 0
