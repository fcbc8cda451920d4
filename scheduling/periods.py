"""When is a minute, and what is the most at one? (whole minutes since the epoch, text both ways; half-open periods)"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeVar

Moment = TypeVar("Moment", int, datetime)
MINUTES_PER_DAY = 24 * 60
FIRST_YEAR, LAST_YEAR = 1971, 9000
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?([Zz]|[+-]\d\d:?\d\d)\Z")


class MomentError(ValueError):
    """A text that is not a moment with an offset; the message says what is wrong."""


def parse_moment(text: str) -> datetime:
    """An aware UTC datetime from ISO 8601 with an offset. Raises MomentError, also when there is no offset."""
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError) as error:
        raise MomentError(f"{text!r} is not a moment in ISO 8601") from error
    if moment.tzinfo is None:
        raise MomentError(f"{text!r} has no offset: write 2027-01-05T09:00:00Z or +01:00")
    if not _MOMENT.match(text):
        raise MomentError(f"{text!r} is not a moment in ISO 8601")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise MomentError(f"{text!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    return moment.astimezone(UTC)


def minute_before(moment: datetime) -> int:
    """The last whole minute at or before an aware moment."""
    return int(moment.timestamp() // 60)


def minute_after(moment: datetime) -> int:
    """The first whole minute at or after an aware moment."""
    return int(-(-moment.timestamp() // 60))


def peak(amounts: Iterable[tuple[Moment, Moment, int]], start: Moment, end: Moment) -> tuple[int, Moment]:
    """The largest sum of (start, end, amount) periods at one moment of [start, end), and the first such moment.

    Moments are minutes or aware datetimes, amounts at least 0. What overlaps [start, end) adds up only where it meets.
    """
    rows = [(first, last, amount) for first, last, amount in amounts if first < end and last > start]
    at_start = sum(amount for first, last, amount in rows if first <= start)
    steps = sorted(
        change
        for first, last, amount in rows
        for change in ([(first, amount)] if first > start else []) + [(last, -amount)]
    )
    most, worst, now = at_start, start, at_start
    for moment, change in steps:  # at one moment ends come before starts: they sort as negative amounts
        now += change
        if now > most:
            most, worst = now, moment
    return most, worst


def moment_text(minute: int) -> str:
    """`2027-01-05T09:00:00Z`."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def minute_words(minute: int) -> str:
    """`2027-01-05 09:00 UTC`, for sentences."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%d %H:%M UTC")


def length_words(minutes: int) -> str:
    """`3 d 2 h 5 min`, leaving out what is zero."""
    days, rest = divmod(minutes, MINUTES_PER_DAY)
    parts = ((days, "d"), (rest // 60, "h"), (rest % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"
