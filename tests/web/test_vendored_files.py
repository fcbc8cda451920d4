"""Are the files taken in from elsewhere still the ones that were looked at, with their licences?"""

import hashlib
import re
from pathlib import Path

STATIC = Path(__file__).resolve().parents[2] / "static"
VENDOR = STATIC / "vendor"


def _listed() -> dict[str, str]:
    lines = (VENDOR / "VERSIONS").read_text().splitlines()
    sums = [line.split() for line in lines if re.match(r"[0-9a-f]{64} ", line)]
    return {path: digest for digest, path in sums}


def test_every_vendored_file_has_the_sum_that_versions_names():
    found = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VERSIONS"
    }
    assert found == _listed()


def test_every_vendored_folder_has_its_licence():
    folders = [path for path in VENDOR.iterdir() if path.is_dir()]
    assert folders and all((folder / "LICENSE").read_text().strip() for folder in folders)


def test_every_icon_that_a_template_names_is_in_the_sprite():
    root = STATIC.parent
    sources = [*(root / "templates").rglob("*.html"), *(root / "console" / "web").glob("*.py")]
    text = "\n".join(path.read_text() for path in sources)
    asked = set(re.findall(r'{% icon "([\w-]+)"', text)) | set(re.findall(r'\bicon\("([\w-]+)"', text))
    assert "chevron-down" in asked
    assert asked <= set(re.findall(r'<symbol id="([\w-]+)"', (STATIC / "icons.svg").read_text()))
