"""Does a transaction wake the listeners once a cluster, and only when it commits?"""

import pytest
from django.db import transaction

from allocations import wake


@pytest.fixture
def heard(monkeypatch):
    """What the only listener was told."""
    told: list[int] = []
    monkeypatch.setattr(wake, "_listeners", [told.append])
    return told


@pytest.mark.django_db(transaction=True)
def test_many_changes_in_one_transaction_wake_once_a_cluster(heard):
    with transaction.atomic():
        for cluster in (1, 2, 1, 1, 2):
            wake.poke(cluster)
        assert heard == []
    assert sorted(heard) == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_wakes_nobody_and_does_not_swallow_a_later_poke(heard):
    with transaction.atomic():
        try:
            with transaction.atomic():
                wake.poke(1)
                raise LookupError
        except LookupError:
            pass
        wake.poke(1)
    assert heard == [1]
