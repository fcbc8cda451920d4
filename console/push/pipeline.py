"""How does a cluster come to hold what was approved? gather, read, settle, render, diff, gate, apply, verify.

Level-triggered: each pass pushes the whole desired state by generation, so a lost message, a killed worker or a
coalesced hundred changes all end the same way. A dry run is this path, stopped before the first write.
"""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from allocations.events import record as record_event
from allocations.models import Cluster
from console.drivers import Driver, DriverError
from console.models import ClusterEndpoint, ObservedObject, PushPlan, PushStep
from console.push import desired as gathering
from console.push import gate, lease, record
from console.push.endpoints import driver_of
from scheduling.desired import DesiredState
from scheduling.dialects import Capabilities, Dialect, DialectError, dialect
from scheduling.plan import Observed, Plan, Rendered, Step, diff
from scheduling.settle import Converging, settle

log = logging.getLogger(__name__)
Ended = Literal["equal", "verified", "differs", "converging", "waiting", "failed", "unreachable", "busy"]
CONVERGING_SECONDS = 30


@dataclass(frozen=True)
class Look:
    """One comparison of a cluster with what it should hold."""

    state: DesiredState
    rendered: Rendered
    observed: Observed
    plan: Plan
    converging: tuple[Converging, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a pass ended: a word, a sentence, and the steps it wrote or would write."""

    ended: Ended
    sentence: str
    steps: tuple[Step, ...] = ()
    plan: PushPlan | None = None
    compromises: tuple[Any, ...] = ()
    converging: tuple[Converging, ...] = field(default=())


def push(*, cluster_id: int, at: datetime, dry_run: bool = False) -> Outcome:
    """One pass for one cluster. With `dry_run` it stops before the first write and leaves no trace.

    Never raises for what a cluster does: an unreachable or refusing cluster is an outcome, with a later try planned.
    """
    endpoint = _endpoint(cluster_id) if dry_run else lease.take(cluster_id=cluster_id, at=at)
    if endpoint is None:
        return Outcome("busy", "Another push is at work on this cluster, or it has no endpoint.")
    try:
        return _pass(endpoint, at, dry_run)
    except lease.Fenced as fenced:
        log.warning("%s", fenced)
        return Outcome("busy", "Another push took over.")
    except (DriverError, DialectError) as error:
        return _failed(endpoint, error, at, dry_run)
    except Exception:
        if not dry_run:
            lease.give_back(
                endpoint,
                state=ClusterEndpoint.State.FAILED,
                sentence="The push broke off by a fault of Berth's own; the log has it.",
                failures=F("failures") + 1,
                next_push_at=at + _back_off(endpoint.failures + 1),
            )
        raise


def look(endpoint: ClusterEndpoint, driver: Driver, at: datetime) -> Look:
    """Read the cluster and compare. No lock is held and no transaction is open while the cluster is asked."""
    speech = dialect(endpoint.cluster.kind)
    state = gathering.gather(cluster_id=endpoint.cluster_id, at=at)
    observed = _read(speech, driver, state)
    settled = settle(state, observed)
    rendered = speech.render(settled.desired, _capabilities(state, observed))
    return Look(state, rendered, observed, diff(rendered, observed), settled.converging)


def due(*, at: datetime) -> list[int]:
    """Clusters a push should look at now: never tried, a newer generation than tried, or their next look has come."""
    return list(
        ClusterEndpoint.objects.filter(
            Q(next_push_at=None)
            | Q(next_push_at__lte=at)
            | Q(cluster__desired_generation__gt=F("tried_generation"))
        )
        .filter(Q(lease_until=None) | Q(lease_until__lte=at))
        .values_list("cluster_id", flat=True)
    )


def _endpoint(cluster_id: int) -> ClusterEndpoint | None:
    return ClusterEndpoint.objects.select_related("cluster").filter(cluster_id=cluster_id).first()


def _read(speech: Dialect, driver: Driver, state: DesiredState) -> Observed:
    return speech.parse(driver.read(), installation=state.installation, label_prefix=state.label_prefix)


def _capabilities(state: DesiredState, observed: Observed) -> Capabilities:
    return Capabilities(
        kind=state.kind,
        version=tuple(observed.facts.get("version", ())),
        native_cluster=str(observed.facts.get("native_cluster", "")),
    )


def _pass(endpoint: ClusterEndpoint, at: datetime, dry_run: bool) -> Outcome:
    driver = driver_of(endpoint)
    seen = look(endpoint, driver, at)
    if dry_run:
        return _told(seen)
    generation = seen.state.generation
    endpoint.tried_generation = generation
    drifted = _drifted(endpoint, seen)
    steps, reasons = gate.judge(seen.plan, endpoint)
    record.see(
        cluster_id=endpoint.cluster_id, rendered=seen.rendered, observed=seen.observed, plan=seen.plan, at=at
    )
    record.adopt(
        cluster_id=endpoint.cluster_id, observed=seen.observed, rendered=seen.rendered, generation=generation, at=at
    )
    _tell_drift(endpoint, drifted, at)
    if seen.plan.is_empty:
        return _settled(endpoint, seen, None, at)
    held = _held_back(endpoint, seen, steps, reasons, bool(drifted), at)
    if held is not None:
        return held
    plan = record.write_plan(
        endpoint=endpoint,
        plan=seen.plan,
        steps=steps,
        generation=generation,
        state=PushPlan.State.APPLYING,
        is_drift=bool(drifted),
        reasons=(),
        at=at,
    )
    ClusterEndpoint.objects.filter(pk=endpoint.pk, attempt=endpoint.attempt).update(state="applying", sentence="")
    if not _apply(endpoint, driver, plan, steps, generation):
        return _superseded(endpoint, plan)
    return _verify(endpoint, driver, plan, steps)


def _told(seen: Look) -> Outcome:
    """What a dry run says."""
    if seen.plan.is_empty and not seen.converging:
        return Outcome("equal", "Nothing differs.", compromises=seen.rendered.compromises)
    ended: Ended = "differs" if not seen.plan.is_empty else "converging"
    return Outcome(
        ended,
        f"{len(seen.plan.steps)} steps would be written." if seen.plan.steps else seen.converging[0].sentence,
        seen.plan.steps,
        compromises=seen.rendered.compromises,
        converging=seen.converging,
    )


def _drifted(endpoint: ClusterEndpoint, seen: Look) -> list[Step]:
    """Steps that undo somebody's hand: their object was in step when last read and has changed or gone since."""
    before = {
        (row.object_class, row.name): row.attributes
        for row in ObservedObject.objects.filter(cluster=endpoint.cluster_id, state=ObservedObject.State.IN_STEP)
    }
    now = {each.key: record.plain(each.attributes) for each in seen.observed.objects}
    return [
        step
        for step in seen.plan.steps
        if (step.object_class, step.name) in before
        and now.get((step.object_class, step.name)) != before[(step.object_class, step.name)]
    ]


def _tell_drift(endpoint: ClusterEndpoint, drifted: list[Step], at: datetime) -> None:
    for step in drifted:
        gone = step.verb == "create"
        record_event(
            "push.drift_found",
            subject=("cluster", endpoint.cluster.name),
            actor=None,
            at=at,
            cluster=endpoint.cluster,
            before={"object": step.name, "changes": record.plain([vars_of_change(each) for each in step.changes])},
            sentence=f"{step.object_class} {step.name} {'is gone from' if gone else 'was changed on'} {endpoint.cluster.name} by hand.",
        )


def vars_of_change(change: Any) -> dict[str, Any]:
    """A change as a plain mapping."""
    return {"attribute": change.attribute, "before": record.plain(change.before), "after": record.plain(change.after)}


def _held_back(
    endpoint: ClusterEndpoint,
    seen: Look,
    steps: tuple[Step, ...],
    reasons: tuple[str, ...],
    is_drift: bool,
    at: datetime,
) -> Outcome | None:
    """The outcome when nothing may be written now: frozen, observed only, waiting for a person, or drift that asks."""
    cluster = endpoint.cluster
    if cluster.frozen_at is not None:
        reasons = (f"{cluster.name} is frozen: {cluster.frozen_reason or 'no reason given'}", *reasons)
    elif is_drift and cluster.drift_policy == Cluster.DriftPolicy.ASK:
        reasons = (f"{cluster.name} asks before it puts back what was changed by hand.", *reasons)
    if steps and (not reasons or (cluster.frozen_at is None and _agreed(endpoint, steps))):
        return None
    written = steps or seen.plan.steps
    waits = bool(steps)
    plan = record.write_plan(
        endpoint=endpoint,
        plan=seen.plan,
        steps=written,
        generation=seen.state.generation,
        state=PushPlan.State.WAITING if waits else PushPlan.State.DRY_RUN,
        is_drift=is_drift,
        reasons=reasons or (f"{cluster.name} is in observe mode: this is what would have been written.",),
        at=at,
    )
    sentence = (reasons or (f"{len(written)} steps would be written; {cluster.name} is in observe mode.",))[0]
    state = ClusterEndpoint.State.WAITING if waits else ClusterEndpoint.State.DRIFTED
    newly = endpoint.state != state
    lease.give_back(endpoint, **_looked(endpoint, at), state=state, sentence=sentence[:1000])
    if newly and waits:
        record_event(
            "push.waiting", subject=("plan", plan.public_id), actor=None, at=at, cluster=cluster, sentence=sentence
        )
    return Outcome("waiting" if waits else "differs", sentence, written, plan, seen.rendered.compromises)


def _agreed(endpoint: ClusterEndpoint, steps: tuple[Step, ...]) -> bool:
    """Has a person said yes to exactly these steps?"""
    return PushPlan.objects.filter(
        cluster=endpoint.cluster_id, state=PushPlan.State.APPROVED, fingerprint=record.fingerprint(steps)
    ).exists()


def _looked(endpoint: ClusterEndpoint, at: datetime, seconds: float | None = None) -> dict[str, Any]:
    return {
        "tried_generation": endpoint.tried_generation,
        "failures": 0,
        "read_at": at,
        "next_push_at": at + timedelta(seconds=seconds or settings.BERTH_DRIFT_CHECK_SECONDS),
    }


def _apply(
    endpoint: ClusterEndpoint, driver: Driver, plan: PushPlan, steps: tuple[Step, ...], generation: int
) -> bool:
    """Write the steps one by one, each recorded before and after. False when a newer generation made the rest stale."""
    for number, step in enumerate(steps, start=1):
        lease.extend(endpoint)
        if Cluster.objects.filter(pk=endpoint.cluster_id, desired_generation__gt=generation).exists():
            return False
        now = timezone.now()
        record.own(cluster_id=endpoint.cluster_id, step=step, generation=generation, at=now)
        row = PushStep.objects.filter(plan=plan, number=number)
        row.update(state=PushStep.State.APPLYING, started_at=now)
        try:
            applied = driver.apply(step)
        except DriverError as error:
            row.update(state=PushStep.State.FAILED, output=error.sentence[:10_000], finished_at=timezone.now())
            PushPlan.objects.filter(pk=plan.pk).update(
                state=PushPlan.State.FAILED, sentence=error.sentence[:1000], finished_at=timezone.now()
            )
            raise
        if step.verb == "delete":
            record.disown(cluster_id=endpoint.cluster_id, step=step, at=timezone.now())
        row.update(state=PushStep.State.APPLIED, output=applied.output[:10_000], finished_at=timezone.now())
    PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.APPLIED)
    return True


