"""How is a cluster locked, and how do its counters rise? (lock, look, write, bump: always in this order)"""

import secrets

from django.db import connection

from allocations import wake
from allocations.models import Cluster


def lock_cluster(cluster: Cluster | int) -> Cluster:
    """The cluster's row, locked until the transaction ends and read fresh. Several clusters: lock in id order.

    The lock leaves rows that only point to the cluster (events, observations) free to be written meanwhile.
    Raises RuntimeError outside a transaction, where the lock would be gone before anything is looked at.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("a cluster is locked inside a transaction only")
    pk = cluster if isinstance(cluster, int) else cluster.pk
    return Cluster.objects.select_for_update(no_key=True).get(pk=pk)


def lock_all_clusters() -> list[Cluster]:
    """Every cluster's row, locked in id order: for what stands on all of them, as the team tree and the tiers do."""
    if not connection.in_atomic_block:
        raise RuntimeError("clusters are locked inside a transaction only")
    return list(Cluster.objects.select_for_update(no_key=True).order_by("pk"))


def bump(cluster: Cluster, *, desired: bool = False, snapshot: bool = False, inventory: bool = False) -> Cluster:
    """Raise the counters of a locked cluster and, where there is something to push, poke after commit.

    `desired`: what must be pushed changed. `snapshot`: anything a preview sees changed. `inventory`: what the
    cluster consists of changed, so that every cache of its topology is stale.
    """
    fields = []
    if desired:
        cluster.desired_generation += 1
        fields.append("desired_generation")
        wake.poke(cluster.pk)
    if snapshot or inventory:
        cluster.snapshot_version += 1
        fields.append("snapshot_version")
    if inventory:
        cluster.inventory_mark = secrets.token_hex(12)
        fields.append("inventory_mark")
    if fields:
        cluster.save(update_fields=fields)
    return cluster
