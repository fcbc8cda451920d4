"""What do the tests of pages start from? The calendar's world at its own moment, and a browser for each person."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from tests.reservations.world import NOW, World, make_world


@pytest.fixture
def world(db: None, settings: Any) -> Iterator[World]:
    """Four racks of sol, a team with a lead, and a person for each role; the clock stands at NOW."""
    settings.WHITENOISE_AUTOREFRESH = True  # nothing was collected for tests
    with time_machine.travel(NOW, tick=False):
        yield make_world()


@pytest.fixture
def visit(world: World) -> Callable[..., Client]:
    """`visit("lead")`: a browser where that person is signed in; with `htmx=True` it sends what htmx sends."""

    def signed_in(name: str, htmx: bool = False) -> Client:
        client = Client(headers={"HX-Request": "true"} if htmx else {})
        client.force_login(getattr(world, name))
        return client

    return signed_in


@pytest.fixture
def words() -> Callable[[Any], str]:
    """The words of an answer, without its markup, with single spaces."""
    return lambda response: re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", response.content.decode())))
