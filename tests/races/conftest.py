"""How do threads meet at a race, and what world do they race in?"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import close_old_connections, connection

from tests.reservations.world import World, make_world


@pytest.fixture
def world(transactional_db: None) -> World:
    return make_world(racks=2, nodes=4)


def race(deeds: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run the deeds at the same moment, each on its own connection; their results or exceptions, in order."""
    barrier = threading.Barrier(len(deeds))
    results: list[Any] = [None] * len(deeds)

    def run(number: int, deed: Callable[[], Any]) -> None:
        close_old_connections()
        try:
            connection.ensure_connection()
            barrier.wait(60)
            results[number] = deed()
        except Exception as error:  # a loser's refusal is the result that the test looks at
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(deeds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a deed waits for ever"
    return results
