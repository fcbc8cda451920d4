"""Does what was approved come to stand in a folder of files, and only that? (the whole pass, step by step)"""

from datetime import timedelta
from pathlib import Path

import pytest
import time_machine

from allocations.services import freezing
from console.models import ClusterEndpoint, ObservedObject, OwnedObject, PushPlan
from console.push import closing, control
from reservations.services.cancel import cancel
from tests.push.conftest import connected
from tests.push.passes import fresh, generations, push, told, written
from tests.reservations.asks import approved
from tests.reservations.world import NOW, World, two_racks


def test_an_approved_reservation_comes_to_stand_and_is_verified(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    reservation = approved(world)
    outcome = push(endpoint)
    assert outcome.ended == "verified"
    line = next(line for line in written(tmp_path).splitlines() if f"berth-{reservation.public_id} " in line)
    assert "Nodes=sol[0001-0008]" in line
    assert "Accounts=vision" in line
    desired, applied = generations(endpoint)
    assert desired == applied > 0
    assert outcome.plan is not None
    outcome.plan.refresh_from_db()
    assert outcome.plan.state == "verified"
    assert {step.state for step in outcome.plan.steps.all()} == {"verified"}
    assert fresh(endpoint).state == "verified"
    assert set(ObservedObject.objects.values_list("state", flat=True)) <= {"in_step", "foreign"}


def test_a_second_pass_finds_nothing_to_do(world: World, endpoint: ClusterEndpoint, tmp_path: Path) -> None:
    approved(world)
    push(endpoint)
    before, plans, events = written(tmp_path), PushPlan.objects.count(), len(told("push.verified"))
    outcome = push(endpoint)
    assert (outcome.ended, outcome.steps) == ("equal", ())
    assert written(tmp_path) == before
    assert PushPlan.objects.count() == plans
    assert len(told("push.verified")) == events


def test_cancelling_takes_it_away_and_forgets_that_it_was_ours(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    reservation = approved(world)
    push(endpoint)
    cancel(reservation=reservation, actor=world.lead, at=NOW)
    outcome = push(endpoint)
    assert outcome.ended == "verified"
    assert [(step.verb, step.name) for step in outcome.steps] == [("delete", f"berth-{reservation.public_id}")]
    assert reservation.public_id not in written(tmp_path)
    assert not OwnedObject.objects.filter(object_class="reservation", deleted_at=None).exists()


def test_a_dry_run_leaves_no_trace(world: World, endpoint: ClusterEndpoint, tmp_path: Path) -> None:
    approved(world)
    before = fresh(endpoint)
    outcome = push(endpoint, dry_run=True)
    assert outcome.ended == "differs"
    assert any(step.object_class == "reservation" for step in outcome.steps)
    assert written(tmp_path) == ""
    after = fresh(endpoint)
    assert (after.attempt, after.state, after.next_push_at) == (before.attempt, before.state, before.next_push_at)
    assert not PushPlan.objects.exists() and not ObservedObject.objects.exists() and not OwnedObject.objects.exists()
    assert generations(endpoint)[1] == 0


def test_nothing_counts_as_applied_before_it_is_read_back(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that says yes and does nothing: the plan fails, and the next try is planned."""
    from console.drivers.base import Applied
    from console.drivers.files import FolderOfFiles

    approved(world)
    monkeypatch.setattr(FolderOfFiles, "apply", lambda self, step: Applied(True, "ok", "ok"))
    outcome = push(endpoint)
    assert outcome.ended == "failed"
    assert "did not take" in outcome.sentence
    assert generations(endpoint)[1] == 0
    assert fresh(endpoint).failures == 1
    assert PushPlan.objects.get().state == "failed"
    monkeypatch.undo()
    assert push(endpoint).ended == "verified"
    assert fresh(endpoint).failures == 0


def test_in_observe_mode_it_is_told_and_not_written(world: World, tmp_path: Path) -> None:
    approved(world)
    endpoint = connected(tmp_path, mode="observe")
    outcome = push(endpoint)
    assert outcome.ended == "differs"
    assert outcome.steps
    assert written(tmp_path) == ""
    assert generations(endpoint)[1] == 0
    assert PushPlan.objects.get().state == "dry_run"
    push(endpoint)
    assert PushPlan.objects.count() == 1, "the same difference is told once"


def test_a_class_in_observe_mode_is_left_out_and_keeps_the_cluster_unverified(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    push(endpoint)
    applied = generations(endpoint)[1]
    control.set_mode(cluster=world.cluster, object_class="reservation", mode="observe", actor=world.operator, at=NOW)
    approved(world)
    outcome = push(endpoint)
    assert outcome.ended == "differs"
    assert {step.object_class for step in outcome.steps} == {"reservation"}
    assert written(tmp_path) == ""
    assert fresh(endpoint).state == "drifted"
    assert generations(endpoint)[1] == applied


def test_in_propose_mode_it_waits_for_a_yes_and_is_then_written_as_that_plan(world: World, tmp_path: Path) -> None:
    approved(world)
    endpoint = connected(tmp_path, mode="propose")
    outcome = push(endpoint)
    assert outcome.ended == "waiting"
    assert written(tmp_path) == ""
    assert len(told("push.waiting")) == 1
    push(endpoint)
    assert PushPlan.objects.count() == 1 and len(told("push.waiting")) == 1
    control.agree(plan=PushPlan.objects.get(), actor=world.operator, at=NOW)
    assert push(endpoint).ended == "verified"
    plan = PushPlan.objects.get()
    assert (plan.state, plan.approved_by) == ("verified", world.operator)
    assert "berth-R-" in written(tmp_path)


def test_a_yes_counts_for_a_running_reservation_a_minute_later_too(
    world: World, tmp_path: Path, clock: time_machine.Traveller
) -> None:
    """What has begun is spelled with another start at each moment; it is the same plan."""
    approved(world)
    clock.move_to(NOW + timedelta(hours=1))
    endpoint = connected(tmp_path, mode="propose")
    push(endpoint)
    control.agree(plan=PushPlan.objects.get(), actor=world.operator, at=NOW)
    clock.move_to(NOW + timedelta(hours=1, minutes=7))
    assert push(endpoint).ended == "verified"


def test_a_yes_to_one_plan_is_no_yes_to_another(world: World, tmp_path: Path) -> None:
    approved(world)
    endpoint = connected(tmp_path, mode="propose")
    push(endpoint)
    control.agree(plan=PushPlan.objects.get(), actor=world.operator, at=NOW)
    approved(world, at=NOW)
    assert push(endpoint).ended == "waiting"
    assert written(tmp_path) == ""
    assert sorted(PushPlan.objects.values_list("state", flat=True)) == ["superseded", "waiting"]


def test_a_discarded_plan_is_not_asked_again_until_something_else_is_wanted(world: World, tmp_path: Path) -> None:
    approved(world)
    endpoint = connected(tmp_path, mode="propose")
    push(endpoint)
    control.discard(plan=PushPlan.objects.get(), actor=world.operator, at=NOW)
    assert push(endpoint).ended == "differs"
    assert PushPlan.objects.get().state == "discarded"
    assert "discarded" in fresh(endpoint).sentence
    approved(world)
    assert push(endpoint).ended == "waiting"
    assert written(tmp_path) == ""


def test_a_frozen_cluster_waits_and_is_written_once_it_thaws(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    freezing.freeze(cluster=world.cluster, reason="Upgrade of the controller", actor=world.operator, at=NOW)
    approved(world)
    outcome = push(endpoint)
    assert outcome.ended == "waiting"
    assert "Upgrade of the controller" in outcome.sentence
    assert written(tmp_path) == ""
    freezing.unfreeze(cluster=world.cluster, actor=world.operator, at=NOW)
    assert push(endpoint).ended == "verified"
    assert "berth-R-" in written(tmp_path)


def test_a_freeze_stops_a_plan_between_two_steps(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.drivers.files import FolderOfFiles

    real = FolderOfFiles.apply

    def freeze_after(self, step):  # type: ignore[no-untyped-def]
        applied = real(self, step)
        freezing.freeze(cluster=world.cluster, reason="Stop", actor=world.operator, at=NOW)
        return applied

    approved(world)
    monkeypatch.setattr(FolderOfFiles, "apply", freeze_after)
    assert push(endpoint).ended == "busy"
    states = list(PushPlan.objects.get().steps.values_list("state", flat=True))
    assert states[0] == "applied" and set(states[1:]) == {"skipped"}
    assert written(tmp_path) == ""


def test_a_delete_that_this_berth_has_no_record_of_waits_for_a_person(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    reservation = approved(world)
    push(endpoint)
    OwnedObject.objects.all().delete()
    cancel(reservation=reservation, actor=world.lead, at=NOW)
    outcome = push(endpoint)
    assert outcome.ended == "waiting"
    assert "no record" in outcome.sentence
    assert reservation.public_id in written(tmp_path)
    control.agree(plan=PushPlan.objects.get(state="waiting"), actor=world.operator, at=NOW)
    assert push(endpoint).ended == "verified"
    assert reservation.public_id not in written(tmp_path)


def test_a_foreign_object_under_our_name_is_left_and_said(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    folder = tmp_path / "sol" / "slurm"
    folder.mkdir(parents=True)
    (folder / "sacctmgr.txt").write_text(
        "add account vision cluster=sol parent=root fairshare=7 organization=site description=theirs\n"
    )
    approved(world)
    outcome = push(endpoint)
    assert outcome.ended == "waiting"
    assert "account vision" in outcome.sentence and "not Berth's" in outcome.sentence
    assert "fairshare=7" in (folder / "sacctmgr.txt").read_text()
    assert "berth-R-" in written(tmp_path)
    desired, applied = generations(endpoint)
    assert applied < desired
    assert push(endpoint).ended == push(endpoint, dry_run=True).ended == "waiting"


def test_the_waits_after_failures_double_from_ten_seconds_to_an_hour() -> None:
    waits = [closing.back_off(number).total_seconds() for number in range(1, 12)]
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]


def test_many_reservations_that_would_end_at_once_wait_for_a_person(
    world: World, endpoint: ClusterEndpoint, tmp_path: Path
) -> None:
    spec = two_racks(racks=None, nodes=1)
    made = [approved(world, spec=spec) for _ in range(11)]
    push(endpoint)
    before = written(tmp_path)
    for each in made:
        cancel(reservation=each, actor=world.lead, at=NOW)
    outcome = push(endpoint)
    assert outcome.ended == "waiting"
    assert outcome.sentence.startswith("11 reservations would end at once")
    assert written(tmp_path) == before
