"""How do the log files of a long run stay small?

The servers append to files that they were given open. A full file is copied aside and emptied: what appends goes on at
the new end, and no server needs to know.
"""

import itertools
import shutil
from pathlib import Path

FULL_BYTES = 5_000_000
KEPT_COPIES = 3


def rotate(path: Path, full_bytes: int = FULL_BYTES, kept: int = KEPT_COPIES) -> bool:
    """Moves a full log aside as NAME.1 (older ones move on to NAME.2 …); whether it was full."""
    try:
        if path.stat().st_size < full_bytes:
            return False
    except FileNotFoundError:
        return False
    copies = [path.with_name(f"{path.name}.{number}") for number in range(1, kept + 1)]
    for newer, older in reversed(list(itertools.pairwise(copies))):
        if newer.exists():
            newer.replace(older)
    shutil.copyfile(path, copies[0])
    with path.open("r+b") as log:
        log.truncate(0)
    return True
