"""Do plans for Slurm reach the desired state, with every single command accepted and nothing promised twice?"""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.desired import DesiredFlavor, DesiredReservation, DesiredState, DesiredTeam
from scheduling.dialects import Capabilities, dialect
from scheduling.dialects.demo import demo_state
from scheduling.plan import diff
from tests.scheduling.dialects.slurm_controller import SlurmController

SLURM = dialect("slurm")
NODES = tuple(f"n{number}" for number in range(1, 9))
AT = 30_000_000
FLAVOR = DesiredFlavor("hgx", "H200", 8, 4)


def plan_for(state: DesiredState, controller: SlurmController):
    observed = SLURM.parse(controller.answers(), installation=state.installation)
    known = Capabilities("slurm", observed.facts["version"], observed.facts["native_cluster"])
    return diff(SLURM.render(state, known), observed)


def push(state: DesiredState, controller: SlurmController, steps: int | None = None) -> None:
    for step in plan_for(state, controller).steps[:steps]:
        for argv in step.native:
            controller.run(argv)


@st.composite
def calendars(draw):
    """Up to five reservations of which no two share a node at one moment."""
    taken: list[DesiredReservation] = []
    for number in range(draw(st.integers(0, 5))):
        start = AT + draw(st.integers(-200, 200))
        end = max(start, AT) + draw(st.integers(1, 200))
        nodes = draw(st.sets(st.sampled_from(NODES), min_size=1))
        for other in taken:
            if other.start_minute < end and start < other.end_minute:
                nodes -= set(other.nodes)
        if nodes:
            teams = tuple(draw(st.sets(st.sampled_from(("a", "b")), min_size=1)))
            number = draw(st.integers(0, 6))
            if f"R-{number}" not in {other.id for other in taken}:
                taken.append(DesiredReservation(f"R-{number}", "hgx", teams, tuple(sorted(nodes)), start, end))
    return tuple(taken)


@st.composite
def states(draw):
    shares = st.integers(0, 9)
    chain = draw(st.sampled_from(((("a", ""), ("b", "a")), (("b", ""), ("a", "b")), (("a", ""), ("b", "")))))
    teams = tuple(DesiredTeam(name, name, parent, draw(shares)) for name, parent in chain)
    return DesiredState("sol", "slurm", "x", 1, AT, flavors=(FLAVOR,), teams=teams, reservations=draw(calendars()))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=states(), after=states(), cut=st.integers(0, 6))
def test_from_any_state_to_any_other_every_command_is_accepted_and_the_second_plan_is_empty(before, after, cut):
    controller = SlurmController("lab", now=AT * 60 + 30)
    push(before, controller)
    push(after, controller, steps=cut)  # a push that died after some steps
    push(after, controller)
    assert plan_for(after, controller).is_empty


def test_two_reservations_that_swap_racks_are_both_moved():
    left, right = NODES[:4], NODES[4:]
    teams = (DesiredTeam("a", "a"),)
    one = DesiredReservation("R-1", "hgx", ("a",), left, AT + 10, AT + 20)
    two = DesiredReservation("R-2", "hgx", ("a",), right, AT + 10, AT + 20)
    state = DesiredState("sol", "slurm", "x", 1, AT, flavors=(FLAVOR,), teams=teams, reservations=(one, two))
    controller = SlurmController("lab", now=AT * 60)
    push(state, controller)
    swapped = replace(state, reservations=(replace(one, nodes=right), replace(two, nodes=left)))
    push(swapped, controller)
    assert plan_for(swapped, controller).is_empty
    assert controller.reservations["berth-R-1"]["Nodes"] == "n[5-8]"


def test_a_reservation_that_began_long_ago_starts_now_and_is_not_touched_again():
    state = demo_state("slurm")
    controller = SlurmController("lab", now=state.at_minute * 60 + 59)
    push(state, controller)
    assert int(controller.reservations["berth-R-131"]["StartTime"]) == state.at_minute * 60
    assert plan_for(state, controller).is_empty
    assert plan_for(replace(state, at_minute=state.at_minute + 90), controller).is_empty


def test_a_reservation_deleted_by_hand_is_put_back():
    state = demo_state("slurm")
    controller = SlurmController("lab", now=state.at_minute * 60)
    push(state, controller)
    controller.run(("scontrol", "delete", "ReservationName=berth-R-140"))
    (step,) = plan_for(state, controller).steps
    assert (step.verb, step.name) == ("create", "berth-R-140")
    assert step.commands == (
        "TZ=UTC scontrol create reservation ReservationName=berth-R-140 StartTime=2027-01-12T08:00:00 "
        "EndTime=2027-01-13T08:00:00 'Nodes=hgx[01-04]' Accounts=platform,vision",
    )


def test_only_what_changed_is_written():
    state = demo_state("slurm")
    controller = SlurmController("lab", now=state.at_minute * 60)
    push(state, controller)
    first, second = state.reservations
    longer = replace(state, reservations=(replace(first, end_minute=first.end_minute + 60), second))
    (step,) = plan_for(longer, controller).steps
    assert step.native == (("scontrol", "update", "ReservationName=berth-R-131", "EndTime=2027-01-08T01:00:00"),)


def test_flags_and_users_added_by_hand_are_taken_off_one_flag_a_command():
    state = demo_state("slurm")
    controller = SlurmController("lab", now=state.at_minute * 60)
    push(state, controller)
    controller.reservations["berth-R-140"].update(Flags="MAINT,FLEX,SPEC_NODES", Users="eve")
    (step,) = plan_for(state, controller).steps
    name = "ReservationName=berth-R-140"
    assert step.native == (
        ("scontrol", "update", name, "Users="),
        ("scontrol", "update", name, "Flags-=FLEX"),
        ("scontrol", "update", name, "Flags-=MAINT"),
    )


def test_accounts_are_never_deleted_and_reservations_that_are_over_are():
    state = demo_state("slurm")
    controller = SlurmController("lab", now=state.at_minute * 60)
    push(state, controller)
    bare = replace(state, teams=(), reservations=())
    assert [(step.verb, step.name) for step in plan_for(bare, controller).steps] == [
        ("delete", "berth-R-131"),
        ("delete", "berth-R-140"),
    ]


def test_an_account_of_another_owner_is_foreign_and_left_alone():
    state = demo_state("slurm")
    controller = SlurmController("lab", now=state.at_minute * 60)
    controller.accounts["climate"] = {
        "parent": "root", "fairshare": "77", "organization": "berth-another", "description": "x"
    }  # fmt: skip
    plan = plan_for(state, controller)
    assert plan.foreign == (("account", "climate"),)
    assert "climate" not in {step.name for step in plan.steps}


@pytest.mark.parametrize("part", ["config", "accounts", "associations", "reservations"])
def test_an_empty_answer_deletes_nothing_it_raises(part):
    answers = SlurmController("lab", now=0).answers()
    with pytest.raises(ValueError) as caught:
        SLURM.parse({**answers, part: " \n"}, installation="demo")
    assert (caught.value.code, caught.value.missing) == ("unreadable_answer", part)
