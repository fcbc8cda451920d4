"""What do the calendar's tests start from? (a world of four racks)"""

import pytest

from tests.reservations.world import World, make_world


@pytest.fixture
def world(db: None) -> World:
    return make_world()
