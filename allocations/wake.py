"""Who wants to hear that a cluster's desired state changed? A list of callables; losing a call loses speed only."""

from collections.abc import Callable

from django.db import transaction

_listeners: list[Callable[[int], None]] = []


def register(listener: Callable[[int], None]) -> None:
    """Add a callable that takes a cluster id. It is called after commit and must not raise for want of a broker."""
    if listener not in _listeners:
        _listeners.append(listener)


def poke(cluster_id: int) -> None:
    """Tell every listener once this transaction commits."""
    for listener in _listeners:
        transaction.on_commit(lambda listener=listener: listener(cluster_id), robust=True)
