"""What should this cluster hold at this moment? (rows -> DesiredState; a pure function of rows and the moment)"""

import secrets
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from allocations import queries as ledger
from allocations.models import Allocation, Cluster, Flavor, Outage, Team
from allocations.permissions import within
from console.models import Installation
from reservations import queries
from reservations.queries import ApprovedReservation
from scheduling.desired import DesiredFlavor, DesiredQuota, DesiredReservation, DesiredState, DesiredTeam
from scheduling.ledger import entitlement


def gather(*, cluster_id: int, at: datetime) -> DesiredState:
    """Everything Berth owns on the cluster at `at`, read in one repeatable-read transaction.

    The state carries the desired_generation it was read with, so that a later change is seen as a newer one.
    """
    code = installation()  # before the snapshot: whoever else makes it at this moment could not be seen in it
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:  # an inner block cannot change what its transaction already promised
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return _gather(Cluster.objects.get(pk=cluster_id), code, at)


def _gather(cluster: Cluster, code: str, at: datetime) -> DesiredState:
    flavors = list(cluster.flavors.select_related("gpu_model").order_by("name"))
    approved = queries.approved_at(cluster, at)
    active = [each for each in approved if each.start_at <= at < each.end_at]
    allocations = list(_in_force(cluster, at))
    teams = _teams(allocations, approved)
    quotas, pools = _quotas(flavors, allocations, active, _healthy(cluster, flavors, at))
    minute = int(at.timestamp()) // 60
    return DesiredState(
        cluster=cluster.name,
        kind=cluster.kind,
        installation=code,
        generation=cluster.desired_generation,
        at_minute=minute,
        zone=cluster.zone,
        label_prefix=settings.BERTH_LABEL_PREFIX,
        flavors=tuple(_flavor(each) for each in flavors),
        teams=tuple(_team(each, quotas[each.pk]) for each in sorted(teams.values(), key=lambda team: team.path)),
        reservations=tuple(_reservation(each) for each in sorted(approved, key=lambda each: each.id)),
        pool_gpus=tuple(sorted(pools.items())),
        topology_labels=tuple(cluster.topology_labels),
        topology_levels=tuple(cluster.levels.order_by("position").values_list("name", flat=True)),
    )


def installation() -> str:
    """This Berth's id on clusters, made once."""
    found = Installation.objects.first()
    if found is None:
        found, _ = Installation.objects.get_or_create(pk=1, defaults={"code": secrets.token_hex(4)})
    return found.code


def _in_force(cluster: Cluster, at: datetime) -> Iterable[Allocation]:
    """Allocations of this cluster's flavors that count at `at`."""
    return (
        Allocation.objects.filter(Q(revoked_at=None) | Q(revoked_at__gt=at), start_at__lte=at, end_at__gt=at)
        .filter(flavor__cluster=cluster, team__archived_at=None)
        .select_related("team", "flavor")
        .order_by("id")
    )


def _teams(allocations: Iterable[Allocation], approved: Iterable[ApprovedReservation]) -> dict[int, Team]:
    """Every team with something here, and all teams above them: parents come with their children."""
    every = {team.pk: team for team in Team.objects.filter(archived_at=None).select_related("parent")}
    wanted = {each.team_id for each in allocations}
    for reservation in approved:
        wanted.update(reservation.team_ids)
    chosen: dict[int, Team] = {}
    for pk in wanted:
        step = every.get(pk)
        while step is not None and step.pk not in chosen:
            chosen[step.pk] = step
            step = every.get(step.parent_id) if step.parent_id else None
    return chosen


def _healthy(cluster: Cluster, flavors: list[Flavor], at: datetime) -> dict[int, int]:
    """What can be given out at `at`, by flavor id: nodes in an outage left out."""
    out = Outage.objects.filter(cluster=cluster, cancelled_at=None, period__contains=at).values_list("nodes", flat=True)
    return ledger.healthy_gpus(flavors, without=[node for node in out if node is not None])


def _quotas(
    flavors: list[Flavor],
    allocations: list[Allocation],
    active: list[ApprovedReservation],
    healthy: dict[int, int],
) -> tuple[dict[int, tuple[DesiredQuota, ...]], dict[str, int]]:
    """Quotas by team id and the pool by flavor: guarantees and borrowing add up, no limit absorbs."""
    quotas: dict[int, list[DesiredQuota]] = defaultdict(list)
    pools: dict[str, int] = {}
    for flavor in flavors:
        granted = [each for each in allocations if each.flavor_id == flavor.pk]
        running = [each for each in active if each.flavor == flavor.name]
        unit = flavor.gpus_per_node or 1
        guaranteed: dict[str, int] = defaultdict(int)
        borrowing: dict[str, int | None] = defaultdict(int)
        lending: dict[str, int | None] = defaultdict(int)
        by_path = {each.team.path: each.team for each in granted}
        for each in granted:
            path = each.team.path
            guaranteed[path] += each.guaranteed_gpus
            borrowing[path] = _plus(borrowing[path], each.borrowing_limit_gpus)
            lending[path] = _plus(lending[path], each.lending_limit_gpus)
        for active_one in running:
            if active_one.funding == "own":
                _suspend(guaranteed, active_one.team_path, len(active_one.nodes) * unit)
        reserved = sum(len(each.nodes) for each in running) * unit
        held = entitlement(guaranteed, healthy.get(flavor.pk, 0), min(reserved, healthy.get(flavor.pk, 0)))
        pools[flavor.name] = held.pool_gpus
        for path, team in by_path.items():
            effective = held.effective_guaranteed[path]
            lends = lending[path]
            quotas[team.pk].append(
                DesiredQuota(
                    flavor=flavor.name,
                    guaranteed_gpus=effective,
                    borrowing_limit_gpus=borrowing[path],
                    lending_limit_gpus=None if lends is None else min(lends, effective),
                )
            )
    return defaultdict(tuple, {team: tuple(each) for team, each in quotas.items()}), pools


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _suspend(guaranteed: dict[str, int], path: str, gpus: int) -> None:
    """Take a reservation's GPUs out of its team's guarantee, then out of the guarantees of teams above it."""
    for holder in sorted((each for each in guaranteed if within(path, each)), key=len, reverse=True):
        taken = min(gpus, guaranteed[holder])
        guaranteed[holder] -= taken
        gpus -= taken


def _flavor(flavor: Flavor) -> DesiredFlavor:
    return DesiredFlavor(
        name=flavor.name,
        gpu_model=flavor.gpu_model.name if flavor.gpu_model else "",
        gpus_per_node=flavor.gpus_per_node,
        nodes_per_rack=flavor.nodes_per_rack,
        gres_type=flavor.gres_type,
        partition=flavor.partition,
        node_labels=tuple(sorted(flavor.node_labels.items())),
    )


def _team(team: Team, quotas: tuple[DesiredQuota, ...]) -> DesiredTeam:
    return DesiredTeam(
        team=team.path,
        account=team.account,
        parent=team.parent.account if team.parent else "",
        shares=team.shares,
        quotas=quotas,
    )


def _reservation(each: ApprovedReservation) -> DesiredReservation:
    return DesiredReservation(
        id=each.id,
        flavor=each.flavor,
        teams=each.accounts,
        nodes=each.nodes,
        spares=each.spares,
        racks=each.racks,
        start_minute=int(each.start_at.timestamp()) // 60,
        end_minute=int(each.end_at.timestamp()) // 60,
    )
