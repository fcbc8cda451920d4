"""Which row does an id like T-17 name? (ids as people write and read them)"""

from allocations.errors import NotFound

_DIGITS = 18  # more do not fit a row's key


def number_of(public_id: str, letter: str) -> int:
    """17 for ("T-17", "T"). Raises NotFound for what is no such id: another letter, too many digits, foreign ones."""
    kind, _, number = public_id.partition("-")
    if kind != letter or not number.isascii() or not number.isdigit() or len(number) > _DIGITS:
        raise NotFound()
    return int(number)
