"""Which tests need something that not every machine has, and what does a missing part mean?

`pytest.mark.part("slurm")` names the need. On Debian as root `manage.py test` installs every part first
(`python -m tests.parts`). A part that is missing skips its tests and says so; under CI=true a part that could have been
installed is a failure instead.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
SHARED = CHECKOUT.parent / "shared"
_SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))


@dataclass(frozen=True)
class Part:
    """One need: what tells that it is met, and the Debian packages that meet it (none: nothing can be installed)."""

    is_there: Callable[[], bool]
    missing: str
    packages: tuple[str, ...] = ()


def program(name: str) -> str | None:
    """The path of a program, looked up in the folders of daemons too."""
    return shutil.which(name, path=_SYSTEM_PATH)


def chromium() -> str | None:
    """The browser of the journeys: BERTH_CHROMIUM, else the system's Chromium or Chrome."""
    names = (os.environ.get("BERTH_CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if name and (found := program(name))), None)


def _has_slurm() -> bool:
    daemons = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "scontrol", "munged", "mariadbd")
    plugins = ("slurm*/accounting_storage_mysql.so", "slurm*/auth_jwt.so", "libnss_wrapper.so")
    libraries = [Path("/usr/lib"), *Path("/usr/lib").glob("*-linux-gnu")]
    return all(map(program, daemons)) and all(
        any(folder.glob(plugin) for folder in libraries if folder.is_dir()) for plugin in plugins
    )


def _has_browser() -> bool:
    return chromium() is not None and importlib.util.find_spec("playwright") is not None


PARTS: dict[str, Part] = {
    "slurm": Part(
        _has_slurm,
        "a real Slurm",
        (
            *("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "slurm-client", "munge", "mariadb-server"),
            *("slurm-wlm-jwt-plugin", "slurm-wlm-mysql-plugin", "libnss-wrapper"),
        ),
    ),
    "chromium": Part(_has_browser, "a Chromium browser", ("chromium",)),
    "shared": Part(SHARED.is_dir, "the folder ../shared with recorded cases"),
}


def can_install() -> bool:
    """Whether this process may install packages: Debian, as root."""
    return Path("/etc/debian_version").exists() and os.geteuid() == 0 and shutil.which("apt-get") is not None


def reason(name: str) -> str | None:
    """Why a part is missing and what installs it; None when it is there. An unknown name raises KeyError."""
    part = PARTS[name]
    if part.is_there():
        return None
    how = f" (Debian: apt-get install {' '.join(part.packages)})" if part.packages else ""
    return f"{part.missing} is not on this machine{how}"


def is_failure(name: str) -> bool:
    """Whether a missing part fails its tests: on a build machine that could have installed it."""
    return os.environ.get("CI", "").lower() == "true" and bool(PARTS[name].packages) and can_install()


def install() -> None:
    """Installs the packages of every missing part. What fails is said here, and again by the tests that miss it."""
    wanted = [package for part in PARTS.values() if part.packages and not part.is_there() for package in part.packages]
    if not wanted:
        return
    if not can_install():
        print(f"Some tests will be skipped; as root on Debian: apt-get install {' '.join(wanted)}", flush=True)
        return
    print(f"Installing for the tests: {' '.join(wanted)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"]
    for command in ([*apt, "update"], [*apt, "install", "--no-install-recommends", *wanted]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    install()
