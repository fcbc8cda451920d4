"""How moments, periods and amounts read on a page: "Sun 6 Dec 09:00", "in 3 h", "288 GPUs", "20,736 GPU-hours"."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

UTC = ZoneInfo("UTC")
RELATIVE_WITHIN = timedelta(hours=48)


def moment(at: datetime, zone: tzinfo = UTC, now: datetime | None = None) -> str:
    """One moment in `zone`: "Sun 6 Dec 09:00"; the year is added when it is not that of `now`."""
    local = at.astimezone(zone)
    year = f" {local.year}" if now is not None and local.year != now.astimezone(zone).year else ""
    return f"{local:%a} {local.day} {local:%b}{year} {local:%H:%M}"


def relative(at: datetime, now: datetime) -> str:
    """How far `at` is from `now`: "in 3 h", "40 min ago", "now"; empty beyond 48 hours either way."""
    distance = at - now
    if abs(distance) > RELATIVE_WITHIN:
        return ""
    if abs(distance) < timedelta(minutes=1):
        return "now"
    words = duration_words(abs(distance))
    return f"in {words}" if distance > timedelta(0) else f"{words} ago"


def duration_words(length: timedelta) -> str:
    """A length in its two largest units, the second only where it matters: "3 d", "2 d 4 h", "1 h 30 min", "40 min"."""
    minutes = int(length.total_seconds() // 60)
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes and hours < 12 else f"{hours} h"
    return f"{minutes} min"


def period(start_at: datetime, end_at: datetime, zone: tzinfo = UTC, now: datetime | None = None) -> str:
    """A half-open period: "Sun 6 Dec 09:00 to Wed 9 Dec 09:00"; the day is said once when both ends share it."""
    start, end = start_at.astimezone(zone), end_at.astimezone(zone)
    last = f"{end:%H:%M}" if start.date() == end.date() else moment(end_at, zone, now)
    return f"{moment(start_at, zone, now)} to {last}"


def zones_of(at: datetime, cluster_zone: tzinfo | None = None, cluster: str = "") -> str:
    """The same moment in UTC and, when given, in the cluster's zone: the text shown on hover."""
    lines = [f"{moment(at)} UTC"]
    if cluster_zone is not None:
        lines.append(f"{moment(at, cluster_zone)} at {cluster or 'the cluster'} ({cluster_zone})")
    return "\n".join(lines)


def amount(count: int | float | None, unit: str) -> str:
    """A count with its unit: "288 GPUs", "1 rack", "20,736 GPU-hours"; None is "unlimited"."""
    if count is None:
        return f"unlimited {unit}s"
    number = f"{count:,}" if isinstance(count, int) else f"{count:,.1f}".removesuffix(".0")
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def gpus(count: int | None) -> str:
    """288 -> "288 GPUs"."""
    return amount(count, "GPU")


def gpu_hours(count: int | float | None) -> str:
    """20736 -> "20,736 GPU-hours"."""
    return amount(count, "GPU-hour")


def racks(count: int | None) -> str:
    """4 -> "4 racks"."""
    return amount(count, "rack")


def nodes(count: int | None) -> str:
    """18 -> "18 nodes"."""
    return amount(count, "node")
