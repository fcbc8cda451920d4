"""Does the planner see what the rows say?"""

from datetime import datetime, timedelta

import numpy as np
import pytest
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocations.models import Cluster, Node, Outage, Rack, RunningJob
from reservations.errors import DoesNotFit
from reservations.models import Hold, Reservation
from reservations.moments import minute_from
from reservations.placing import find
from reservations.services.cancel import cancel
from reservations.services.withdraw import withdraw
from reservations.snapshot import QUERIES, snapshot
from scheduling.answers import Placement, Refusal
from scheduling.spec import ReservationSpec
from tests.reservations.asks import approved, ask
from tests.reservations.world import DAY, NOW, World, make_world, masks_and_holds, two_racks

NOW_MINUTE = minute_from(NOW)


def placed(world: World, **more: object) -> Placement | Refusal:
    return find(snapshot(world.cluster, NOW, fresh=True), two_racks(racks=4, **more))


def test_the_number_of_queries_is_fixed_and_a_second_look_asks_once(world: World, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    for number in range(3):
        approved(world, spec=two_racks(racks=1, earliest_start_minute=NOW_MINUTE + number * 1440))
    at = NOW + timedelta(minutes=7)
    with django_assert_num_queries(QUERIES - 1):  # the node names are known by the inventory's mark
        snapshot(world.cluster, at)
    with django_assert_num_queries(1):
        snapshot(world.cluster, at)
    Cluster.objects.filter(pk=world.cluster.pk).update(
        inventory_mark="another", snapshot_version=F("snapshot_version") + 1
    )
    with django_assert_num_queries(QUERIES):
        snapshot(world.cluster, at)


def test_a_changed_version_is_seen_at_once(world: World) -> None:
    before = snapshot(world.cluster, NOW)
    ask(world)
    after = snapshot(world.cluster, NOW)
    assert (len(before.start), len(after.start)) == (0, 1)


def test_now_is_the_next_whole_minute(world: World) -> None:
    assert snapshot(world.cluster, NOW + timedelta(seconds=1)).now_minute == NOW_MINUTE + 1
    assert snapshot(world.cluster, NOW).now_minute == NOW_MINUTE


@pytest.mark.parametrize(
    "change",
    [
        {"condition": "failed"},
        {"condition": "suspect"},
        {"condition": "unknown"},
        {"is_drained": True},
        {"lifecycle": "burn_in"},
        {"lifecycle": "retired"},
        {"gone_at": NOW},
    ],
)
def test_only_healthy_production_nodes_can_be_placed(world: World, change: dict[str, object]) -> None:
    assert isinstance(placed(world), Placement)
    Node.objects.filter(name="sol0020").update(**change)
    refusal = placed(world)
    assert isinstance(refusal, Refusal)
    assert "sol0020" in {cause.id for reason in refusal.reasons for cause in reason.by}


@pytest.mark.parametrize(
    "change", [{"lifecycle": "repair"}, {"lifecycle": "retired"}, {"gone_at": NOW}, {"nvlink": "broken"}]
)
def test_a_rack_that_is_away_is_never_placed(world: World, change: dict[str, object]) -> None:
    Rack.objects.filter(name="r02").update(**change)
    assert isinstance(placed(world), Refusal)


def test_a_rack_is_placed_from_its_delivery_on(world: World) -> None:
    Rack.objects.filter(name="r02").update(lifecycle="burn_in", in_service_at=NOW + 2 * DAY)
    answer = placed(world)
    assert isinstance(answer, Placement)
    assert answer.start_minute == NOW_MINUTE + 2 * 1440
    Rack.objects.filter(name="r02").update(in_service_at=None)
    assert isinstance(placed(world), Refusal)


def test_a_bad_node_with_a_date_is_placed_from_that_date_on(world: World) -> None:
    Node.objects.filter(name="sol0020").update(condition="failed", expected_back_at=NOW + DAY)
    answer = placed(world)
    assert isinstance(answer, Placement)
    assert answer.start_minute == NOW_MINUTE + 1440
    early = placed(world, latest_end_minute=NOW_MINUTE + 3 * 1440)
    assert isinstance(early, Refusal)
    (reason,) = early.reasons
    assert (reason.code, [cause.id for cause in reason.by]) == ("unhealthy", ["sol0020"])


def test_outages_jobs_and_the_contract_are_in_the_way(world: World) -> None:
    outage = Outage.objects.create(
        cluster=world.cluster, name="cooling", period=DateTimeTZRange(NOW, NOW + timedelta(hours=5, seconds=1))
    )
    outage.nodes.add(*Node.objects.filter(rack__name="r01"))
    answer = placed(world)
    assert isinstance(answer, Placement)
    assert answer.start_minute == NOW_MINUTE + 301
    outage.cancelled_at = NOW
    outage.save()
    RunningJob.objects.create(
        cluster=world.cluster, job_id="812", nodes=["sol0001"], ends_at=NOW + timedelta(hours=2), observed_at=NOW
    )
    answer = placed(world)
    assert isinstance(answer, Placement)
    assert answer.start_minute == NOW_MINUTE + 120
    Cluster.objects.update(contract_ends_at=NOW + DAY)
    assert isinstance(placed(world), Refusal)


def test_an_expired_hold_is_free_in_a_preview(world: World) -> None:
    ask(world)
    assert len(snapshot(world.cluster, NOW + DAY).start) == 0


def test_without_leaves_one_reservation_out(world: World) -> None:
    reservation = ask(world)
    assert not len(snapshot(world.cluster, NOW, without=reservation.public_id).start)


def test_a_moved_node_leaves_a_place_that_no_ask_can_use(world: World) -> None:
    Node.objects.filter(name="sol0003").update(rack=Rack.objects.get(name="r02"), position=18)
    Cluster.objects.update(inventory_mark="moved")
    view = snapshot(world.cluster, NOW, fresh=True)
    rack = view.topology.racks[view.topology.rack_of("sol0004") or 0]
    assert rack.nodes[3] == "sol0004"
    assert isinstance(find(view, two_racks(racks=4)), Refusal)
    assert isinstance(find(view, two_racks(racks=3)), Placement)


deeds = st.lists(
    st.tuples(
        st.sampled_from(["ask", "approve", "withdraw", "cancel"]),
        st.integers(1, 3),
        st.integers(0, 5),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.django_db
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(deeds)
def test_masks_equal_holds_and_the_snapshot_equals_both(plan: list[tuple[str, int, int, int]]) -> None:
    with transaction.atomic():
        world = make_world(nodes=67, name="luna")
        for number, (deed, size, day, hours) in enumerate(plan):
            spec = ReservationSpec(
                flavor="gb200",
                nodes=size * 25,
                duration_minutes=hours * 60,
                earliest_start_minute=NOW_MINUTE + day * 1440,
            )
            try:
                one = approved(world, spec=spec) if deed in ("approve", "cancel") else ask(world, spec=spec)
            except DoesNotFit:
                continue
            if deed == "withdraw":
                withdraw(reservation=one, actor=world.lead, at=NOW)
            elif deed == "cancel":
                cancel(reservation=one, actor=world.lead, at=NOW + timedelta(minutes=number))
        _check_equal(world, NOW + timedelta(days=1))
        transaction.set_rollback(True)


def _check_equal(world: World, at: datetime) -> None:
    for reservation in Reservation.objects.filter(decision__in=("requested", "approved")):
        masks, holds = masks_and_holds(reservation)
        assert masks == holds
    view = snapshot(world.cluster, at, fresh=True)
    rows = Hold.objects.filter(released_at=None, period__endswith__gt=at, reservation__decision="approved")
    wanted = {(f"R-{reservation}", node) for reservation, node in rows.values_list("reservation", "node__name")}
    seen = set()
    for number, subject in enumerate(view.subject):
        busy = view.subjects[int(subject)]
        words = slice(int(view.first_entry[number]), int(view.first_entry[number + 1]))
        plane = np.zeros(len(view.topology.full), np.uint64)
        np.bitwise_or.at(plane, view.entry_word[words], view.entry_mask[words])
        seen |= {(busy.id, node) for node in view.topology.names(view.topology.from_plane(plane))}
    assert seen == wanted
