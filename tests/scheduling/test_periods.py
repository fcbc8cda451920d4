"""What is the most at one moment?"""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduling.periods import peak

period = st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(0, 5)).map(
    lambda row: (row[0], row[0] + row[1], row[2])
)


@given(st.lists(period, max_size=8), st.integers(0, 20), st.integers(1, 12))
def test_the_peak_is_that_of_looking_at_every_minute(rows: list[tuple[int, int, int]], start: int, length: int) -> None:
    sums = {
        minute: sum(amount for first, last, amount in rows if first <= minute < last)
        for minute in range(start, start + length)
    }
    most, worst = peak(rows, start, start + length)
    assert most == max(sums.values())
    assert worst == min(minute for minute, amount in sums.items() if amount == most)


def test_what_ends_as_the_next_begins_does_not_add_up() -> None:
    noon = datetime(2027, 1, 1, 12, tzinfo=UTC)
    hour = timedelta(hours=1)
    assert peak([(noon - hour, noon, 4), (noon, noon + hour, 4)], noon - hour, noon + hour) == (4, noon - hour)
