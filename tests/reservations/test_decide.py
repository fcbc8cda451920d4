"""What may be done with a reservation, by whom, and from which decision?"""

from datetime import timedelta

import pytest

from allocations.errors import DomainError, Invalid, NotAllowed, WrongState
from allocations.models import Event, Node, RoleGrant
from allocations.services import approvals
from reservations.errors import LimitReached
from reservations.models import Hold, Reservation, ReservationPolicy
from reservations.moments import minute_from
from reservations.services.approve import approve
from reservations.services.cancel import cancel
from reservations.services.lapse import lapse_all, lapse_expired
from reservations.services.reject import reject
from reservations.services.withdraw import withdraw
from tests.reservations.asks import approved, ask
from tests.reservations.world import DAY, NOW, World, masks_and_holds, two_racks


def test_an_approval_makes_the_holds_firm_and_asks_for_a_push(world: World) -> None:
    reservation = approve(reservation=ask(world), actor=world.approver, at=NOW)
    world.cluster.refresh_from_db()
    assert (reservation.decision, reservation.hold_expires_at, reservation.version) == ("approved", None, 2)
    assert world.cluster.desired_generation == reservation.wanted_generation == 1
    assert set(Hold.objects.values_list("is_provisional", flat=True)) == {False}
    assert Event.objects.filter(verb="reservation.approved").count() == 1


def test_nobody_decides_their_own_ask_even_as_an_approver(world: World) -> None:
    RoleGrant.objects.create(user=world.lead, role="approver")
    reservation = ask(world)
    for deed in (approve, reject):
        with pytest.raises(NotAllowed) as caught:
            deed(reservation=reservation, actor=world.lead, at=NOW, reason="mine")
        assert caught.value.code == "own_request"


@pytest.mark.parametrize("name", ["member", "second", "outsider", "operator", "auditor", "stranger"])
def test_deciding_needs_the_role_that_the_step_asks_for(world: World, name: str) -> None:
    reservation = ask(world)
    for deed in (approve, reject):
        with pytest.raises(NotAllowed):
            deed(reservation=reservation, actor=getattr(world, name), at=NOW, reason="no")
    reservation.refresh_from_db()
    assert reservation.decision == "requested"


def test_two_steps_need_two_people(world: World) -> None:
    steps = ({"role": "lead", "quorum": 1}, {"role": "approver", "quorum": 1})
    approvals.set_policy(name="long", steps=steps, actor=None, at=NOW)
    reservation = approve(reservation=ask(world), actor=world.second, at=NOW)
    assert reservation.decision == "requested"
    with pytest.raises(NotAllowed):
        approve(reservation=reservation, actor=world.second, at=NOW)
    assert approve(reservation=reservation, actor=world.approver, at=NOW).decision == "approved"


def test_a_rejection_needs_a_reason_and_frees_the_nodes(world: World) -> None:
    reservation = ask(world)
    with pytest.raises(Invalid):
        reject(reservation=reservation, actor=world.approver, at=NOW, reason=" ")
    rejected = reject(reservation=reservation, actor=world.approver, at=NOW, reason="Maintenance that week.")
    assert rejected.decision == "rejected"
    assert not Hold.objects.filter(released_at=None).exists()
    world.cluster.refresh_from_db()
    assert world.cluster.desired_generation == 0


def test_a_lead_withdraws_before_the_decision_and_nobody_else_does(world: World) -> None:
    reservation = ask(world)
    for name in ("member", "outsider", "approver", "operator", "stranger"):
        with pytest.raises(NotAllowed):
            withdraw(reservation=reservation, actor=getattr(world, name), at=NOW)
    assert withdraw(reservation=reservation, actor=world.second, at=NOW).decision == "withdrawn"
    assert not Hold.objects.filter(released_at=None).exists()


