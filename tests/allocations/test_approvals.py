"""Does an outcome follow from steps and decisions, and is every decision recorded once, by somebody who may?"""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.errors import Invalid, NotAllowed, WrongState
from allocations.models import ApprovalPolicy, Decision, Event
from allocations.services import approvals, teams
from allocations.states import Outcome, Said, Step, matches, outcome
from tests.allocations.fleets import AT

said = st.builds(
    Said, st.integers(1, 3), st.integers(1, 6), st.sampled_from(["approve", "approve", "approve", "reject"])
)


def test_no_steps_are_an_approval():
    assert outcome([], []) == Outcome("approved")


def test_the_open_step_names_its_role_and_how_many_are_missing():
    steps = [Step(1, "approver", 2), Step(2, "operator")]
    assert outcome(steps, [Said(1, 7, "approve")]) == Outcome("pending", 1, "approver", 1)
    assert outcome(steps, [Said(1, 7, "approve"), Said(1, 8, "approve")]) == Outcome("pending", 2, "operator", 1)


def test_one_person_never_counts_for_two_steps():
    steps = [Step(1, "approver"), Step(2, "approver")]
    assert outcome(steps, [Said(1, 7, "approve"), Said(2, 7, "approve")]).standing == "pending"


@given(st.lists(said, max_size=12), st.integers(1, 3))
def test_any_no_decides_and_an_approval_needs_different_people_for_every_step(decisions, quorum):
    steps = [Step(1, "approver", quorum), Step(2, "operator", 1)]
    result = outcome(steps, decisions)
    if any(one.verdict == "reject" for one in decisions):
        assert result.standing == "rejected"
    elif result.standing == "approved":
        assert len({one.approver for one in decisions}) >= quorum + 1


@pytest.mark.parametrize(
    ("rule", "facts", "expected"),
    [
        ({}, {}, True),
        ({"min_racks": 4}, {"racks": 4}, True),
        ({"min_racks": 4}, {"racks": 3}, False),
        ({"max_duration_minutes": 60}, {"duration_minutes": 61}, False),
        ({"min_racks": 4}, {}, False),
        ({"team": "acme/vision"}, {"team": "acme/vision/track"}, True),
        ({"team": "acme/vision"}, {"team": "acme/vision2"}, False),
        ({"kind": "reservation", "cluster": "sol"}, {"kind": "reservation", "cluster": "luna"}, False),
    ],
)
def test_a_rule_is_met_when_every_key_holds(rule, facts, expected):
    assert matches(rule, facts) is expected


@pytest.fixture
def people(db):
    return [teams.add_person(email=f"p{n}@x.example", name=f"P{n}", actor=None, at=AT) for n in range(4)]


def case_of(requester, **facts):
    return approvals.open_case(requester=requester, kind="reservation", facts=facts, at=AT)


def decide(case, approver, verdict="approve", **more):
    return approvals.decide(case=case, approver=approver, verdict=verdict, at=AT + timedelta(minutes=1), **more)


def test_without_a_policy_one_approver_decides(people):
    case = case_of(people[0])
    assert approvals.outcome_of(case) == Outcome("pending", 1, "approver", 1)
    assert decide(case, people[1]).standing == "approved"
    assert Event.objects.filter(verb="approval.decided").count() == 1


def test_nobody_decides_their_own_request(people):
    with pytest.raises(NotAllowed) as refused:
        decide(case_of(people[0]), people[0])
    assert refused.value.code == "own_request"


def test_a_decided_case_takes_no_more_decisions(people):
    case = case_of(people[0])
    decide(case, people[1], "reject", reason="no room")
    with pytest.raises(WrongState):
        decide(case, people[2])
    assert Decision.objects.count() == 1


def test_the_same_person_decides_once_in_a_case(people):
    steps = [{"role": "approver", "quorum": 1}, {"role": "operator", "quorum": 1}]
    approvals.set_policy(name="two", steps=steps, actor=None, at=AT)
    case = case_of(people[0])
    assert decide(case, people[1]) == Outcome("pending", 2, "operator", 1)
    with pytest.raises(WrongState) as refused:
        decide(case, people[1])
    assert refused.value.code == "already_decided"
    assert decide(case, people[2]).standing == "approved"


def test_a_verdict_on_another_version_is_refused(people):
    with pytest.raises(WrongState) as refused:
        decide(case_of(people[0]), people[1], subject_version=2)
    assert refused.value.code == "subject_changed"


@pytest.mark.parametrize(("verdict", "reason"), [("reject", ""), ("offer", "smaller"), ("perhaps", "x")])
def test_a_no_without_a_reason_and_an_offer_of_nothing_are_refused(people, verdict, reason):
    with pytest.raises(Invalid):
        decide(case_of(people[0]), people[1], verdict, reason=reason)


def test_the_lowest_position_that_matches_is_the_policy_and_its_steps_are_copied(people):
    approvals.set_policy(name="all", position=90, actor=None, at=AT)
    big = approvals.set_policy(
        name="big", position=10, matches={"min_racks": 4}, steps=[{"role": "approver", "quorum": 2}], actor=None, at=AT
    )
    case = case_of(people[0], racks=5)
    assert case.policy == big
    approvals.set_policy(name="big", position=10, matches={"min_racks": 4}, actor=None, at=AT)
    assert approvals.outcome_of(case).missing == 2
    assert case_of(people[0], racks=1).policy.name == "all"


def test_a_policy_that_decides_by_itself(people):
    approvals.set_policy(name="small", automatic="approve", matches={"max_racks": 1}, position=1, actor=None, at=AT)
    approvals.set_policy(name="never", automatic="refuse", matches={"min_racks": 50}, position=1, actor=None, at=AT)
    assert approvals.outcome_of(case_of(people[0], racks=1)).standing == "approved"
    assert approvals.outcome_of(case_of(people[0], racks=60)).standing == "rejected"


def test_a_policy_set_again_is_silent_and_a_changed_one_is_a_new_version(people):
    first = approvals.set_policy(name="all", actor=None, at=AT)
    assert approvals.set_policy(name="all", actor=None, at=AT) == first
    second = approvals.set_policy(name="all", hold_minutes=60, actor=None, at=AT)
    assert second.number == 2
    assert ApprovalPolicy.objects.get(retired_at=None) == second


@pytest.mark.parametrize(
    "wrong",
    [
        {"matches": {"colour": 1}},
        {"steps": [{"role": "boss"}]},
        {"steps": []},
        {"steps": [{"role": "approver", "quorum": 0}]},
        {"steps": [{"role": "approver", "quorum": True}]},
        {"matches": {"min_racks": "six"}},
        {"matches": {"max_gpus": None}},
        {"matches": {"team": ["acme"]}},
        {"hold_minutes": 0},
        {"hold_minutes": 2**31 - 1},
    ],
)
def test_a_policy_that_could_never_be_followed_is_refused(people, wrong):
    with pytest.raises(Invalid):
        approvals.set_policy(name="x", actor=None, at=AT, **wrong)
