"""Which dialect speaks to this kind of scheduler? (one registry; every dialect is pure: text and dicts, no sockets)"""

from scheduling.dialects.contract import Capabilities, Dialect, UsageText
from scheduling.dialects.errors import DialectError, UnknownDialect
from scheduling.dialects.kueue import DIALECT as KUEUE
from scheduling.dialects.slurm import DIALECT as SLURM

__all__ = ["KINDS", "Capabilities", "Dialect", "DialectError", "UnknownDialect", "UsageText", "dialect"]

_DIALECTS = {known.kind: known for known in (SLURM, KUEUE)}
KINDS = tuple(_DIALECTS)


def dialect(kind: str) -> Dialect:
    """The dialect of this kind; raises UnknownDialect for any other."""
    try:
        return _DIALECTS[kind]
    except KeyError:
        raise UnknownDialect(kind, KINDS) from None