def test_cancelling_before_the_start_gives_everything_back(world: World) -> None:
    later = two_racks(earliest_start_minute=minute_from(NOW + DAY))
    reservation = cancel(reservation=approved(world, spec=later), actor=world.lead, at=NOW, reason="Not needed.")
    assert (reservation.decision, reservation.released_at, reservation.wanted_generation) == ("cancelled", NOW, 2)
    assert not Hold.objects.filter(released_at=None).exists()


def test_cancelling_while_it_runs_keeps_the_past(world: World) -> None:
    reservation = approved(world)
    moment = NOW + timedelta(hours=5, seconds=20)
    cancelled = cancel(reservation=reservation, actor=world.operator, at=moment)
    assert cancelled.released_at == NOW + timedelta(hours=5, minutes=1)
    assert cancelled.end_at == NOW + 3 * DAY


def test_what_is_over_cannot_be_cancelled(world: World) -> None:
    reservation = approved(world)
    with pytest.raises(WrongState, match="over"):
        cancel(reservation=reservation, actor=world.lead, at=NOW + 3 * DAY)


@pytest.mark.parametrize("name", ["member", "outsider", "approver", "auditor", "stranger"])
def test_only_leads_and_operators_cancel(world: World, name: str) -> None:
    with pytest.raises(NotAllowed):
        cancel(reservation=approved(world), actor=getattr(world, name), at=NOW)


DEEDS = {
    "approve": lambda world, one: approve(reservation=one, actor=world.approver, at=NOW),
    "reject": lambda world, one: reject(reservation=one, actor=world.approver, at=NOW, reason="No."),
    "withdraw": lambda world, one: withdraw(reservation=one, actor=world.lead, at=NOW),
    "cancel": lambda world, one: cancel(reservation=one, actor=world.lead, at=NOW),
}
ALLOWED = {"approve": {"requested"}, "reject": {"requested"}, "withdraw": {"requested"}, "cancel": {"approved"}}


@pytest.mark.parametrize("first", ["approve", "reject", "withdraw", "cancel"])
@pytest.mark.parametrize("second", list(DEEDS))
def test_a_deed_in_the_wrong_state_changes_nothing(world: World, first: str, second: str) -> None:
    reservation = approved(world) if first == "cancel" else ask(world)
    reservation = DEEDS[first](world, reservation)
    if reservation.decision in ALLOWED[second]:
        assert DEEDS[second](world, reservation).decision != reservation.decision
        return
    events = Event.objects.count()
    with pytest.raises(DomainError) as caught:
        DEEDS[second](world, reservation)
    assert caught.value.code == "wrong_state"
    assert Event.objects.count() == events
    assert Reservation.objects.get(pk=reservation.pk).decision == reservation.decision


def test_a_decision_on_an_older_version_is_refused(world: World) -> None:
    reservation = ask(world)
    with pytest.raises(WrongState) as caught:
        approve(reservation=reservation, actor=world.approver, at=NOW, version=7)
    assert caught.value.code == "subject_changed"


def test_a_node_that_failed_meanwhile_is_replaced_and_the_approver_reads_it(world: World) -> None:
    reservation = ask(world)
    failed = Hold.objects.filter(reservation=reservation).order_by("node__name")[0].node
    Node.objects.filter(pk=failed.pk).update(condition="failed")
    reservation = approve(reservation=reservation, actor=world.approver, at=NOW)
    masks, holds = masks_and_holds(reservation)
    assert masks == holds
    assert (failed.rack_id, failed.position) not in holds
    assert len(holds) == 36
    event = Event.objects.get(verb="reservation.approved")
    assert "Placed anew" in event.sentence
    assert failed.name in event.sentence


def test_a_new_place_may_be_one_that_an_expired_hold_still_covers(world: World) -> None:
    approvals.set_policy(name="short", matches={"team": "acme/speech"}, hold_minutes=5, actor=None, at=NOW)
    later = {"earliest_start_minute": minute_from(NOW + DAY), "latest_end_minute": minute_from(NOW + 4 * DAY)}
    expired = ask(world, actor=world.outsider, team=world.other_team, spec=two_racks(racks=3, **later))
    reservation = ask(world, spec=two_racks(racks=1, **later))
    failed = Hold.objects.filter(reservation=reservation)[0].node
    Node.objects.filter(pk=failed.pk).update(condition="failed")
    reservation = approve(reservation=reservation, actor=world.approver, at=NOW + timedelta(minutes=5))
    expired.refresh_from_db()
    assert (reservation.decision, expired.decision) == ("approved", "lapsed")
    assert set(reservation.mask_racks) <= set(expired.mask_racks)


