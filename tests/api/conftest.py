"""What do the API's tests start from? The calendar's world at its own moment, with everybody's token."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine

from tests.api.callers import Caller, caller
from tests.reservations.world import NOW, World, make_world


@pytest.fixture(autouse=True)
def _no_collected_files(settings: Any) -> None:
    """Nothing was collected for tests; static files are none of the API's business."""
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def world(db: None) -> World:
    return make_world()


@pytest.fixture
def of(world: World) -> Callable[..., Caller]:
    """`of("lead")`, `of("lead", ["read"])`: a caller with a token of that person."""
    return lambda name, scopes=None: caller(getattr(world, name), scopes)
