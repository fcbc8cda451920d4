"""How do moments of the database become whole minutes of the planner, and back? (UTC, epoch minutes)"""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def minute_from(moment: datetime) -> int:
    """The minute that `moment` lies in (rounded down): for starts, so that a period widens outward."""
    return (moment - EPOCH) // MINUTE


def minute_until(moment: datetime) -> int:
    """The first whole minute not before `moment` (rounded up): for ends, and for the earliest start from now."""
    return -((EPOCH - moment) // MINUTE)


def moment_of(minute: int) -> datetime:
    """The aware moment at which that minute begins."""
    return EPOCH + minute * MINUTE


def text_of(moment: datetime) -> str:
    """RFC 3339 in Z: "2026-12-01T08:00:00Z"."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
