"""How is an ask decided? (the policy it meets, the case copied from it, and decisions that only record and answer)

A subject points to its case; a case never knows its subject. `decide()` records and returns the outcome; whoever
called it takes the effect in the same transaction, after it asked permissions.can() about the subject.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from allocations import states
from allocations.errors import Fault, Invalid, NotAllowed, WrongState
from allocations.events import record
from allocations.models import ApprovalCase, ApprovalPolicy, ApprovalStep, Decision, User
from allocations.permissions import require
from allocations.states import Outcome, Said, Step

MOST_QUORUM = 100
MOST_HOLD_MINUTES = 400 * 24 * 60
STEP_ROLES = ("approver", "operator", "lead")
_DEFAULT_STEPS: tuple[dict[str, Any], ...] = ({"role": "approver", "quorum": 1},)


def policy_for(*, kind: str, facts: Mapping[str, Any]) -> ApprovalPolicy | None:
    """The policy in force that this ask meets, lowest position first; None when no policy speaks of it.

    Facts: duration_minutes, racks, gpus, flavor, cluster, team (its path). What is not told meets no bound.
    """
    told = {**facts, "kind": kind}
    in_force = ApprovalPolicy.objects.filter(retired_at=None).order_by("position", "name")
    return next((policy for policy in in_force if states.matches(policy.matches, told)), None)


def open_case(*, requester: User, kind: str, facts: Mapping[str, Any], at: datetime, version: int = 1) -> ApprovalCase:
    """Open an ask's case with the steps of the policy in force, copied. Without a policy: one approver's yes.

    A policy that decides by itself leaves a case without steps: ask outcome_of() at once. An ask that changed gets
    a new case with its new `version`.
    """
    policy = policy_for(kind=kind, facts=facts)
    steps: Sequence[Mapping[str, Any]] = _DEFAULT_STEPS if policy is None else [] if policy.automatic else policy.steps
    with transaction.atomic():
        case = ApprovalCase.objects.create(policy=policy, requester=requester, subject_version=version, opened_at=at)
        ApprovalStep.objects.bulk_create(
            ApprovalStep(case=case, number=number, role=step["role"], quorum=step.get("quorum", 1))
            for number, step in enumerate(steps, start=1)
        )
        record(
            "approval_case.opened",
            subject=("approval_case", str(case.pk)),
            actor=requester,
            at=at,
            after={"kind": kind, "policy": policy.name if policy else None, "steps": [dict(step) for step in steps]},
        )
    return case


def outcome_of(case: ApprovalCase) -> Outcome:
    """Where the case stands now; two queries."""
    if case.policy is not None and case.policy.automatic == "refuse":
        return Outcome("rejected")
    steps = list(case.steps.prefetch_related("decisions"))
    made = sorted(
        (decision for step in steps for decision in step.decisions.all()),
        key=lambda decision: (decision.decided_at, decision.pk),
    )
    number = {step.pk: step.number for step in steps}
    said = [Said(number[one.step_id], one.approver_id, one.verdict) for one in made]
    return states.outcome([Step(step.number, step.role, step.quorum) for step in steps], said)


def decide(
    *,
    case: ApprovalCase,
    approver: User,
    verdict: str,
    reason: str = "",
    at: datetime,
    subject_version: int | None = None,
    counter_offer: Mapping[str, Any] | None = None,
) -> Outcome:
    """Record one person's verdict on the open step and say where the case stands then. Takes no effect.

    Raises NotAllowed own_request for the requester, WrongState already_decided for a person who decided in this case,
    subject_changed for a verdict on another version, wrong_state when it is closed; Invalid without a reason for a no.
    """
    if approver.pk == case.requester_id:
        raise NotAllowed("Nobody decides their own request.", code="own_request")
    _check_verdict(verdict, reason, counter_offer)
    with transaction.atomic():
        case = ApprovalCase.objects.select_for_update(no_key=True).get(pk=case.pk)
        before = outcome_of(case)
        if case.closed_at is not None or before.step is None or not before.is_open:
            raise WrongState("This was decided already.", standing=before.standing)
        if subject_version is not None and subject_version != case.subject_version:
            raise WrongState(
                "What is asked changed since you looked. Read it again.",
                "subject_changed",
                version=case.subject_version,
            )
        if Decision.objects.filter(step__case=case, approver=approver).exists():
            raise WrongState("You decided on this already; the next step needs somebody else.", "already_decided")
        decision = Decision.objects.create(
            step=case.steps.get(number=before.step),
            approver=approver,
            verdict=verdict,
            reason=reason.strip(),
            counter_offer=dict(counter_offer) if counter_offer is not None else None,
            subject_version=case.subject_version,
            decided_at=at,
        )
        after = outcome_of(case)
        if not after.is_open:
            case.closed_at = at
            case.save(update_fields=("closed_at",))
        record(
            "approval.decided",
            subject=("decision", decision.public_id),
            actor=approver,
            at=at,
            after={"case": case.pk, "step": before.step, "verdict": verdict, "standing": after.standing},
        )
    return after


def close_case(*, case: ApprovalCase, at: datetime, actor: User | None) -> None:
    """Close a case whose ask was withdrawn, lapsed or cancelled. Nothing to do when it is closed."""
    with transaction.atomic():
        case = ApprovalCase.objects.select_for_update(no_key=True).get(pk=case.pk)
        if case.closed_at is None:
            case.closed_at = at
            case.save(update_fields=("closed_at",))
            subject = ("approval_case", str(case.pk))
            record("approval.decided", subject=subject, actor=actor, at=at, after={"standing": "closed"})


def set_policy(
    *,
    name: str,
    position: int = 100,
    matches: Mapping[str, Any] | None = None,
    steps: Sequence[Mapping[str, Any]] = _DEFAULT_STEPS,
    automatic: str = "",
    reason: str = "",
    hold_minutes: int = 1440,
    actor: User | None,
    at: datetime,
) -> ApprovalPolicy:
    """Put a version of the policy in force; the one before is retired and kept. The same again changes nothing.

    Raises Invalid for a match key, a role, a quorum or hold_minutes that no ask could meet, NotAllowed for anybody but
    an admin.
    """
    require(actor, "policy.set")
    if not all(isinstance(step, Mapping) for step in steps):
        raise Invalid("A step has a role and a quorum.", Fault("/steps", "invalid", "A role and a quorum."))
    wanted = {
        "position": position,
        "matches": dict(matches or {}),
        "steps": [{"role": step.get("role"), "quorum": step.get("quorum", 1)} for step in steps],
        "automatic": automatic,
        "reason": reason,
        "hold_minutes": hold_minutes,
    }
    _check_policy(wanted)
    with transaction.atomic():
        before = ApprovalPolicy.objects.select_for_update(no_key=True).filter(name=name, retired_at=None).first()
        if before is not None and all(getattr(before, key) == value for key, value in wanted.items()):
            return before
        last = ApprovalPolicy.objects.filter(name=name).order_by("-number").first()
        ApprovalPolicy.objects.filter(Q(name=name), retired_at=None).update(retired_at=at)
        policy = ApprovalPolicy.objects.create(name=name, number=last.number + 1 if last else 1, **wanted)
        record(
            "approval_policy.set",
            subject=("approval_policy", name),
            actor=actor,
            at=at,
            before={key: getattr(before, key) for key in wanted} if before else None,
            after=wanted,
        )
    return policy


def _check_verdict(verdict: str, reason: str, counter_offer: Mapping[str, Any] | None) -> None:
    """Refuse what makes no sense whatever the case: an unknown verdict, a no without a reason, an offer of nothing."""
    if verdict not in states.VERDICTS:
        raise Invalid(f"There is no verdict {verdict!r}.", Fault("/verdict", "invalid", "Not a verdict."))
    if verdict != "approve" and not reason.strip():
        raise Invalid("Say why.", Fault("/reason", "required", "The person who asked will read this."))
    if len(reason) > 2000:
        raise Invalid("The reason is too long.", Fault("/reason", "invalid", "At most 2000 characters."))
    if verdict == "offer" and not counter_offer:
        raise Invalid("A counter-offer needs what is offered.", Fault("/counter_offer", "required", "Nothing offered."))


def _check_policy(wanted: Mapping[str, Any]) -> None:
    """Refuse a policy that could never be followed."""
    for key, value in wanted["matches"].items():
        if key not in states.MATCH_KEYS:
            raise Invalid(f"A policy cannot match {key}.", Fault(f"/matches/{key}", "unknown_key", "Unknown key."))
        if not states.is_comparable(key, value):
            kind = "a whole number" if key in states.BOUNDS else "a name"
            raise Invalid(f"{key} is {kind}, not {value!r}.", Fault(f"/matches/{key}", "invalid", f"{kind}."))
    for number, step in enumerate(wanted["steps"]):
        if step["role"] not in STEP_ROLES:
            known = ", ".join(STEP_ROLES)
            raise Invalid(
                f"A step's role is one of {known}.", Fault(f"/steps/{number}/role", "invalid", f"One of {known}.")
            )
        quorum = step["quorum"]
        if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= MOST_QUORUM:
            bound = f"1 to {MOST_QUORUM}"
            raise Invalid(f"A quorum is {bound}.", Fault(f"/steps/{number}/quorum", "invalid", f"{bound}."))
    # An ask whose hold ran out cannot be approved: with no minute at all none ever could.
    if not 1 <= wanted["hold_minutes"] <= MOST_HOLD_MINUTES:
        bound = f"1 to {MOST_HOLD_MINUTES}"
        raise Invalid(f"hold_minutes is {bound}.", Fault("/hold_minutes", "invalid", f"{bound}."))
    if wanted["automatic"] not in ("", "approve", "refuse"):
        raise Invalid("automatic is approve or refuse.", Fault("/automatic", "invalid", "approve or refuse"))
    if not wanted["steps"] and not wanted["automatic"]:
        raise Invalid("A policy has steps, or decides by itself.", Fault("/steps", "required", "No step."))
