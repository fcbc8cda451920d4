#!/usr/bin/env python3
"""Berth's one entrance.

    python3 manage.py up        everything: database, broker, web, worker, beat, and a demo fleet
    python3 manage.py test      every test (arguments go to pytest)
    python3 manage.py help      all other commands

Needs git's checkout and Python 3.11 to 3.14. At first use it makes .venv and installs what the lock files name.
"""

# Standard library only, and read by old Pythons too, far enough to say what is missing.
import configparser
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(HERE, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "installed-locks")
LOCKS = ("requirements.lock", "requirements-dev.lock")
OLDEST, NEWEST = (3, 11), (3, 14)
USAGE_ERROR = 64
# pip's settings, and the names under which uv knows them: a company's index is found at run time, never in a file here.
PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}


def say(sentence):
    """One line for the person at the terminal; standard output belongs to the command itself."""
    sys.stderr.write("manage.py: %s\n" % sentence)
    sys.stderr.flush()


def succeeds(command, **options):
    """Whether a command ends with 0; its output is dropped unless `options` say otherwise."""
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.DEVNULL)
    try:
        return subprocess.call(command, stdin=subprocess.DEVNULL, **options) == 0
    except OSError:
        return False


def python_version(program):
    """(major, minor) of an interpreter that runs, else None."""
    try:
        answer = subprocess.check_output(
            [program, "-c", "import sys; print(*sys.version_info[:2])"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return tuple(int(word) for word in answer.split())
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def is_fit(version):
    """Whether Berth runs on this Python."""
    return version is not None and OLDEST <= version <= NEWEST


def pythons():
    """Interpreters that are fit: this one, then those on PATH, of pyenv, of Homebrew. Yields programs."""
    if is_fit(sys.version_info[:2]) and sys.executable:
        yield sys.executable
    names = [shutil.which("python3.%d" % minor) for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    for pattern in ("~/.pyenv/versions/3.1*/bin/python3", "/opt/homebrew/bin/python3.1?", "/usr/local/bin/python3.1?"):
        names += sorted(glob.glob(os.path.expanduser(pattern)), reverse=True)
    for name in names:
        if name and name != sys.executable and is_fit(python_version(name)):
            yield name


def find_python():
    """The interpreter to build .venv with. Exits naming the command that installs one."""
    for program in pythons():
        return program
    sys.exit(
        "manage.py: Berth needs Python %d.%d to %d.%d and found only %d.%d. Debian: apt-get install python3; "
        "macOS: brew install python@3.13" % (OLDEST + NEWEST + tuple(sys.version_info[:2]))
    )


def find_uv():
    """A uv that runs (a version manager's placeholder may be on PATH and answer with an error), else None."""
    for program in (os.path.join(VENV, "bin", "uv"), shutil.which("uv")):
        if program and succeeds([program, "--version"]):
            return program
    return None


def find_pip(base_python):
    """The start of a command that installs into .venv, else None. pip may live in any Python: it is told the target."""
    if succeeds([VENV_PYTHON, "-m", "pip", "--version"]):
        return [VENV_PYTHON, "-m", "pip"]
    for start in ([base_python, "-m", "pip"], ["pip3"], ["pip"]):
        if succeeds([*start, "--python", VENV_PYTHON, "--version"]):
            return [*start, "--python", VENV_PYTHON]
    if succeeds([VENV_PYTHON, "-m", "ensurepip"]):
        return [VENV_PYTHON, "-m", "pip"]
    return None


def make_venv(base_python, uv):
    """Makes .venv without pip; a .venv whose Python runs is kept."""
    if is_fit(python_version(VENV_PYTHON)):
        return
    shutil.rmtree(VENV, ignore_errors=True)
    made = succeeds([base_python, "-m", "venv", "--without-pip", VENV])
    if not made and uv:
        made = succeeds([uv, "venv", "-q", "--python", base_python, VENV])
    if not made and apt_get_venv():
        made = succeeds([base_python, "-m", "venv", "--without-pip", VENV])
    if not made:
        sys.exit("manage.py: cannot make a virtual environment in %s. Debian: apt-get install python3-venv" % VENV)


def apt_get_venv():
    """Installs Debian's venv module (with pip in it) as root; whether that worked."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say("this Python has neither pip nor uv: apt-get install python3-venv")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    return succeeds(["apt-get", "-q", "update"], env=environment) and succeeds(
        ["apt-get", "-q", "-y", "install", "--no-install-recommends", "python3-venv"], env=environment
    )


def pip_settings():
    """What pip's configuration files and environment say: {setting: words separated by spaces}."""
    home = os.path.expanduser("~")
    files = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", home + "/.pip/pip.conf", home + "/.config/pip/pip.conf"]
    files += [home + "/Library/Application Support/pip/pip.conf", os.environ.get("PIP_CONFIG_FILE", "")]
    parser = configparser.RawConfigParser(strict=False)
    found = {}
    for name in files:
        try:
            parser.read(name)
        except configparser.Error:
            continue
    for setting in PIP_TO_UV:
        for section in ("global", "install"):
            if parser.has_option(section, setting):
                found[setting] = " ".join(parser.get(section, setting).split())
        given = os.environ.get("PIP_" + setting.upper().replace("-", "_"))
        if given:
            found[setting] = given
    return found


def uv_environment():
    """uv reads no pip settings: passes them on. Every file must match a hash, so any index may serve any package."""
    environment = dict(os.environ)
    environment.setdefault("UV_SYSTEM_CERTS", "1")  # a company's own authority lies in the system's store
    environment.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    for setting, value in pip_settings().items():
        if setting == "find-links":
            value = value.replace(" ", ",")
        environment.setdefault(PIP_TO_UV[setting], value)
    return environment


def install_uv(pip, lock):
    """Installs the uv that the lock file pins, by its hash: it fetches everything else in a fraction of pip's time."""
    with open(lock) as lines:
        pinned = re.search(r"^uv==(?:.*\\\n)*.*\n", lines.read(), re.MULTILINE)
    if not pinned:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as one:
        one.write(pinned.group(0))
        one.flush()
        command = ["install", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes", "-r", one.name]
        return find_uv() if succeeds(pip + command) else None


def install_packages(lock):
    """Brings .venv to what `lock` names, by uv where there is one, else by pip. Exits when neither works."""
    base_python, uv = find_python(), find_uv()
    make_venv(base_python, uv)
    wanted = ["--require-hashes", "-r", lock]
    pip = None
    if not uv:
        pip = find_pip(base_python) or (apt_get_venv() and find_pip(base_python))
        if not pip:
            sys.exit(
                "manage.py: there is neither pip nor uv to install packages with. Debian: apt-get install python3-venv"
            )
        uv = install_uv(pip, lock)
    shown = {"stdout": sys.stderr, "stderr": None}
    if uv and succeeds([uv, "pip", "install", "-q", "--python", VENV_PYTHON, *wanted], env=uv_environment(), **shown):
        return
    pip = pip or find_pip(base_python)
    if uv and pip:
        say("uv could not install the packages; trying pip")
    if not pip or not succeeds([*pip, "install", "-q", "--disable-pip-version-check", *wanted], **shown):
        sys.exit(
            "manage.py: the packages of %s could not be installed; what is above says why" % os.path.basename(lock)
        )


def digest(name):
    """The hash of a lock file."""
    with open(os.path.join(HERE, name), "rb") as lock:
        return hashlib.sha256(lock.read()).hexdigest()


def installed():
    """The hashes of the lock files that .venv holds; none where its Python does not run."""
    try:
        with open(STAMP) as stamp:
            return set(stamp.read().split()) if os.access(VENV_PYTHON, os.X_OK) else set()
    except (IOError, OSError):
        return set()


def install(with_tests):
    """Makes sure that .venv holds the packages; two commands started at once wait for each other."""
    lock = LOCKS[1] if with_tests else LOCKS[0]
    if digest(lock) in installed():
        return
    with open(os.path.abspath(__file__)) as myself:
        fcntl.flock(myself, fcntl.LOCK_EX)
        have = installed()
        if digest(lock) in have:
            return
        began = time.time()
        say("installing the packages of %s into .venv" % lock)
        install_packages(os.path.join(HERE, lock))
        # The development lock holds all of the other one.
        current = {digest(name) for name in LOCKS}
        now = (have & current) | {digest(name) for name in (LOCKS if with_tests else (lock,))}
        with open(STAMP, "w") as stamp:
            stamp.write("\n".join(sorted(now)) + "\n")
        say("installed in %.1f s" % (time.time() - began))


def workers(arguments):
    """pytest's options for two cores, unless the caller chose: one worker for what starts servers, one for the rest."""
    chosen = any(word.startswith(("-n", "--numprocesses", "--pdb", "--collect-only", "--co")) for word in arguments)
    return [] if chosen else ["-n", "2", "--dist", "loadgroup"]


def main(arguments):
    """Installs what is needed, then goes on in .venv's Python."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else USAGE_ERROR
    is_test = arguments[0] == "test"
    install(with_tests=is_test)
    os.environ["PYTHONPATH"] = HERE
    # Without cached bytecode each of five processes would compile a thousand files at each start: three seconds.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if is_test:
        os.chdir(HERE)
        subprocess.call([VENV_PYTHON, "-m", "tests.parts"])
        command = ["-m", "pytest", *workers(arguments[1:]), *arguments[1:]]
    else:
        command = ["-m", "console.embedded.entrance", *arguments]
    sys.stdout.flush()
    os.execv(VENV_PYTHON, [VENV_PYTHON, *command])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
