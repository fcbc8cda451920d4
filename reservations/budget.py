"""Which allocation pays for an ask, and has it the GPU-hours? (grants less charges less what open reservations earmark)

GPU-hours are held GPUs, spares included, times hours; a flavor without GPUs counts node-hours.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

from django.db.models import Case, F, IntegerField, Q, QuerySet, Sum, When

from allocations.errors import Fault
from allocations.models import Allocation, Charge, Flavor, Team
from allocations.permissions import below
from reservations.models import Reservation
from reservations.states import OPEN
from scheduling.periods import peak

CENT = Decimal("0.01")
MINUTES = Decimal(60)


@dataclass(frozen=True)
class Cost:
    """What a placement takes. `left_after_gpu_hours` is None where the allocation has no limit or there is none."""

    held_gpus: int
    use_gpus: int
    gpu_hours: Decimal
    allocation: Allocation | None
    left_after_gpu_hours: Decimal | None


def hours_of(gpus: int, start_at: datetime, end_at: datetime) -> Decimal:
    """GPU-hours of so many GPUs over [start_at, end_at), 0 when it is empty; rounded to two decimals."""
    minutes = max(0, int((end_at - start_at).total_seconds() // 60))
    return (Decimal(gpus * minutes) / MINUTES).quantize(CENT, ROUND_HALF_EVEN)


def lineage(team: Team) -> list[str]:
    """Paths of the team and every team above it, the team's own first."""
    parts = team.path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def allocations_for(team: Team, flavor: Flavor, start_at: datetime, end_at: datetime) -> list[Allocation]:
    """Allocations that cover the whole period, best first: the nearest team's, then the one that ends first."""
    paths = lineage(team)
    depth = Case(
        *(When(team__path=path, then=number) for number, path in enumerate(paths)), output_field=IntegerField()
    )
    return list(
        _in_flavor(team, flavor)
        .filter(start_at__lte=start_at, end_at__gte=end_at)
        .filter(Q(revoked_at=None) | Q(revoked_at__gte=end_at))
        .annotate(depth=depth)
        .order_by("depth", "end_at", "id")
        .select_related("team", "tier")
    )


def _in_flavor(team: Team, flavor: Flavor) -> QuerySet[Allocation]:
    """Allocations of the team or a team above it in this flavor, or in its GPU model on this cluster."""
    of_flavor = Q(flavor=flavor)
    if flavor.gpu_model_id is not None:
        of_flavor |= Q(
            pk__in=Allocation.objects.filter(gpu_model=flavor.gpu_model_id, clusters=flavor.cluster_id).values("pk")
        )
    return Allocation.objects.filter(of_flavor, team__path__in=lineage(team))


def left_of(allocations: Iterable[Allocation], at: datetime, without: int | None = None) -> dict[int, Decimal | None]:
    """GPU-hours left by allocation id: None where there is no limit. `without` is a reservation id left out."""
    wanted = list(allocations)
    ids = [each.pk for each in wanted]
    charged = dict(
        Charge.objects.filter(allocation__in=ids).values_list("allocation").annotate(Sum("gpu_hours")).order_by()
    )
    earmarked = _earmarks(ids, at, without)
    return {
        each.pk: None
        if each.gpu_hours is None
        else each.gpu_hours - (charged.get(each.pk) or Decimal(0)).quantize(CENT) - earmarked[each.pk]
        for each in wanted
    }


def _earmarks(ids: list[int], at: datetime, without: int | None) -> Mapping[int, Decimal]:
    """GPU-hours that reservations will still be charged, by allocation: the whole period less what was charged."""
    rows = list(
        Reservation.objects.filter(allocation__in=ids, decision__in=(*OPEN, "approved", "cancelled"))
        .exclude(pk__in=() if without is None else (without,))
        .exclude(decision__in=OPEN, hold_expires_at__lte=at)
        .annotate(per_node=F("flavor__gpus_per_node"))
        .values_list("id", "allocation_id", "start_at", "end_at", "released_at", "mask_bits", "per_node")
    )
    subjects = [f"R-{row[0]}" for row in rows]
    charged: dict[tuple[int | None, str], Decimal] = {
        (allocation, subject): total
        for allocation, subject, total in Charge.objects.filter(allocation__in=ids, subject__in=subjects)
        .values_list("allocation", "subject")
        .annotate(Sum("gpu_hours"))
        .order_by()
    }
    totals: dict[int, Decimal] = defaultdict(Decimal)
    for pk, allocation, start_at, end_at, released_at, bits, per_node in rows:
        end = end_at if released_at is None else min(end_at, released_at)
        hours = hours_of(node_count(bits) * (per_node or 1), start_at, end)
        done = charged.get((allocation, f"R-{pk}"), Decimal(0)).quantize(CENT)
        totals[allocation] += max(Decimal(0), hours - done)
    return totals


def node_count(bits: Iterable[int]) -> int:
    """Nodes in stored masks (signed 64-bit)."""
    return sum((bit & (2**64 - 1)).bit_count() for bit in bits)


