"""Are all files fit to be published: no registry's host name, no lint, types that hold, no migration forgotten?"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

CHECKOUT = Path(__file__).resolve().parents[2]
# Spelled apart, so that this file does not name what it looks for.
_REGISTRY = re.compile("|".join(("py" + r"pi\.org", "python" + "hosted", "npm" + r"js\.", "index-" + "url *=")))
_EXAMPLES = {"tests/frame/test_bootstrap.py"}  # it hands made-up settings to the code that reads them


def _tool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", *arguments]
    return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout: git does not list its files")
    return [CHECKOUT / name for name in listed.stdout.split("\0") if name and name not in _EXAMPLES]


def test_no_tracked_file_names_a_package_registry() -> None:
    named = []
    for path in _tracked():
        if path.is_file() and _REGISTRY.search(path.read_bytes().decode(errors="replace")):
            named.append(str(path.relative_to(CHECKOUT)))
    assert named == []


def test_every_locked_package_has_a_hash_and_no_address() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (CHECKOUT / name).read_text()
        assert "://" not in text
        packages = re.split(r"\n(?=\S+==)", text)
        assert [package.split()[0] for package in packages if "--hash=sha256:" not in package] == []


def test_ruff_finds_nothing() -> None:
    checked = _tool("ruff", "check", "--no-cache", "--output-format", "concise")
    assert checked.returncode == 0, checked.stdout


def test_ruff_would_format_nothing() -> None:
    checked = _tool("ruff", "format", "--check", "--no-cache")
    assert checked.returncode == 0, checked.stdout


def test_the_types_hold() -> None:
    checked = _tool("mypy")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_hooks_fetch_nothing() -> None:
    repositories = re.findall(r"^ *- repo: *(\S+)", (CHECKOUT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    assert set(repositories) == {"local"}