def _superseded(endpoint: ClusterEndpoint, plan: PushPlan) -> Outcome:
    now = timezone.now()
    PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.SUPERSEDED, finished_at=now)
    PushStep.objects.filter(plan=plan, state=PushStep.State.PLANNED).update(state=PushStep.State.SKIPPED)
    lease.give_back(endpoint, next_push_at=now, state=ClusterEndpoint.State.PENDING)
    return Outcome("busy", "A newer change came: the next pass writes it.", plan=plan)


def _verify(endpoint: ClusterEndpoint, driver: Driver, plan: PushPlan, steps: tuple[Step, ...]) -> Outcome:
    """Read back and compare: done means equal."""
    now = timezone.now()
    again = look(endpoint, driver, now)
    record.see(
        cluster_id=endpoint.cluster_id, rendered=again.rendered, observed=again.observed, plan=again.plan, at=now
    )
    left, _ = gate.judge(again.plan, endpoint)
    if left and again.state.generation == plan.generation:
        sentence = f"{len(left)} of {len(steps)} steps did not take: {left[0].object_class} {left[0].name} still differs."
        PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.FAILED, sentence=sentence, finished_at=now)
        return _retry(endpoint, ClusterEndpoint.State.FAILED, sentence, now)
    PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.VERIFIED, finished_at=now)
    PushStep.objects.filter(plan=plan, state=PushStep.State.APPLIED).update(state=PushStep.State.VERIFIED)
    return _settled(endpoint, again, plan, now, steps)