def cost_of(
    *,
    team: Team,
    flavor: Flavor,
    held_nodes: int,
    working_nodes: int,
    start_at: datetime,
    end_at: datetime,
    at: datetime,
    allocation: Allocation | None = None,
    without: int | None = None,
) -> tuple[Cost, tuple[Fault, ...]]:
    """The cost, paid from `allocation` or else from the best one with enough; faults no_allocation, budget_short."""
    unit = flavor.gpus_per_node or 1
    hours = hours_of(held_nodes * unit, start_at, end_at)
    covering = allocations_for(team, flavor, start_at, end_at)
    if allocation is not None:
        covering = [each for each in covering if each.pk == allocation.pk]
    left = left_of(covering, at, without)
    enough = next((each for each in covering if (rest := left[each.pk]) is None or rest >= hours), None)
    payer = enough or (covering[0] if covering else None)
    rest = left[payer.pk] if payer is not None else None
    cost = Cost(held_nodes * unit, working_nodes * unit, hours, payer, None if rest is None else rest - hours)
    if payer is None:
        return cost, (_no_allocation(team, flavor, allocation, end_at),)
    if enough is None and rest is not None:
        return cost, (_short(payer, hours, rest, held_nodes),)
    return cost, ()


def _no_allocation(team: Team, flavor: Flavor, allocation: Allocation | None, end_at: datetime) -> Fault:
    """Why nothing pays: none at all, or one that does not cover the period."""
    if allocation is not None:
        sentence = (
            f"{allocation.public_id} does not cover {flavor.name} for {team.path} until {end_at:%a %d %b %Y %H:%M} UTC."
        )
        return Fault("/allocation", "no_allocation", sentence)
    last = _in_flavor(team, flavor).filter(revoked_at=None).order_by("-end_at").first()
    if last is None:
        sentence = (
            f"{team.path} has no allocation of {flavor.name} on {flavor.cluster.name} yet, so it cannot reserve there."
        )
    else:
        sentence = (
            f"{last.public_id} covers {flavor.name} from {last.start_at:%a %d %b %Y} to {last.end_at:%a %d %b %Y}; "
            f"this would run until {end_at:%a %d %b %Y %H:%M} UTC."
        )
    return Fault("/team", "no_allocation", sentence)


def _short(payer: Allocation, hours: Decimal, rest: Decimal, held_nodes: int) -> Fault:
    """How many GPU-hours are missing, and the largest ask of this length that fits."""
    fits = int(held_nodes * max(Decimal(0), rest) / hours) if hours else held_nodes
    missing = hours - rest
    sentence = (
        f"This takes {hours:,.0f} GPU-hours and {payer.public_id} has {max(Decimal(0), rest):,.0f} left: "
        f"{missing:,.0f} are missing. {fits} of the {held_nodes} nodes fit for the same time."
    )
    return Fault("/spec", "budget_short", sentence, missing=float(missing), unit="gpu_hours")


def lock_payers(team: Team, flavor: Flavor) -> None:
    """Lock the allocations that could pay, so that asks on two clusters never spend the same GPU-hours."""
    list(_in_flavor(team, flavor).select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def own_guarantee_fault(
    team: Team,
    flavor: Flavor,
    held_gpus: int,
    start_at: datetime,
    end_at: datetime,
    at: datetime,
    without: int | None = None,
) -> Fault | None:
    """What the team's own guarantee lacks at one moment of the period, beside other reservations funded that way.

    Guarantees of teams above count, so what any team below those spends of them counts too. `without` is a
    reservation id left out.
    """
    granting = allocations_for(team, flavor, start_at, end_at)
    granted = sum(each.guaranteed_gpus for each in granting)
    topmost = min((each.team.path for each in granting), key=len, default=team.path)
    others = (
        Reservation.objects.filter(
            below({topmost}, "team__path"),
            flavor=flavor,
            funding="own",
            decision__in=(*OPEN, "approved"),
            start_at__lt=end_at,
            end_at__gt=start_at,
        )
        .filter(Q(released_at=None) | Q(released_at__gt=start_at))
        .exclude(decision__in=OPEN, hold_expires_at__lte=at)
        .exclude(pk__in=() if without is None else (without,))
    )
    unit = flavor.gpus_per_node or 1
    spent, _ = peak(
        (
            (start, end if released is None else min(end, released), node_count(bits) * unit)
            for start, end, released, bits in others.values_list("start_at", "end_at", "released_at", "mask_bits")
        ),
        start_at,
        end_at,
    )
    missing = held_gpus - (granted - spent)
    if missing <= 0:
        return None
    sentence = (
        f"This takes {held_gpus:,} GPUs of the guarantee; {granted:,} are guaranteed for the whole period and "
        f"{spent:,} of them are reserved already: {missing:,} are missing."
    )
    return Fault("/funding", "budget_short", sentence, missing=missing, unit="gpus")
