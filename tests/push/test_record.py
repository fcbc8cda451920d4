"""Is a change told in words as it is?"""

import pytest

from console.push.record import change_words


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, "gb[001-016]", "nodes gb[001-016]"),
        (None, "", "nodes none"),
        (None, [], "nodes none"),
        ("gb1", "gb2", "nodes gb1 → gb2"),
        (["a", "b"], [], "nodes a, b → none"),
        ("gb1", None, "nodes gb1 → none"),
        ("", 0, "nodes none → 0"),
    ],
)
def test_a_change_tells_what_was_and_what_will_be_and_for_something_new_only_that(before, after, told):
    assert change_words({"attribute": "nodes", "before": before, "after": after}) == told


def test_a_long_value_is_cut_only_where_it_is_asked_for():
    change = {"attribute": "nodes", "before": "x" * 90, "after": "y"}
    assert change_words(change, 80) == f"nodes {'x' * 79}… → y"
    assert "x" * 90 in change_words(change)
