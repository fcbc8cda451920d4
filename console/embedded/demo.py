"""How does `up` come to its demo fleet and, when asked, to a real local Slurm?

Seeding is done once, on an empty database, by `seed_demo`. What it prints (the demo people and their random passwords)
is kept with mode 0600 and shown again at each start. A first seeding that was killed half-way is done over: nobody can
have worked with it.
"""

import sys
from pathlib import Path

import psycopg

from console.embedded import roles
from console.embedded.layout import Layout
from console.embedded.postgres import SUPERUSER, Postgres
from console.embedded.schema import run_django

SLURM_CLUSTER = "demo-slurm"


def _marker(layout: Layout) -> Path:
    return layout.home / "seeding"


def drop_half_seeded(layout: Layout, postgres: Postgres | None) -> None:
    """Makes the embedded database empty again when its first seeding did not come to its end."""
    if postgres and _marker(layout).exists():
        with psycopg.connect(postgres.url(SUPERUSER, "postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {roles.DATABASE} WITH (FORCE)")
        roles.make_roles(postgres.url(SUPERUSER, "postgres"))
        (postgres.data.parent / "schema").unlink(missing_ok=True)
        _marker(layout).unlink()


def seed(layout: Layout, environment: dict[str, str]) -> None:
    """Makes the demo fleet and keeps its sign-ins. Raises SetupError with what `seed_demo` said."""
    _marker(layout).touch()
    printed = run_django(["seed_demo", "--scale", "small"], environment)
    layout.demo_passwords.unlink(missing_ok=True)
    layout.demo_passwords.touch(mode=0o600)
    layout.demo_passwords.write_text(printed)
    _marker(layout).unlink()


def sign_ins(layout: Layout) -> str:
    """The demo people and their passwords as `seed_demo` printed them; empty where there is no demo."""
    return layout.demo_passwords.read_text().rstrip() if layout.demo_passwords.exists() else ""


class DemoSlurm:
    """A real Slurm of 72 nodes (4 racks of 18) below a home, and the demo cluster that points at it."""

    def __init__(self, layout: Layout) -> None:
        from console.embedded.slurm import LocalSlurm

        self.slurm = LocalSlurm(layout.home / "slurm", nodes=72, gpus=4, rack=18)
        # For the guardian: Slurm's daemons are not children of the supervisor.
        self.down_command = [
            sys.executable,
            "-m",
            "console.embedded.slurm",
            "down",
            "--dir",
            str(layout.home / "slurm"),
        ]

    def up(self, environment: dict[str, str]) -> None:
        """Starts Slurm, or joins one that a killed run left, and connects the demo cluster to it."""
        from console.embedded.slurm_processes import LocalSlurmError

        try:
            self.slurm.up()
        except LocalSlurmError as error:
            from console.embedded.errors import SetupError

            raise SetupError(str(error)) from error
        connect_slurm(self.slurm.conf, environment)

    def down(self) -> None:
        """Stops every daemon of this Slurm; its folder stays."""
        self.slurm.down()


def connect_slurm(conf: Path, environment: dict[str, str]) -> None:
    """Points the demo cluster at a Slurm and lets it join the demo. The one place where `up --slurm` is wired."""
    arguments = [
        "connect",
        SLURM_CLUSTER,
        "--kind",
        "slurm",
        "--driver",
        "slurm_cli",
        "--conf",
        str(conf),
        "--mode",
        "enforce",
    ]
    run_django(arguments, environment)
    run_django(["demo_cluster", SLURM_CLUSTER], environment)