@transaction.atomic
def _settled(
    endpoint: ClusterEndpoint, seen: Look, plan: PushPlan | None, at: datetime, steps: tuple[Step, ...] = ()
) -> Outcome:
    """The cluster equals what it should hold; with work still draining it is converging and not yet applied."""
    compromises = seen.rendered.compromises
    if seen.converging or not seen.plan.is_empty:
        sentence = seen.converging[0].sentence if seen.converging else "A newer change came while this one was verified."
        lease.give_back(
            endpoint, **_looked(endpoint, at, CONVERGING_SECONDS), state=ClusterEndpoint.State.CONVERGING, sentence=sentence
        )
        return Outcome("converging", sentence, steps, plan, compromises, seen.converging)
    generation = seen.state.generation
    kept = lease.give_back(
        endpoint,
        **_looked(endpoint, at, _until_boundary(seen.state, at)),
        state=ClusterEndpoint.State.VERIFIED,
        sentence="",
        verified_at=at,
    )
    if not kept:
        raise lease.Fenced(f"attempt {endpoint.attempt} on {endpoint.cluster.name} was overtaken")
    news = Cluster.objects.filter(pk=endpoint.cluster_id, applied_generation__lt=generation).update(
        applied_generation=generation
    )
    if news or steps:
        record_event(
            "push.verified",
            subject=("cluster", endpoint.cluster.name),
            actor=None,
            at=at,
            cluster=endpoint.cluster,
            after={"generation": generation, "steps": len(steps), "plan": plan.public_id if plan else None},
            sentence=f"{endpoint.cluster.name} holds generation {generation}, read back and equal.",
        )
    return Outcome(
        "verified" if steps else "equal", f"{endpoint.cluster.name} is in step.", steps, plan, compromises
    )


