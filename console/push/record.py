"""What is written down about a push: the plan, each step before and after it, what was seen, what Berth owns."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from console.models import ClusterEndpoint, ObservedObject, OwnedObject, PushPlan, PushStep
from scheduling.plan import NativeObject, Observed, Plan, Rendered, Step


def plain(value: Any) -> Any:
    """A value as JSON can hold it: sets and tuples become sorted or ordered lists, mappings keep their keys."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, set | frozenset):
        return sorted(plain(each) for each in value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def fingerprint(steps: Iterable[Step]) -> str:
    """Equal for plans that would change the same: what a person agreed to is what is applied.

    Commands do not count: the same change is spelled anew at each moment (the start of what has begun).
    """
    told = [[step.verb, step.object_class, step.name, changes_of(step)] for step in steps]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def changes_of(step: Step) -> list[dict[str, Any]]:
    """A step's changes as JSON holds them: attribute, before, after."""
    return [{"attribute": c.attribute, "before": plain(c.before), "after": plain(c.after)} for c in step.changes]


def change_words(change: Mapping[str, Any], longest: int | None = None) -> str:
    """One change in words, `nodes gb[001-016] → gb[001-018]`; where nothing was, only what will be.

    `longest` cuts each value to so many characters.
    """
    before, after = (_value_words(change[side], longest) for side in ("before", "after"))
    return f"{change['attribute']} " + (after if change["before"] is None else f"{before} → {after}")


def _value_words(value: Any, longest: int | None) -> str:
    text = (", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)) or "none"
    return text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"


@transaction.atomic
def write_plan(
    *,
    endpoint: ClusterEndpoint,
    plan: Plan,
    steps: tuple[Step, ...],
    generation: int,
    state: str,
    is_drift: bool,
    reasons: tuple[str, ...],
    at: datetime,
) -> PushPlan:
    """The plan and its steps as rows. The same waiting or dry plan is not written twice: the earlier row stands.

    A plan that a person agreed to is applied as that plan, under its own number.
    """
    mark = fingerprint(steps)
    last = PushPlan.objects.filter(cluster=endpoint.cluster_id).first()
    if last is not None and last.fingerprint == mark and _stands(last, state, generation):
        return last
    if last is not None and last.fingerprint == mark and last.state == PushPlan.State.APPROVED:
        if state == PushPlan.State.APPLYING:
            last.state, last.attempt, last.generation = PushPlan.State.APPLYING, endpoint.attempt, generation
            last.save(update_fields=("state", "attempt", "generation"))
        return last
    close_open_plans(cluster_id=endpoint.cluster_id, at=at, is_in_step=False)
    row = PushPlan.objects.create(
        cluster_id=endpoint.cluster_id,
        generation=generation,
        attempt=endpoint.attempt,
        state=state,
        is_drift=is_drift,
        compromises=[plain(vars_of(each)) for each in plan.compromises],
        gate_reasons=list(reasons),
        fingerprint=mark,
        created_at=at,
    )
    PushStep.objects.bulk_create(_step_row(row, number, step) for number, step in enumerate(steps, start=1))
    return row


def _step_row(plan: PushPlan, number: int, step: Step) -> PushStep:
    return PushStep(
        plan=plan,
        number=number,
        verb=step.verb,
        object_class=step.object_class,
        name=step.name,
        changes=changes_of(step),
        commands=list(step.commands),
    )


def _stands(earlier: PushPlan, wanted: str, generation: int) -> bool:
    """Does the earlier plan of equal steps say what the new one would? A no holds until something else is wanted."""
    refused = earlier.state == PushPlan.State.DISCARDED and earlier.generation == generation
    return wanted in ("waiting", "dry_run") and (earlier.state == wanted or refused)


@transaction.atomic
def close_open_plans(*, cluster_id: int, at: datetime, is_in_step: bool) -> None:
    """End what earlier passes left open. A plan whose worker was killed counts as verified once all is in step."""
    started = PushPlan.objects.filter(cluster=cluster_id, state__in=("applying", "applied"))
    if is_in_step:
        begun = PushStep.objects.filter(plan__in=started)
        begun.filter(state__in=("applying", "applied")).update(state=PushStep.State.VERIFIED, finished_at=at)
        begun.filter(state="planned").update(state=PushStep.State.SKIPPED)
        started.update(state=PushPlan.State.VERIFIED, finished_at=at)
    PushPlan.objects.filter(cluster=cluster_id, state__in=("waiting", "approved", "applying", "applied")).update(
        state=PushPlan.State.SUPERSEDED, finished_at=at
    )


def vars_of(compromise: Any) -> dict[str, str]:
    """A compromise as a plain mapping."""
    return {"code": compromise.code, "subject": compromise.subject, "sentence": compromise.sentence}


@transaction.atomic
def own(*, cluster_id: int, step: Step, generation: int, at: datetime) -> None:
    """Remember that Berth made this object, before it is made, so that a kill in between leaves no orphan."""
    if step.verb == "create":
        OwnedObject.objects.get_or_create(
            cluster_id=cluster_id,
            object_class=step.object_class,
            name=step.name,
            deleted_at=None,
            defaults={"generation": generation, "created_at": at},
        )


def disown(*, cluster_id: int, step: Step, at: datetime) -> None:
    """Remember that the object was deleted."""
    OwnedObject.objects.filter(
        cluster_id=cluster_id, object_class=step.object_class, name=step.name, deleted_at=None
    ).update(deleted_at=at)


@transaction.atomic
def adopt(*, cluster_id: int, observed: Observed, rendered: Rendered, generation: int, at: datetime) -> None:
    """Own whatever stands there with Berth's mark and is wanted, as after a restore; forget what is gone for good."""
    wanted = {each.key for each in rendered.objects}
    here = {each.key for each in observed.objects if each.owned}
    rows = OwnedObject.objects.filter(cluster=cluster_id, deleted_at=None)
    known = {(object_class, name): pk for pk, object_class, name in rows.values_list("pk", "object_class", "name")}
    OwnedObject.objects.bulk_create(
        [
            OwnedObject(cluster_id=cluster_id, object_class=key[0], name=key[1], generation=generation, created_at=at)
            for key in sorted(here & wanted - known.keys())
        ],
        ignore_conflicts=True,
    )
    gone = [pk for key, pk in known.items() if key not in here and key not in wanted]
    OwnedObject.objects.filter(pk__in=gone).update(deleted_at=at)


@transaction.atomic
def see(*, cluster_id: int, rendered: Rendered, observed: Observed, plan: Plan, at: datetime) -> None:
    """Keep what was read, object by object, with how it differs from what should be there."""
    wanted = {each.key for each in rendered.objects}
    steps = {(step.object_class, step.name): step for step in plan.steps}
    known = {(row.object_class, row.name): row for row in ObservedObject.objects.filter(cluster=cluster_id)}
    seen: set[tuple[str, str]] = set()
    fresh: list[ObservedObject] = []
    for each in observed.objects:
        step = steps.get(each.key)
        state = _state(each, each.key in wanted, step)
        fresh.append(_row(cluster_id, each.key, plain(each.attributes), state, step, known.get(each.key), at))
        seen.add(each.key)
    for key in wanted - seen:
        fresh.append(_row(cluster_id, key, {}, ObservedObject.State.MISSING, steps.get(key), known.get(key), at))
        seen.add(key)
    ObservedObject.objects.filter(pk__in=[row.pk for key, row in known.items() if key not in seen]).delete()
    ObservedObject.objects.filter(cluster=cluster_id).update(observed_at=at)
    ObservedObject.objects.bulk_create(
        [row for row in fresh if not _is_same(row, known.get((row.object_class, row.name)))],
        update_conflicts=True,
        unique_fields=("cluster", "object_class", "name"),
        update_fields=("attributes", "state", "changes", "observed_at", "since_at"),
    )


def _state(seen: NativeObject, is_wanted: bool, step: Step | None) -> str:
    if not seen.owned:
        return ObservedObject.State.FOREIGN
    if not is_wanted:
        return ObservedObject.State.UNWANTED
    return ObservedObject.State.DRIFTED if step else ObservedObject.State.IN_STEP


def _is_same(row: ObservedObject, known: ObservedObject | None) -> bool:
    """Does the stored row say all of it already, but for the moment?"""
    return known is not None and (row.state, row.attributes, row.changes) == (
        known.state,
        known.attributes,
        known.changes,
    )


def _row(
    cluster_id: int,
    key: tuple[str, str],
    attributes: Any,
    state: str,
    step: Step | None,
    known: ObservedObject | None,
    at: datetime,
) -> ObservedObject:
    since = known.since_at if known is not None and known.state == state else at
    return ObservedObject(
        cluster_id=cluster_id,
        object_class=key[0],
        name=key[1],
        attributes=attributes,
        state=state,
        changes=changes_of(step) if step else [],
        observed_at=at,
        since_at=since,
    )
