"""Does a missing part skip its tests with a reason, and fail them on a build machine that could have installed it?"""

import pytest

from tests import parts
from tests.parts import Part

_MISSING = Part(lambda: False, "a part", ("a-package",))


@pytest.fixture(autouse=True)
def _parts(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"missing": _MISSING, "there": Part(lambda: True, "it"), "folder": Part(lambda: False, "a folder")}
    monkeypatch.setattr(parts, "PARTS", named)


def test_the_reason_names_the_command_that_installs_it() -> None:
    assert parts.reason("there") is None
    assert parts.reason("missing") == "a part is not on this machine (Debian: apt-get install a-package)"
    assert parts.reason("folder") == "a folder is not on this machine"


@pytest.mark.parametrize(
    ("name", "ci", "installable", "expected"),
    [
        ("missing", "true", True, True),
        ("missing", "true", False, False),
        ("missing", "", True, False),
        ("folder", "true", True, False),
    ],
)
def test_only_a_build_machine_that_could_have_installed_it_fails(
    name: str, ci: str, installable: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(parts, "can_install", lambda: installable)
    assert parts.is_failure(name) is expected


def test_an_unknown_part_is_an_error_and_no_skip() -> None:
    with pytest.raises(KeyError):
        parts.reason("no such part")
