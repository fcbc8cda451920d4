"""What do the attacks start from? The calendar's world at its own moment, and a browser for each person."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine
from django.test import Client

from tests.reservations.world import NOW, World, make_world

Visit = Callable[..., Client]


@pytest.fixture
def world(db: None, settings: Any) -> Iterator[World]:
    settings.WHITENOISE_AUTOREFRESH = True  # nothing was collected for tests
    with time_machine.travel(NOW, tick=False):
        yield make_world(racks=2, nodes=2)


@pytest.fixture
def visit(world: World) -> Visit:
    """`visit("lead")`: a browser in which that person is signed in; a fault of the server is an answer, 500."""

    def signed_in(name: str, **more: Any) -> Client:
        client = Client(raise_request_exception=False, **more)
        client.force_login(getattr(world, name), "django.contrib.auth.backends.ModelBackend")
        return client

    return signed_in
