"""A small fleet and its people, for tests of the calendar: made of plain rows, so that no service hides a fault."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from allocations.models import (
    Allocation,
    Block,
    Cluster,
    Flavor,
    GpuModel,
    Level,
    Membership,
    Node,
    Rack,
    RoleGrant,
    Team,
    User,
)
from reservations.models import Hold, Reservation
from scheduling.spec import ReservationSpec
from scheduling.topology import WORD_BITS

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class World:
    """One cluster of two blocks, a tree of teams, and a person for each role."""

    cluster: Cluster
    flavor: Flavor
    racks: list[Rack]
    team: Team
    other_team: Team
    allocation: Allocation
    people: dict[str, User] = field(default_factory=dict)

    def __getattr__(self, name: str) -> User:
        """`world.lead`: the person of that role, with rights read anew, as a new request does."""
        try:
            return User.objects.get(pk=self.people[name].pk)
        except KeyError:
            raise AttributeError(name) from None


def make_world(racks: int = 4, nodes: int = 18, name: str = "sol") -> World:
    """`racks` racks of `nodes` nodes with 4 GPUs each, in two blocks; allocations of plenty for a year."""
    cluster = Cluster.objects.create(name=name, kind="slurm", inventory_mark=f"mark-{name}-{racks}-{nodes}")
    level = Level.objects.create(cluster=cluster, name="block", position=0)
    blocks = [Block.objects.create(cluster=cluster, level=level, name=f"b{number}") for number in (1, 2)]
    model, _ = GpuModel.objects.get_or_create(name="GB200")
    flavor = Flavor.objects.create(
        cluster=cluster, name="gb200", gpu_model=model, gpus_per_node=4, nodes_per_rack=nodes
    )
    half = -(-racks // 2)
    rows = [
        Rack.objects.create(cluster=cluster, block=blocks[number // half], flavor=flavor, name=f"r{number + 1:02}")
        for number in range(racks)
    ]
    Node.objects.bulk_create(
        Node(
            cluster=cluster,
            rack=rack,
            flavor=flavor,
            name=f"{name}{number * nodes + position + 1:04}",
            position=position,
            gpus=4,
        )
        for number, rack in enumerate(rows)
        for position in range(nodes)
    )
    team, other = _teams()
    grant(team, flavor)
    allocation = team.allocations.order_by("-id")[0]
    grant(other, flavor)
    return World(cluster, flavor, rows, team, other, allocation, _people(team, other, cluster))


def grant(team: Team, flavor: Flavor, gpu_hours: int | None = 1_000_000, **more: object) -> Allocation:
    """An allocation from long before NOW to a year after it."""
    fields = {"start_at": NOW - 30 * DAY, "end_at": NOW + 365 * DAY, "guaranteed_gpus": 0, **more}
    return Allocation.objects.create(team=team, flavor=flavor, gpu_hours=gpu_hours, **fields)


def person(name: str) -> User:
    return User.objects.get_or_create(email=f"{name}@example.org", defaults={"name": name.capitalize()})[0]


def two_racks(**more: object) -> ReservationSpec:
    """Two whole racks of one block for three days."""
    fields = {"racks": 2, "duration_minutes": 3 * 1440, **more}
    return ReservationSpec(flavor="gb200", **fields)  # type: ignore[arg-type]


def masks_and_holds(reservation: Reservation) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """(rack row id, position) pairs that the masks say, and those that the hold rows say."""
    masks = {
        (rack, word * WORD_BITS + bit)
        for rack, word, bits in zip(reservation.mask_racks, reservation.mask_words, reservation.mask_bits, strict=True)
        for bit in range(WORD_BITS)
        if bits >> bit & 1
    }
    rows = Hold.objects.filter(reservation=reservation, released_at=None)
    return masks, set(rows.values_list("node__rack", "node__position"))


def _teams() -> tuple[Team, Team]:
    root, _ = Team.objects.get_or_create(path="acme", defaults={"name": "acme", "account": "acme"})
    vision, _ = Team.objects.get_or_create(
        path="acme/vision", defaults={"name": "vision", "account": "vision", "parent": root}
    )
    speech, _ = Team.objects.get_or_create(
        path="acme/speech", defaults={"name": "speech", "account": "speech", "parent": root}
    )
    return vision, speech


def _people(team: Team, other: Team, cluster: Cluster) -> dict[str, User]:
    people = {
        name: person(name)
        for name in ("lead", "second", "member", "outsider", "approver", "colleague", "operator", "auditor", "stranger")
    }
    for name, where, role in (
        ("lead", team, "lead"),
        ("second", team, "lead"),
        ("member", team, "member"),
        ("outsider", other, "lead"),
    ):
        Membership.objects.get_or_create(team=where, user=people[name], defaults={"role": role})
    for name, role in (("approver", "approver"), ("colleague", "approver"), ("auditor", "auditor")):
        RoleGrant.objects.get_or_create(user=people[name], role=role)
    RoleGrant.objects.create(user=people["operator"], role="operator", cluster=cluster)
    return people