def test_an_approval_without_a_place_left_says_so_and_decides_nothing(world: World) -> None:
    window = {"earliest_start_minute": minute_from(NOW), "latest_end_minute": minute_from(NOW + 3 * DAY)}
    reservation = ask(world, spec=two_racks(racks=4, **window))
    Node.objects.filter(name="sol0001").update(condition="failed")
    with pytest.raises(WrongState) as caught:
        approve(reservation=reservation, actor=world.approver, at=NOW)
    assert caught.value.code == "placement_gone"
    assert caught.value.detail["refusal"]["reasons"][0]["code"] == "unhealthy"
    reservation.refresh_from_db()
    assert reservation.decision == "requested"
    assert approvals.outcome_of(reservation.approval_case).missing == 1


def test_an_approval_after_the_start_plans_the_same_ask_from_now(world: World) -> None:
    reservation = approve(reservation=ask(world), actor=world.approver, at=NOW + timedelta(hours=2))
    assert reservation.start_at == NOW + timedelta(hours=2)
    assert reservation.end_at == NOW + timedelta(hours=2) + 3 * DAY
    assert masks_and_holds(reservation)[0] == masks_and_holds(reservation)[1]


def test_an_approval_after_the_allocation_was_revoked_is_refused(world: World) -> None:
    reservation = ask(world)
    world.team.allocations.update(revoked_at=NOW)
    with pytest.raises(LimitReached) as caught:
        approve(reservation=reservation, actor=world.approver, at=NOW)
    assert caught.value.code == "no_allocation"


def test_an_approval_on_a_guarantee_that_shrank_meanwhile_is_refused(world: World) -> None:
    world.team.allocations.update(guaranteed_gpus=144)
    reservation = ask(world, funding="own")
    world.team.allocations.update(guaranteed_gpus=100)
    with pytest.raises(LimitReached) as caught:
        approve(reservation=reservation, actor=world.approver, at=NOW)
    assert (caught.value.code, caught.value.faults[0].missing) == ("budget_short", 44)
    reservation.refresh_from_db()
    assert reservation.decision == "requested"


def test_a_new_place_keeps_the_rules_against_hoarding(world: World) -> None:
    reservation = ask(world)
    Node.objects.filter(holds__reservation=reservation).update(condition="failed")
    ReservationPolicy.objects.create(name="house", reservable_share_percent=50)
    with pytest.raises(LimitReached, match="At most 1 of 2 healthy racks"):
        approve(reservation=reservation, actor=world.approver, at=NOW)
    reservation.refresh_from_db()
    assert reservation.decision == "requested"
    assert set(reservation.holds.values_list("released_at", flat=True)) == {None}


def test_a_hold_that_ran_out_is_not_approved_any_more(world: World) -> None:
    reservation = ask(world)
    with pytest.raises(WrongState, match="ran out"):
        approve(reservation=reservation, actor=world.approver, at=NOW + DAY)


def test_an_undecided_ask_lapses_once_and_frees_its_nodes(world: World) -> None:
    reservation = ask(world)
    assert lapse_expired(cluster=world.cluster, at=NOW + timedelta(minutes=1439)) == []
    assert lapse_all(at=NOW + DAY) == [reservation]
    assert lapse_all(at=NOW + DAY) == []
    reservation.refresh_from_db()
    assert (reservation.decision, reservation.hold_expires_at) == ("lapsed", None)
    assert not Hold.objects.filter(released_at=None).exists()
    assert Event.objects.get(verb="reservation.lapsed").actor is None
