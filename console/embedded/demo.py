"""How does `up` come to its demo fleet and, when asked, to a real local Slurm?

Seeding is done once, on an empty database, by `seed_demo`: one transaction, whose last deed is to keep the random
passwords of the demo people in a file of mode 0600. A seeding that was killed has left nothing, or everything.
"""

import sys
from pathlib import Path

from console.embedded.layout import Layout
from console.embedded.schema import Run, run_django

SLURM_CLUSTER = "demo-slurm"


def seed(environment: dict[str, str], run: Run) -> None:
    """Makes the demo fleet. Raises SetupError with what `seed_demo` said."""
    run_django(["seed_demo", "--scale", "small"], environment, run)


def sign_ins(layout: Layout) -> str:
    """The demo people and their passwords as `seed_demo` kept them; empty where there is no demo."""
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

    def up(self, environment: dict[str, str], run: Run) -> None:
        """Starts Slurm, or joins one that a killed run left, and connects the demo cluster to it."""
        from console.embedded.slurm_processes import LocalSlurmError

        try:
            self.slurm.up()
        except LocalSlurmError as error:
            from console.embedded.errors import SetupError

            raise SetupError(str(error)) from error
        connect_slurm(self.slurm.conf, environment, run)

    def down(self) -> None:
        """Stops every daemon of this Slurm; its folder stays."""
        self.slurm.down()


def connect_slurm(conf: Path, environment: dict[str, str], run: Run) -> None:
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
    run_django(arguments, environment, run)
    run_django(["demo_cluster", SLURM_CLUSTER], environment, run)
