"""Which lengths of time can be typed, and how are they said back?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.web.durations import DurationError, duration_text, minutes_of


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("3 days", 4320),
        ("36 hours", 2160),
        ("90 minutes", 90),
        ("1 day", 1440),
        ("1 day 12 h", 2160),
        ("1 day, 2 hours and 5 min", 1565),
        ("2d4h", 3120),
        ("1.5 h", 90),
        ("1,5 h", 90),
        (" 2 Weeks ", 20160),
        ("1-12:00", 2160),
        ("3-00", 4320),
        ("0-00:30:00", 30),
        ("36:00:00", 2160),
    ],
)
def test_a_length_is_read_as_people_and_slurm_write_it(text, minutes):
    assert minutes_of(text) == minutes


@pytest.mark.parametrize(
    "text",
    ["", "soon", "3", "36:00", "3 3 days", "2 days 2 days", "1-25:00", "1-00:60", "-3 days", "3 days ago", "0 minutes"],
)
def test_what_is_no_length_is_refused_with_a_sentence(text):
    with pytest.raises(DurationError, match=r"\.$"):
        minutes_of(text)


def test_a_part_of_a_minute_is_refused():
    with pytest.raises(DurationError, match="whole minutes"):
        minutes_of("0-00:00:30")


@given(st.integers(1, 400 * 1440))
def test_a_length_said_back_is_read_as_the_same(minutes):
    assert minutes_of(duration_text(minutes)) == minutes
