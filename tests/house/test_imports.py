"""Does every import go in the one allowed direction?"""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_LINTER = "import sys; sys.argv[0] = 'lint-imports'; from importlinter.cli import lint_imports_command as f; f()"


def _lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-c", _LINTER, "--no-cache", str(CHECKOUT / "pyproject.toml")]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_the_contracts_of_the_house_hold() -> None:
    linted = _lint(CHECKOUT)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "0 broken" in linted.stdout


def test_an_import_against_the_direction_is_found(tmp_path: Path) -> None:
    rooms = {
        "scheduling": "import django\n",
        "allocations": "import scheduling\n",
        "reservations": "import console\n",
        "console": "import reservations\n",
    }
    for room, text in rooms.items():
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text(text)
    for part in ("web", "tasks", "push", "drivers", "api"):
        (tmp_path / "console" / part).mkdir()
        (tmp_path / "console" / part / "__init__.py").write_text("import console.web\n" if part == "drivers" else "")
    linted = _lint(tmp_path)
    assert linted.returncode == 1
    assert "3 broken" in linted.stdout, linted.stdout


def test_states_are_pure() -> None:
    """The linter's contracts speak of packages; the transition tables are single files."""
    for path in sorted(CHECKOUT.glob("*/states.py")):
        assert "django" not in path.read_text(), f"{path.parent.name}/states.py names django"
