"""How long is "3 days"? (what people type for a length, as whole minutes, and minutes as what they would type)"""

import re

_MINUTES = {"w": 7 * 24 * 60, "d": 24 * 60, "h": 60, "m": 1}
_UNITS = {
    word: _MINUTES[unit]
    for unit, words in {
        "w": "w week weeks",
        "d": "d day days",
        "h": "h hr hrs hour hours",
        "m": "m min mins minute minutes",
    }.items()
    for word in words.split()
}
_PART = re.compile(r"(\d{1,9}(?:[.,]\d{1,6})?)\s*([a-z]+)\s*(?:,|and\b)?\s*")
_SLURM = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,2}))?(?::(\d{1,2}))?")


class DurationError(ValueError):
    """A text that is no length of time; the message says what to write instead."""


def minutes_of(text: str) -> int:
    """Whole minutes of "3 days", "1 day 12 h", "1.5 h", "90 minutes", or of Slurm's D-HH:MM and HH:MM:SS.

    A number alone and 36:00 are refused: Slurm reads them as minutes, people as days and hours. Raises DurationError.
    """
    asked = text.strip().lower()
    total = _slurm_minutes(asked) if "-" in asked or ":" in asked else _worded_minutes(asked)
    if total is None:
        raise DurationError(f"“{text.strip()[:40]}” is no length of time. Write 3 days, 36 hours or 1-12:00.")
    if total != int(total):
        raise DurationError("Reservations last whole minutes.")
    if total < 1:
        raise DurationError("This is at least one minute.")
    return int(total)


def duration_text(minutes: int) -> str:
    """What a person would type: "3 days", "1 day 12 hours", "90 minutes"; minutes_of() reads it back."""
    if minutes < 120 and minutes % 60:
        return _amount(minutes, "minute")
    days, rest = divmod(minutes, _MINUTES["d"])
    if days and days < 3 and rest and not rest % 60:
        return _amount(minutes // 60, "hour")
    hours, left = divmod(rest, 60)
    parts = ((days, "day"), (hours, "hour"), (left, "minute"))
    return " ".join(_amount(count, unit) for count, unit in parts if count) or "0 minutes"


def _worded_minutes(text: str) -> float | None:
    """The sum of numbers with units; None when anything else stands there, or a unit comes twice."""
    total, at, seen = 0.0, 0, set()
    while at < len(text):
        part = _PART.match(text, at)
        unit = _UNITS.get(part[2]) if part else None
        if part is None or unit is None or unit in seen:
            return None
        seen.add(unit)
        total += round(float(part[1].replace(",", ".")) * unit, 6)
        at = part.end()
    return total if seen else None


def _slurm_minutes(text: str) -> float | None:
    """Slurm's D-HH, D-HH:MM, D-HH:MM:SS and HH:MM:SS; None for anything else."""
    found = _SLURM.fullmatch(text)
    if found is None or (found[1] is None and found[4] is None):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if minutes > 59 or seconds > 59 or (found[1] is not None and hours > 23):
        return None
    return days * _MINUTES["d"] + hours * 60 + minutes + seconds / 60


def _amount(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
