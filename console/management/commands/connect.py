"""manage.py connect: how is a cluster reached? Makes or changes its endpoint; credentials stay references."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from allocations.errors import DomainError
from console.management.base import BerthCommand, UsageError
from console.models import ClusterEndpoint
from console.push import endpoints

KINDS = ("slurm", "kueue", "volcano", "kai", "yunikorn", "slinky")
DRIVERS = ("slurm_cli", "slurmrestd", "kubernetes", "files")
_REFERENCES = ("token_file", "kubeconfig", "identity_file", "host_key_file", "conf")


class Command(BerthCommand):
    """Exit 0 connected, 1 refused, 64 wrong usage."""

    help = "Make or change a cluster's endpoint. Without --mode it is only observed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--kind", required=True, choices=KINDS)
        parser.add_argument("--driver", required=True, choices=DRIVERS)
        parser.add_argument("--conf", help="slurm.conf, for slurm_cli")
        parser.add_argument("--url", help="address of the API, for slurmrestd and kubernetes")
        parser.add_argument("--token-file", help="file that holds the token; only its name is kept")
        parser.add_argument("--kubeconfig")
        parser.add_argument("--context")
        parser.add_argument("--dir", help="folder, for files: the cluster is written into DIR/NAME")
        parser.add_argument("--ssh", metavar="USER@HOST", help="run the commands there, for slurm_cli")
        parser.add_argument("--identity-file")
        parser.add_argument("--host-key-file")
        parser.add_argument("--zone", help="IANA zone of the cluster, such as Europe/Zurich; left out: as it was")
        parser.add_argument(
            "--mode", choices=endpoints.MODES, default="observe", help="for every object class; left out: observe"
        )

    def perform(self, **given: Any) -> None:
        options: dict[str, str] = {}
        for key in (
            "conf",
            "url",
            "token_file",
            "kubeconfig",
            "context",
            "dir",
            "ssh",
            "identity_file",
            "host_key_file",
        ):
            if given[key]:
                options[key] = str(Path(given[key]).absolute()) if key in (*_REFERENCES, "dir") else given[key]
        if missing := _missing(given["driver"], options):
            raise UsageError(f"{given['driver']} needs {missing}")
        for key in _REFERENCES:
            if key in options and not Path(options[key]).is_file():
                raise CommandError(f"--{key.replace('_', '-')}: there is no file {options[key]}")
        known = ClusterEndpoint.objects.filter(cluster__name=given["name"]).values_list("modes", flat=True)
        before: dict[str, str] = known.first() or {}
        try:
            endpoint = endpoints.connect(
                name=given["name"],
                kind=given["kind"],
                driver=given["driver"],
                options=options,
                zone=given["zone"],
                modes={"*": given["mode"]},
                actor=None,
                at=timezone.now(),
            )
        except DomainError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(f"{given['name']} is connected by {endpoint.driver}; modes: {_told(endpoint.modes)}.")
        if any(_rank(mode) > _rank(given["mode"]) for mode in before.values()):
            self.stdout.write(f"Lowered from {_told(before)}: an operator raises it on the page, or --mode does.")


def _rank(mode: str) -> int:
    """How much a mode lets Berth write: more with each."""
    return endpoints.MODES.index(mode)


def _told(modes: dict[str, str]) -> str:
    return ", ".join(f"{key} {mode}" for key, mode in sorted(modes.items()))


def _missing(driver: str, options: dict[str, str]) -> str:
    """What this driver cannot do without, or ""."""
    if driver == "files" and "dir" not in options:
        return "--dir"
    if driver == "slurm_cli" and not {"conf", "ssh"} & options.keys():
        return "--conf, or --ssh with --identity-file and --host-key-file"
    if driver == "slurmrestd" and not {"url", "token_file"} <= options.keys():
        return "--url and --token-file"
    if driver == "kubernetes" and "kubeconfig" not in options and "url" not in options:
        return "--kubeconfig, or --url with --token-file"
    return ""
