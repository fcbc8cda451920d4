"""How does an empty Berth become a believable fleet? (clusters, teams, grants, weeks of life, through services)"""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from django.conf import settings
from django.db import transaction

from allocations.errors import WrongState
from allocations.models import Cluster, Team
from console.demo import life, people
from console.demo.inventories import ClusterShape, files_of
from console.demo.people import Cast
from console.push import endpoints
from reservations.services import fleet
from scheduling.inventory import parse

SCALES = ("small", "fleet")
FLAVOR = "gb200-nvl72"
_DOWN = ("DOWN+NOT_RESPONDING", "Not responding")
_DRAIN = ("IDLE+DRAIN", "ECC errors on gpu2, waiting for a spare")
# Racks of 17 and 16 healthy nodes among whole ones: r004, r007 and r019 of sol, r002 and r005 of luna.
_SOL_ILL = {60: _DOWN, 111: _DRAIN, 112: _DOWN, 330: _DRAIN}
_LUNA_ILL = {20: _DOWN, 75: _DRAIN, 76: _DRAIN}
SMALL = (
    ClusterShape("sol", "slurm", "Europe/Zurich", 3, 8, hgx_nodes=16, cpu_nodes=6, ill=_SOL_ILL),
    ClusterShape("luna", "kueue", "America/New_York", 2, 4, hgx_nodes=8, cpu_nodes=4, hgx_model="h200", ill=_LUNA_ILL),
)
_MORE = ("ariel", "ceres", "europa", "io", "juno", "pallas", "rhea", "titan", "triton", "umbriel", "vesta")
_ZONES = ("Europe/Zurich", "America/New_York", "Asia/Tokyo", "Europe/Helsinki", "UTC")


def shapes_of(scale: str) -> tuple[ClusterShape, ...]:
    """The clusters of a scale: small has about 620 nodes in two, fleet about 25,000 in thirteen."""
    if scale == "small":
        return SMALL
    more = []
    for number, name in enumerate(_MORE):
        dice = Random(name)
        ill = {dice.randrange(1, 2197): dice.choice((_DOWN, _DRAIN)) for _ in range(40)}
        kind = "kueue" if number % 3 == 2 else "slurm"
        zone = _ZONES[number % len(_ZONES)]
        more.append(ClusterShape(name, kind, zone, 15, 8, hgx_nodes=48, cpu_nodes=8, ill=ill))
    return (*SMALL, *more)


def seed(*, scale: str, at: datetime) -> dict[str, str]:
    """Fill an empty database; returns the passwords of the demo's sign-ins by address. All or nothing.

    The same clock gives the same demo, but for the passwords. Raises WrongState when there are teams already.
    """
    if Team.objects.exists() or Cluster.objects.exists():
        raise WrongState("There are teams or clusters here already; a demo is made in an empty database only.")
    began_at = (at - timedelta(days=45)).replace(hour=0, minute=0, second=0, microsecond=0)
    passwords = {email: secrets.token_urlsafe(12) for email, *_ in people.SIGN_INS}
    with transaction.atomic():
        shapes = shapes_of(scale)
        clusters = [_cluster(shape, began_at) for shape in shapes]
        cast = people.settle(passwords, began_at)
        people.grant_all(cast, people.lay_down_rules(began_at), began_at)
        _live(clusters, shapes, cast, at)
    return passwords


def _cluster(shape: ClusterShape, at: datetime) -> Cluster:
    """Connect a files endpoint below BERTH_HOME/clusters and import the inventory through the real parsers."""
    folder = Path(settings.BERTH_HOME) / "clusters"
    folder.mkdir(parents=True, exist_ok=True)
    endpoint = endpoints.connect(
        name=shape.name,
        kind=shape.kind,
        driver="files",
        options={"dir": str(folder)},
        modes={"*": "enforce"},
        zone=shape.zone,
        actor=None,
        at=at,
    )
    inventory = parse(shape.inventory_kind, files_of(shape))
    fleet.import_fleet(cluster=endpoint.cluster, inventory=inventory, actor=None, at=at)
    return endpoint.cluster


def _live(clusters: Sequence[Cluster], shapes: Sequence[ClusterShape], cast: Cast, now: datetime) -> None:
    """Weeks of asks on every cluster, two that wait for a verdict now, and a maintenance to come."""
    for cluster, shape in zip(clusters, shapes, strict=True):
        asks = 13 if shape.blocks > 2 else 8
        life.live(cluster, FLAVOR, cast, asks=asks, now=now, dice=Random(shape.name))
    sol, luna = clusters[:2]
    hour = now.replace(minute=0, second=0, microsecond=0)
    life.ask_and_wait(
        sol,
        FLAVOR,
        cast,
        team="acme/vision",
        racks=2,
        purpose="Vision model v4, second stage",
        at=now - timedelta(hours=2),
        start_at=hour + timedelta(days=4),
    )
    life.ask_and_wait(
        luna,
        FLAVOR,
        cast,
        team="acme/speech",
        racks=1,
        purpose="Streaming recogniser, final training",
        at=now - timedelta(minutes=40),
        start_at=hour + timedelta(days=6),
    )
    life.plan_maintenance(
        sol,
        cast,
        rack="r024",
        name="Cooling loop 3",
        at=now - timedelta(days=1),
        start_at=hour + timedelta(days=12),
    )
