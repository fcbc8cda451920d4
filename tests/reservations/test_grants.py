"""May more be guaranteed than there is?"""

from datetime import timedelta
from decimal import Decimal

import pytest

from allocations.errors import Invalid, WrongState
from allocations.models import Allocation, Node
from reservations.services.grants import grant, revoke
from reservations.services.policy import apply_policy
from tests.reservations.world import DAY, NOW, World


def give(world: World, gpus: int, start: int = 0, days: int = 10, **more: object) -> Allocation:
    return grant(
        team=world.team,
        flavor=world.flavor,
        start_at=NOW + start * DAY,
        end_at=NOW + (start + days) * DAY,
        guaranteed_gpus=gpus,
        actor=None,
        at=NOW,
        **more,  # type: ignore[arg-type]
    )


def test_guarantees_fill_the_healthy_fleet_and_no_more(world: World) -> None:
    give(world, 288)
    with pytest.raises(WrongState) as caught:
        give(world, 1)
    assert (caught.value.code, caught.value.detail["missing"]) == ("overcommit", 1)
    world.cluster.refresh_from_db()
    assert world.cluster.desired_generation == 1


def test_only_what_overlaps_in_time_counts_together(world: World) -> None:
    give(world, 200, start=0, days=10)
    give(world, 200, start=10, days=10)
    give(world, 88, start=0, days=20)
    with pytest.raises(WrongState):
        give(world, 1, start=5, days=10)


def test_bad_and_drained_nodes_guarantee_nothing(world: World) -> None:
    Node.objects.filter(name="sol0001").update(condition="failed")
    Node.objects.filter(name="sol0002").update(is_drained=True)
    with pytest.raises(WrongState, match="280 healthy GPUs"):
        give(world, 281)
    assert give(world, 280).guaranteed_gpus == 280


def test_an_overcommit_needs_its_reason(world: World) -> None:
    with pytest.raises(Invalid):
        give(world, 500, overcommit=True)
    assert give(world, 500, overcommit=True, reason="Half of it arrives on Monday.").guaranteed_gpus == 500


def test_a_revoked_guarantee_makes_room(world: World) -> None:
    allocation = give(world, 288)
    revoke(allocation=allocation, actor=None, at=NOW, reason="Project ended.")
    assert give(world, 288).guaranteed_gpus == 288


def test_a_full_guarantee_is_followed_in_the_middle_of_a_minute(world: World) -> None:
    row = {"team": world.team.path, "cluster": "sol", "flavor": "gb200", "guaranteed_gpus": 288}
    row |= {"start_at": (NOW - DAY).isoformat(), "end_at": (NOW + 9 * DAY).isoformat()}
    apply_policy(sections={"allocations": [row]}, actor=None, at=NOW)
    at = NOW + timedelta(minutes=7, seconds=31)
    apply_policy(sections={"allocations": [{**row, "gpu_hours": 5000}]}, actor=None, at=at)
    before, after = Allocation.objects.filter(guaranteed_gpus=288).order_by("pk")
    assert (before.revoked_at, after.start_at, after.gpu_hours) == (at, at, Decimal(5000))
