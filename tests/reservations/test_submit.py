"""What happens when racks are asked for?"""

from reservations.services.submit import submit
from tests.reservations.world import NOW, World, masks_and_holds, two_racks


def ask(world: World, **more):
    given = {"team": world.team, "cluster": world.cluster, "spec": two_racks(), "purpose": "Scaling run", "at": NOW}
    given.setdefault("actor", world.lead)
    return submit(**{**given, **more})


def test_an_ask_holds_its_nodes_provisionally_until_it_is_decided(world):
    reservation = ask(world)
    assert reservation.decision == "requested"
    assert reservation.hold_expires_at is not None
    masks, holds = masks_and_holds(reservation)
    assert len(holds) == 36
    assert masks == holds
