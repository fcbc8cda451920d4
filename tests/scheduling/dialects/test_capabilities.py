"""Is it said for every scheduler how well it holds the policy?"""

import pytest

from scheduling.dialects import KINDS, Capabilities, UnknownDialect
from scheduling.dialects.capabilities import capabilities, fidelity


@pytest.mark.parametrize("kind", KINDS)
def test_every_dialect_declares_each_part_once_with_a_sentence(kind):
    rows = fidelity(kind)
    assert {"reservation", "guarantee", "borrowing_limit", "shares", "hierarchy"} <= {row.part for row in rows}
    assert len({row.part for row in rows}) == len(rows)
    assert all(row.sentence.endswith(".") for row in rows)


def test_a_kind_without_a_dialect_has_no_fidelity():
    with pytest.raises(UnknownDialect):
        fidelity("abacus")


def test_what_was_read_of_a_cluster_is_what_rendering_knows():
    assert capabilities("slurm", {"version": (22, 5, 8), "native_cluster": "lab"}) == Capabilities(
        "slurm", (22, 5, 8), "lab"
    )
    assert capabilities("kueue", {}) == Capabilities("kueue")