def _until_boundary(state: DesiredState, at: datetime) -> float:
    """Seconds until time itself changes what the cluster should hold, at most until the next look for drift."""
    now = at.timestamp()
    ahead = [
        minute * 60 - now
        for each in state.reservations
        for minute in (each.start_minute, each.end_minute)
        if minute * 60 > now
    ]
    return max(1.0, min([settings.BERTH_DRIFT_CHECK_SECONDS, *ahead]))


def _back_off(failures: int) -> timedelta:
    """10 s, doubling, to 1 h."""
    least, most = settings.BERTH_PUSH_BACKOFF_SECONDS
    return timedelta(seconds=min(most, least * 2 ** min(failures - 1, 20)))


def _retry(endpoint: ClusterEndpoint, state: str, sentence: str, at: datetime) -> Outcome:
    newly = endpoint.state != state or endpoint.sentence != sentence[:1000]
    later = at + _back_off(endpoint.failures + 1)
    kept = lease.give_back(
        endpoint,
        state=state,
        sentence=sentence[:1000],
        failures=endpoint.failures + 1,
        tried_generation=endpoint.tried_generation,
        next_push_at=later,
    )
    if kept and newly:
        record_event(
            "push.failed",
            subject=("cluster", endpoint.cluster.name),
            actor=None,
            at=at,
            cluster=endpoint.cluster,
            sentence=sentence,
        )
    ended: Ended = "unreachable" if state == ClusterEndpoint.State.UNREACHABLE else "failed"
    return Outcome(ended, sentence)


def _failed(endpoint: ClusterEndpoint, error: DriverError | DialectError, at: datetime, dry_run: bool) -> Outcome:
    """An outcome for what the cluster did, with the next try planned (not for a dry run)."""
    away = isinstance(error, DriverError) and error.code in ("unreachable", "timeout")
    state = ClusterEndpoint.State.UNREACHABLE if away else ClusterEndpoint.State.FAILED
    sentence = getattr(error, "sentence", str(error))
    if dry_run:
        return Outcome("unreachable" if away else "failed", sentence)
    endpoint.tried_generation = Cluster.objects.values_list("desired_generation", flat=True).get(pk=endpoint.cluster_id)
    return _retry(endpoint, state, sentence, at)
