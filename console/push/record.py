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
    """Equal for plans that would write the same: what a person agreed to is what is applied."""
    told = [[step.verb, step.object_class, step.name, plain(step.commands), _changes(step)] for step in steps]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _changes(step: Step) -> list[dict[str, Any]]:
    return [{"attribute": c.attribute, "before": plain(c.before), "after": plain(c.after)} for c in step.changes]


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
    """The plan and its steps as rows. The same waiting or dry plan is not written twice: the earlier row stands."""
    mark = fingerprint(steps)
    last = PushPlan.objects.filter(cluster=endpoint.cluster_id).first()
    if last is not None and last.fingerprint == mark and _stands(last.state, state):
        return last
    PushPlan.objects.filter(
        cluster=endpoint.cluster_id, state__in=("waiting", "approved", "applying", "applied")
    ).update(state=PushPlan.State.SUPERSEDED, finished_at=at)
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
    PushStep.objects.bulk_create(
        PushStep(
            plan=row,
            number=number,
            verb=step.verb,
            object_class=step.object_class,
            name=step.name,
            changes=_changes(step),
            commands=list(step.commands),
        )
        for number, step in enumerate(steps, start=1)
    )
    return row


def _stands(earlier: str, wanted: str) -> bool:
    """Does the earlier plan of equal steps say what the new one would? A discarded one goes on being discarded."""
    return wanted in ("waiting", "dry_run") and earlier in (wanted, PushPlan.State.DISCARDED)


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
    """Record as owned whatever stands there with Berth's mark and as rendered: a restored database owns it again."""
    wanted = {each.key for each in rendered.objects}
    for each in observed.objects:
        if each.owned and each.key in wanted:
            OwnedObject.objects.get_or_create(
                cluster_id=cluster_id,
                object_class=each.object_class,
                name=each.name,
                deleted_at=None,
                defaults={"generation": generation, "created_at": at},
            )


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
    ObservedObject.objects.bulk_create(
        fresh,
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
        changes=_changes(step) if step else [],
        observed_at=at,
        since_at=since,
    )
