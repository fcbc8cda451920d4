"""How does Berth learn what exists? (connect a cluster; import its inventory, which never deletes anything)"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from allocations.errors import Fault, Invalid, WrongState
from allocations.events import record
from allocations.models import Cluster, User
from allocations.permissions import require
from allocations.services.counters import bump, lock_cluster
from allocations.services.fleet_rows import Change, FleetRows
from allocations.services.people import checked_zone
from scheduling.inventory.fleet import FleetInventory

# Which inventories a cluster of each kind can come from; the others are Kubernetes alone.
_INVENTORIES_OF = {"slurm": ("slurm",), "slinky": ("slurm", "kubernetes")}
_NAMED_IN_EVENT = 200


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did, or would do: counts of nodes, every named change, and the reader's notes."""

    created: int
    changed: int
    gone: int
    unchanged: int
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not self.changes


def connect_cluster(*, name: str, kind: str, zone: str = "UTC", actor: User | None, at: datetime) -> Cluster:
    """The cluster of that name, made or brought to this kind and zone. The same again changes nothing.

    Raises Invalid for an unknown kind or zone or a name that is not plain; WrongState for another kind of cluster
    once it has nodes.
    """
    require(actor, "cluster.connect")
    _check_cluster(name, kind, zone)
    wanted = {"kind": kind, "zone": zone}
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).filter(name=name).first()
        if cluster is None:
            cluster = Cluster.objects.create(name=name, kind=kind, zone=zone)
            bump(cluster, desired=True, snapshot=True)
            subject = ("cluster", name)
            record("cluster.connected", subject=subject, actor=actor, at=at, cluster=cluster, after=wanted)
            return cluster
        before = {"kind": cluster.kind, "zone": cluster.zone}
        if before == wanted:
            return cluster
        if cluster.kind != kind and cluster.nodes.exists():
            raise WrongState(
                f"{name} is a {cluster.kind} cluster with nodes; connect a {kind} cluster by another name."
            )
        cluster.kind, cluster.zone = kind, zone
        cluster.save(update_fields=("kind", "zone"))
        bump(cluster, desired=True, snapshot=True)
        subject = ("cluster", name)
        record("cluster.changed", subject=subject, actor=actor, at=at, cluster=cluster, before=before, after=wanted)
    return cluster


def import_fleet(
    *,
    cluster: Cluster,
    inventory: FleetInventory,
    actor: User | None,
    at: datetime,
    dry_run: bool = False,
    held_nodes: Mapping[str, str] | None = None,
) -> ImportResult:
    """Bring the cluster's levels, blocks, racks, nodes and flavors to what was read. A second time changes nothing.

    What is absent becomes gone and may come back; nothing is deleted. `held_nodes` maps names of nodes that a live
    reservation holds to its id: such a node must not change its rack, because holds are kept by rack and position.
    `dry_run` does everything and rolls it back. Raises Invalid inventory_refused, naming the node.
    """
    require(actor, "cluster.operate", cluster)
    with transaction.atomic():
        cluster = lock_cluster(cluster)
        _check_inventory(cluster, inventory)
        rows = FleetRows(cluster, at, held_nodes or {})
        rows.take(inventory)
        rows.write(actor)
        if cluster.topology_labels != list(inventory.topology_labels):
            cluster.topology_labels = list(inventory.topology_labels)
            cluster.save(update_fields=("topology_labels",))
            rows.changes.append(Change("topology", "labels", "changed", ", ".join(inventory.topology_labels)))
        result = ImportResult(
            created=rows.count("created"),
            changed=rows.count("changed", "moved", "back"),
            gone=rows.count("gone"),
            unchanged=len(inventory.nodes) - rows.count("created", "changed", "moved", "back"),
            changes=tuple(rows.changes),
            notes=inventory.notes,
        )
        if rows.changes:
            bump(cluster, desired=True, snapshot=True, inventory=True)
            named = [f"{change.kind} {change.name} {change.verb}" for change in rows.changes]
            record(
                "fleet.imported",
                subject=("cluster", cluster.name),
                actor=actor,
                at=at,
                cluster=cluster,
                after={
                    "created": result.created,
                    "changed": result.changed,
                    "gone": result.gone,
                    "changes": named[:_NAMED_IN_EVENT],
                    "more": max(0, len(named) - _NAMED_IN_EVENT),
                },
                sentence=f"{cluster.name}: {result.created} nodes new, {result.changed} changed, {result.gone} gone.",
            )
        if dry_run:
            transaction.set_rollback(True)
    return result


def _check_cluster(name: str, kind: str, zone: str) -> None:
    if kind not in Cluster.Kind.values:
        raise Invalid(f"A cluster's kind is one of {', '.join(Cluster.Kind.values)}.", Fault("/kind", "invalid", kind))
    plain = name.replace("-", "a")
    if (
        not plain.isascii()
        or not plain.isalnum()
        or plain != plain.lower()
        or len(name) > 63
        or name.strip("-") != name
    ):
        sentence = "A cluster's name has lower case letters, digits and inner hyphens, at most 63."
        raise Invalid(sentence, Fault("/name", "invalid", sentence))
    checked_zone(zone)


def _check_inventory(cluster: Cluster, inventory: FleetInventory) -> None:
    if not inventory.nodes:
        raise Invalid("No node is in it, and an empty reading removes nothing.", code="inventory_refused")
    if inventory.kind not in _INVENTORIES_OF.get(cluster.kind, ("kubernetes",)):
        sentence = f"{cluster.name} is a {cluster.kind} cluster, and this is a {inventory.kind} inventory."
        raise Invalid(sentence, code="inventory_refused")
