"""Every Celery task: parse ids, read the clock, make one call. Messages only wake; rows are the truth."""

from celery import shared_task
from django.utils import timezone

from allocations.services import sealing
from console.push import observe as watching
from console.push import pipeline
from console.sessions import SessionStore
from reservations.services import lapse


def poke(cluster_id: int) -> None:
    """Wake a worker for one cluster now. A dead broker costs speed only: the sweep finds the cluster."""
    try:
        push.apply_async((cluster_id,), ignore_result=True)
    except Exception:  # any transport raises its own kind of error here
        return


@shared_task
def push(cluster_id: int) -> None:
    """One pass of the push for one cluster."""
    pipeline.push_if_due(cluster_id=cluster_id, at=timezone.now())


@shared_task
def sweep() -> None:
    """Wake every cluster that is due: a newer generation, a retry, or a moment at which time changes what it holds."""
    for cluster_id in pipeline.due(at=timezone.now()):
        poke(cluster_id)


@shared_task
def observe_all() -> None:
    """Read every cluster's nodes and jobs."""
    for cluster_id in watching.observable(at=timezone.now()):
        observe.delay(cluster_id)


@shared_task
def observe(cluster_id: int) -> None:
    """Read one cluster's nodes and jobs."""
    watching.observe_quietly(cluster_id=cluster_id, at=timezone.now())


@shared_task
def lapse_holds() -> None:
    """Give back provisional holds that nobody decided in time, cluster by cluster."""
    lapse.lapse_all(at=timezone.now())


@shared_task
def seal_events() -> None:
    """Chain the events that no running transaction can still precede."""
    sealing.seal(at=timezone.now())


@shared_task
def forget_sessions() -> None:
    """Delete the rows of sessions whose time is over."""
    SessionStore.clear_expired()
