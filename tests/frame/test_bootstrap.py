"""Does manage.py get from a bare Python to .venv, and does it say what is missing?"""

import ast
import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from console.embedded.layout import CHECKOUT

SOURCE = (CHECKOUT / "manage.py").read_text()


@pytest.fixture
def manage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("berth_manage", CHECKOUT / "manage.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _program(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_old_python_can_read_it() -> None:
    ast.parse(SOURCE, feature_version=(3, 6))


def test_it_imports_the_standard_library_alone() -> None:
    imported = {
        alias.name for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported <= set(sys.stdlib_module_names)
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(ast.parse(SOURCE)))


def test_a_python_that_is_too_old_is_told_what_to_install(manage: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage, "pythons", lambda: iter(()))
    with pytest.raises(SystemExit) as refused:
        manage.find_python()
    assert "apt-get install python3" in str(refused.value)


@pytest.mark.parametrize(
    ("version", "expected"), [((3, 10), False), ((3, 11), True), ((3, 14), True), ((3, 15), False)]
)
def test_only_pythons_that_berth_runs_on_are_fit(manage: ModuleType, version: tuple[int, int], expected: bool) -> None:
    assert manage.is_fit(version) is expected


def test_a_placeholder_named_uv_is_not_taken_for_uv(
    manage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "uv", "exit 127")
    monkeypatch.setattr(manage, "VENV", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert manage.find_uv() is None
    _program(tmp_path / "uv", "exit 0")
    assert manage.find_uv() == str(tmp_path / "uv")


def test_the_index_of_a_company_reaches_uv(manage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://mirror.example/simple\nfind-links =\n  /one\n  /two\n")
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://more.example/simple")
    environment = manage.uv_environment()
    assert environment["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert environment["UV_INDEX"] == "https://more.example/simple"
    assert environment["UV_FIND_LINKS"] == "/one,/two"
    assert environment["UV_SYSTEM_CERTS"] == "1"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://chosen.example/simple")
    assert manage.uv_environment()["UV_DEFAULT_INDEX"] == "https://chosen.example/simple"


def test_the_installer_is_pinned_by_hash(manage: ModuleType, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    pip = _program(tmp_path / "pip", f'for last; do :; done; cp "$last" "{seen}"')
    manage.install_uv([str(pip)], str(CHECKOUT / "requirements.lock"))
    lines = seen.read_text().splitlines()
    assert lines[0].startswith("uv==")
    assert len(lines) > 1 and all(line.strip().startswith("--hash=sha256:") for line in lines[1:])


def test_the_development_lock_counts_for_the_other_one_and_an_old_lock_for_none(
    manage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in manage.LOCKS:
        (tmp_path / name).write_text(name)
    (tmp_path / "python").symlink_to(sys.executable)
    settings = {"HERE": tmp_path, "VENV": tmp_path, "VENV_PYTHON": tmp_path / "python", "STAMP": tmp_path / "stamp"}
    for name, value in settings.items():
        monkeypatch.setattr(manage, name, str(value))
    installs: list[str] = []
    monkeypatch.setattr(manage, "install_packages", lambda lock: installs.append(Path(lock).name))
    manage.install(with_tests=True)
    manage.install(with_tests=False)
    assert installs == ["requirements-dev.lock"]
    before = (tmp_path / "requirements.lock").read_text()
    (tmp_path / "requirements.lock").write_text("changed")
    manage.install(with_tests=False)
    (tmp_path / "requirements.lock").write_text(before)
    manage.install(with_tests=False)
    assert installs == ["requirements-dev.lock", "requirements.lock", "requirements.lock"]


def test_no_command_is_a_usage_error_and_help_is_none() -> None:
    line = [sys.executable, str(CHECKOUT / "manage.py")]
    assert subprocess.run(line, capture_output=True, check=False).returncode == 64
    helped = subprocess.run([*line, "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0 and "manage.py up" in helped.stdout
