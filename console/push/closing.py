"""How does a pass end? Equal, verified, converging, waiting, failed: each with its sentence and its next look."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from allocations.events import record as record_event
from allocations.models import Cluster
from console.drivers import DriverError
from console.models import ClusterEndpoint, PushPlan, PushStep
from console.push import lease, record
from console.push.look import Look
from scheduling.desired import DesiredState
from scheduling.dialects import DialectError
from scheduling.plan import Step
from scheduling.settle import Converging

Ended = Literal["equal", "verified", "differs", "converging", "waiting", "failed", "unreachable", "busy"]
CONVERGING_SECONDS = 30


@dataclass(frozen=True)
class Outcome:
    """How a pass ended: a word, a sentence, and the steps it wrote or would write."""

    ended: Ended
    sentence: str
    steps: tuple[Step, ...] = ()
    plan: PushPlan | None = None
    compromises: tuple[Any, ...] = ()
    converging: tuple[Converging, ...] = field(default=())


def told(seen: Look) -> Outcome:
    """What a dry run says."""
    if seen.plan.is_empty and not seen.converging:
        if seen.plan.foreign:
            return Outcome("waiting", _in_the_way(seen), compromises=seen.rendered.compromises)
        return Outcome("equal", "Nothing differs.", compromises=seen.rendered.compromises)
    ended: Ended = "differs" if not seen.plan.is_empty else "converging"
    return Outcome(
        ended,
        f"{_count(seen.plan.steps)} would be written." if seen.plan.steps else seen.converging[0].sentence,
        seen.plan.steps,
        compromises=seen.rendered.compromises,
        converging=seen.converging,
    )


def _count(steps: tuple[Step, ...]) -> str:
    return "1 step" if len(steps) == 1 else f"{len(steps)} steps"


def _in_the_way(seen: Look) -> str:
    """What stands under a name of ours but belongs to somebody else."""
    object_class, name = seen.plan.foreign[0]
    more = f", and {len(seen.plan.foreign) - 1} more" if len(seen.plan.foreign) > 1 else ""
    return f"{object_class} {name} is there already and is not Berth's: it is left as it is{more}."


@transaction.atomic
def held_back(
    endpoint: ClusterEndpoint,
    seen: Look,
    steps: tuple[Step, ...],
    reasons: tuple[str, ...],
    is_drift: bool,
    at: datetime,
) -> Outcome | None:
    """The outcome when nothing may be written now: frozen, observed only, waiting for a person, or drift that asks."""
    if not steps:
        return only_observed(endpoint, seen, at)
    cluster = endpoint.cluster
    if cluster.frozen_at is not None:
        reasons = (f"{cluster.name} is frozen: {cluster.frozen_reason or 'no reason given'}", *reasons)
    elif is_drift and cluster.drift_policy == Cluster.DriftPolicy.ASK:
        reasons = (f"{cluster.name} asks before it puts back what was changed by hand.", *reasons)
    if not reasons or (cluster.frozen_at is None and _agreed(endpoint, steps)):
        return None
    plan = record.write_plan(
        endpoint=endpoint,
        plan=seen.plan,
        steps=steps,
        generation=seen.state.generation,
        state=PushPlan.State.WAITING,
        is_drift=is_drift,
        reasons=reasons,
        at=at,
    )
    if plan.state == PushPlan.State.DISCARDED:
        sentence = f"{_count(steps)} would be written, but somebody discarded {plan.public_id}."
        lease.give_back(endpoint, **_looked(endpoint, at), state=ClusterEndpoint.State.DRIFTED, sentence=sentence)
        return Outcome("differs", sentence, steps, plan, seen.rendered.compromises, seen.converging)
    newly, sentence = endpoint.state != ClusterEndpoint.State.WAITING, reasons[0]
    lease.give_back(endpoint, **_looked(endpoint, at), state=ClusterEndpoint.State.WAITING, sentence=sentence[:1000])
    if newly:
        subject = ("plan", plan.public_id)
        record_event("push.waiting", subject=subject, actor=None, at=at, cluster=cluster, sentence=sentence)
    return Outcome("waiting", sentence, steps, plan, seen.rendered.compromises, seen.converging)


@transaction.atomic
def only_observed(endpoint: ClusterEndpoint, seen: Look, at: datetime) -> Outcome:
    """What differs is of classes in observe mode: it is told and never written."""
    steps, name = seen.plan.steps, endpoint.cluster.name
    plan = record.write_plan(
        endpoint=endpoint,
        plan=seen.plan,
        steps=steps,
        generation=seen.state.generation,
        state=PushPlan.State.DRY_RUN,
        is_drift=False,
        reasons=(f"{name} is in observe mode: this is what would have been written.",),
        at=at,
    )
    sentence = f"{_count(steps)} would be written; {name} is in observe mode."
    lease.give_back(endpoint, **_looked(endpoint, at), state=ClusterEndpoint.State.DRIFTED, sentence=sentence)
    return Outcome("differs", sentence, steps, plan, seen.rendered.compromises, seen.converging)


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


@transaction.atomic
def settled(
    endpoint: ClusterEndpoint, seen: Look, plan: PushPlan | None, at: datetime, steps: tuple[Step, ...] = ()
) -> Outcome:
    """The cluster equals what it should hold; with work still draining it is converging and not yet applied."""
    compromises = seen.rendered.compromises
    if seen.converging or not seen.plan.is_empty:
        sentence = (
            seen.converging[0].sentence if seen.converging else "A newer change came while this one was verified."
        )
        lease.give_back(
            endpoint,
            **_looked(endpoint, at, CONVERGING_SECONDS),
            state=ClusterEndpoint.State.CONVERGING,
            sentence=sentence,
        )
        return Outcome("converging", sentence, steps, plan, compromises, seen.converging)
    record.close_open_plans(cluster_id=endpoint.cluster_id, at=at, is_in_step=True)
    if seen.plan.foreign:
        return _stands_back(endpoint, seen, at, steps)
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
        _tell_verified(endpoint, generation, plan, len(steps), at)
    return Outcome("verified" if steps else "equal", f"{endpoint.cluster.name} is in step.", steps, plan, compromises)


def _tell_verified(endpoint: ClusterEndpoint, generation: int, plan: PushPlan | None, count: int, at: datetime) -> None:
    record_event(
        "push.verified",
        subject=("cluster", endpoint.cluster.name),
        actor=None,
        at=at,
        cluster=endpoint.cluster,
        after={"generation": generation, "steps": count, "plan": plan.public_id if plan else None},
        sentence=f"{endpoint.cluster.name} holds generation {generation}, read back and equal.",
    )


def _stands_back(endpoint: ClusterEndpoint, seen: Look, at: datetime, steps: tuple[Step, ...]) -> Outcome:
    """All that is ours is there, but not everything that should be: a foreign object has its name."""
    sentence, newly = _in_the_way(seen), endpoint.state != ClusterEndpoint.State.WAITING
    looked = _looked(endpoint, at, _until_boundary(seen.state, at))
    lease.give_back(endpoint, **looked, state=ClusterEndpoint.State.WAITING, sentence=sentence[:1000])
    if newly:
        subject = ("cluster", endpoint.cluster.name)
        record_event("push.waiting", subject=subject, actor=None, at=at, cluster=endpoint.cluster, sentence=sentence)
    return Outcome("waiting", sentence, steps, compromises=seen.rendered.compromises)


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


def back_off(failures: int) -> timedelta:
    """10 s, doubling, to 1 h."""
    least, most = settings.BERTH_PUSH_BACKOFF_SECONDS
    return timedelta(seconds=min(most, least * 2 ** min(failures - 1, 20)))


def broke_off(endpoint: ClusterEndpoint, at: datetime) -> None:
    """A fault of Berth's own: tried again later, told on the cluster's page."""
    retry(endpoint, ClusterEndpoint.State.FAILED, "The push broke off by a fault of Berth's own; the log has it.", at)


@transaction.atomic
def retry(endpoint: ClusterEndpoint, state: str, sentence: str, at: datetime) -> Outcome:
    """Give back the lease with a later try planned: 10 s after the first failure, 1 h at most."""
    newly = endpoint.state != state or endpoint.sentence != sentence[:1000]
    later = at + back_off(endpoint.failures + 1)
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


def failed(endpoint: ClusterEndpoint, error: DriverError | DialectError, at: datetime, dry_run: bool) -> Outcome:
    """An outcome for what the cluster did, with the next try planned (not for a dry run)."""
    away = isinstance(error, DriverError) and error.code in ("unreachable", "timeout")
    state = ClusterEndpoint.State.UNREACHABLE if away else ClusterEndpoint.State.FAILED
    sentence = getattr(error, "sentence", str(error))
    if dry_run:
        return Outcome("unreachable" if away else "failed", sentence)
    endpoint.tried_generation = Cluster.objects.values_list("desired_generation", flat=True).get(pk=endpoint.cluster_id)
    return retry(endpoint, state, sentence, at)


@transaction.atomic
def superseded(endpoint: ClusterEndpoint, plan: PushPlan) -> Outcome:
    """The rest of a plan is not written: a newer generation came, or the cluster was frozen."""
    now = timezone.now()
    PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.SUPERSEDED, finished_at=now)
    PushStep.objects.filter(plan=plan, state=PushStep.State.PLANNED).update(state=PushStep.State.SKIPPED)
    lease.give_back(endpoint, next_push_at=now, state=ClusterEndpoint.State.PENDING)
    return Outcome("busy", "A newer change or a freeze came: the next pass looks again.", plan=plan)
