"""Who wants to hear that a cluster's desired state changed? A list of callables; losing a call loses speed only."""

from collections.abc import Callable
from functools import partial

from django.db import transaction

_listeners: list[Callable[[int], None]] = []


def register(listener: Callable[[int], None]) -> None:
    """Add a callable that takes a cluster id. It is called after commit and must not raise for want of a broker."""
    if listener not in _listeners:
        _listeners.append(listener)


def poke(cluster_id: int) -> None:
    """Tell every listener once this transaction commits: once a cluster, however many changes it holds."""
    waiting = {
        (each.func, each.args) for _, each, _ in transaction.get_connection().run_on_commit if isinstance(each, partial)
    }
    for listener in _listeners:
        if (listener, (cluster_id,)) not in waiting:
            transaction.on_commit(partial(listener, cluster_id), robust=True)
