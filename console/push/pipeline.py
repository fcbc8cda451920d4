"""How does a cluster come to hold what was approved? gather, read, settle, render, diff, gate, apply, verify.

Level-triggered: each pass pushes the whole desired state by generation, so a lost message, a killed worker or a
coalesced hundred changes all end the same way. A dry run is this path, stopped before the first write.
"""

import contextlib
import logging
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.models import F, Q
from django.utils import timezone

from allocations.models import Cluster
from console.drivers import Driver, DriverError
from console.models import ClusterEndpoint, PushPlan, PushStep
from console.push import closing, drift, gate, lease, record
from console.push.closing import Outcome
from console.push.endpoints import driver_of
from console.push.look import Look, look
from scheduling.dialects import DialectError
from scheduling.plan import Step

log = logging.getLogger(__name__)


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
        return closing.failed(endpoint, error, at, dry_run)
    except Exception:
        if not dry_run:
            with contextlib.suppress(DatabaseError):  # a lost database: the lease runs out, the next pass goes on
                closing.broke_off(endpoint, at)
        raise


def push_if_due(*, cluster_id: int, at: datetime) -> Outcome | None:
    """One pass if the cluster is still due when the message arrives: of a hundred pokes the first does the work."""
    return push(cluster_id=cluster_id, at=at) if cluster_id in due(at=at) else None


def due(*, at: datetime) -> list[int]:
    """Clusters a push should look at now: never tried, a newer generation than tried, or their next look has come."""
    return list(
        ClusterEndpoint.objects.filter(
            Q(next_push_at=None) | Q(next_push_at__lte=at) | Q(cluster__desired_generation__gt=F("tried_generation"))
        )
        .filter(Q(lease_until=None) | Q(lease_until__lte=at))
        .values_list("cluster_id", flat=True)
    )


def _endpoint(cluster_id: int) -> ClusterEndpoint | None:
    return ClusterEndpoint.objects.select_related("cluster").filter(cluster_id=cluster_id).first()


def _pass(endpoint: ClusterEndpoint, at: datetime, dry_run: bool) -> Outcome:
    driver = driver_of(endpoint)
    seen = look(endpoint, driver, at)
    if dry_run:
        return closing.told(seen)
    lease.extend(endpoint)  # reading may have taken longer than the lease: nothing is written down then
    generation = seen.state.generation
    endpoint.tried_generation = generation
    steps, reasons = gate.judge(seen.plan, endpoint)
    is_drift = _write_down(endpoint, seen, at)
    if seen.plan.is_empty:
        return closing.settled(endpoint, seen, None, at)
    held = closing.held_back(endpoint, seen, steps, reasons, is_drift, at)
    if held is not None:
        return held
    plan = record.write_plan(
        endpoint=endpoint,
        plan=seen.plan,
        steps=steps,
        generation=generation,
        state=PushPlan.State.APPLYING,
        is_drift=is_drift,
        reasons=(),
        at=at,
    )
    ClusterEndpoint.objects.filter(pk=endpoint.pk, attempt=endpoint.attempt).update(
        state=ClusterEndpoint.State.APPLYING, sentence=""
    )
    if not _apply(endpoint, driver, plan, steps, generation):
        return closing.superseded(endpoint, plan)
    return _verify(endpoint, driver, plan, seen, steps)


@transaction.atomic
def _write_down(endpoint: ClusterEndpoint, seen: Look, at: datetime) -> bool:
    """Keep what was read, and tell what a hand changed. True when the steps undo somebody's hand."""
    drifted = drift.found(endpoint, seen)
    is_drift = bool(drifted) or drift.is_known(endpoint, seen)
    record.see(cluster_id=endpoint.cluster_id, rendered=seen.rendered, observed=seen.observed, plan=seen.plan, at=at)
    record.adopt(
        cluster_id=endpoint.cluster_id,
        observed=seen.observed,
        rendered=seen.rendered,
        generation=seen.state.generation,
        at=at,
    )
    drift.tell(endpoint, drifted, at)
    return is_drift


def _apply(endpoint: ClusterEndpoint, driver: Driver, plan: PushPlan, steps: tuple[Step, ...], generation: int) -> bool:
    """Write the steps one by one, each recorded before and after.

    False when the rest must not be written: a newer generation made it stale, or somebody froze the cluster.
    """
    stop = Q(desired_generation__gt=generation) | Q(frozen_at__isnull=False)
    for number, step in enumerate(steps, start=1):
        lease.extend(endpoint)
        if Cluster.objects.filter(stop, pk=endpoint.cluster_id).exists():
            return False
        now = timezone.now()
        record.own(cluster_id=endpoint.cluster_id, step=step, generation=generation, at=now)
        row = PushStep.objects.filter(plan=plan, number=number)
        row.update(state=PushStep.State.APPLYING, started_at=now)
        try:
            applied = driver.apply(step)
            if not applied.ok:
                raise DriverError("refused", applied.sentence, retryable=True, raw=applied.output)
        except DriverError as error:
            told = f"{error.sentence}\n{error.raw}".strip()
            row.update(state=PushStep.State.FAILED, output=told, finished_at=timezone.now())
            PushPlan.objects.filter(pk=plan.pk).update(
                state=PushPlan.State.FAILED, sentence=error.sentence[:1000], finished_at=timezone.now()
            )
            raise
        if step.verb == "delete":
            record.disown(cluster_id=endpoint.cluster_id, step=step, at=timezone.now())
        row.update(state=PushStep.State.APPLIED, output=applied.output[:10_000], finished_at=timezone.now())
    PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.APPLIED)
    return True


def _verify(endpoint: ClusterEndpoint, driver: Driver, plan: PushPlan, seen: Look, steps: tuple[Step, ...]) -> Outcome:
    """Read back and compare: done means equal. What changed its aim meanwhile is no failure: the next pass has it."""
    now = timezone.now()
    again = look(endpoint, driver, now)
    lease.extend(endpoint)
    record.see(
        cluster_id=endpoint.cluster_id, rendered=again.rendered, observed=again.observed, plan=again.plan, at=now
    )
    left, _ = gate.judge(again.plan, endpoint)
    if left and again.aim == seen.aim:
        sentence = (
            f"{len(left)} of {len(steps)} steps did not take: {left[0].object_class} {left[0].name} still differs."
        )
        PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.FAILED, sentence=sentence, finished_at=now)
        return closing.retry(endpoint, ClusterEndpoint.State.FAILED, sentence, now)
    PushPlan.objects.filter(pk=plan.pk).update(state=PushPlan.State.VERIFIED, finished_at=now)
    PushStep.objects.filter(plan=plan, state=PushStep.State.APPLIED).update(state=PushStep.State.VERIFIED)
    if again.plan.steps and not left and not again.converging:
        return closing.only_observed(endpoint, again, now)
    return closing.settled(endpoint, again, plan, now, steps)
