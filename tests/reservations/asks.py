"""How tests ask, in one line: a lead's ask for two racks on the world's cluster, and an approver's yes."""

from typing import Any

from reservations.models import Reservation
from reservations.services.approve import approve
from reservations.services.submit import submit
from tests.reservations.world import NOW, World, two_racks


def ask(world: World, **more: Any) -> Reservation:
    """Submit as the lead of the world's team; keywords replace what is asked."""
    given: dict[str, Any] = {
        "team": world.team,
        "cluster": world.cluster,
        "spec": two_racks(),
        "purpose": "Scaling run",
        "at": NOW,
    }
    if "actor" not in more:
        given["actor"] = world.lead
    return submit(**{**given, **more})


def approved(world: World, **more: Any) -> Reservation:
    """The same, approved at once."""
    return approve(reservation=ask(world, **more), actor=world.approver, at=more.get("at", NOW))
