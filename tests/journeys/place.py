"""Where do short journeys begin? (the calendar's world at the time of the browser, and its people with a session)"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page

from allocations.models import Allocation
from console.models import ClusterEndpoint
from console.push import endpoints, pipeline
from reservations.models import Reservation
from reservations.services.submit import submit
from tests.reservations.world import World, make_world, two_racks


def world_of_today() -> World:
    """Four racks of sol with allocations that run since last month."""
    world = make_world()
    Allocation.objects.update(start_at=timezone.now() - timedelta(days=30))
    return world


def asked(world: World, racks: int = 2, days_ahead: int = 1, **more: object) -> Reservation:
    """An open ask of the lead's, some days ahead."""
    now = timezone.now()
    start = int((now + timedelta(days=days_ahead)).timestamp()) // 60
    spec = two_racks(racks=racks, earliest_start_minute=start, **more)
    return submit(team=world.team, cluster=world.cluster, spec=spec, purpose="Scaling run", actor=world.lead, at=now)


def connect_files(folder: Path) -> ClusterEndpoint:
    """sol as a folder of files that Berth may write."""
    return endpoints.connect(
        name="sol",
        kind="slurm",
        driver="files",
        options={"dir": str(folder)},
        modes={"*": "enforce"},
        actor=None,
        at=timezone.now(),
    )


def push(endpoint: ClusterEndpoint) -> str:
    """One pass, as the worker makes it; how it ended."""
    return pipeline.push(cluster_id=endpoint.cluster_id, at=timezone.now()).ended


def visit(open_page: Callable[..., Page], live: str, world: World, name: str, **options: object) -> Page:
    """A browser of one of the world's people, with a session as after signing in."""
    client = Client()
    client.force_login(getattr(world, name))
    page = open_page(**options)
    page.context.add_cookies([{"name": key, "value": each.value, "url": live} for key, each in client.cookies.items()])
    return page
