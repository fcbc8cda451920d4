"""Who may write to a cluster now? One push at a time: a lease, and an attempt number that fences whoever lost it."""

import os
import socket
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from console.models import ClusterEndpoint


class Fenced(Exception):
    """Another push took over: whatever this one still meant to write must not be written."""


def take(*, cluster_id: int, at: datetime) -> ClusterEndpoint | None:
    """The endpoint with a new attempt and its lease, or None while another push holds it (or there is no endpoint)."""
    taken = ClusterEndpoint.objects.filter(Q(lease_until=None) | Q(lease_until__lte=at), cluster_id=cluster_id).update(
        attempt=F("attempt") + 1,
        lease_until=at + timedelta(seconds=settings.BERTH_PUSH_LEASE_SECONDS),
        lease_holder=f"{socket.gethostname()}:{os.getpid()}",
    )
    if not taken:
        return None
    return ClusterEndpoint.objects.select_related("cluster").get(cluster_id=cluster_id)


def extend(endpoint: ClusterEndpoint) -> None:
    """Keep the lease for another round, before each write. Raises Fenced when it is no longer ours."""
    until = timezone.now() + timedelta(seconds=settings.BERTH_PUSH_LEASE_SECONDS)
    if not ClusterEndpoint.objects.filter(pk=endpoint.pk, attempt=endpoint.attempt).update(lease_until=until):
        raise Fenced(f"attempt {endpoint.attempt} on {endpoint.cluster.name} was overtaken")


def give_back(endpoint: ClusterEndpoint, **changes: object) -> bool:
    """End the lease and write the endpoint's new state; False, and nothing written, when it is no longer ours."""
    updated = ClusterEndpoint.objects.filter(pk=endpoint.pk, attempt=endpoint.attempt).update(
        lease_until=None, lease_holder="", **changes
    )
    return bool(updated)
