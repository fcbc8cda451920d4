"""Where do inventory tests find their files? (our own fixtures, and the shared real ones where they are)"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parts import SHARED

OWN = Path(__file__).parents[2] / "fixtures" / "inventory"
REAL = SHARED / "cases" / "files"
Texts = Callable[..., dict[str, str]]


@pytest.fixture
def own() -> Texts:
    """Texts of our own fixtures by name: own("sol", "nodes.txt", "topology.conf")."""

    def read(cluster: str, *names: str) -> dict[str, str]:
        return {name: (OWN / cluster / name).read_text() for name in names}

    return read


@pytest.fixture
def shared() -> Texts:
    """Texts of real public files, for tests marked part("shared"): shared("sinfo", "gcm-sinfo.txt")."""

    def read(folder: str, *names: str) -> dict[str, str]:
        return {name: (REAL / folder / name).read_text() for name in names}

    return read
