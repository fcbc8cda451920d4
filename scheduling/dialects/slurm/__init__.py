"""Slurm's words: accounts and reservations, as commands, text and files."""

from scheduling.dialects.contract import Dialect
from scheduling.dialects.slurm.files import files, parse_files
from scheduling.dialects.slurm.names import ENVIRONMENT
from scheduling.dialects.slurm.parse import READS, parse
from scheduling.dialects.slurm.render import render
from scheduling.dialects.slurm.usage import usage

DIALECT = Dialect(
    kind="slurm",
    classes=("account", "reservation"),
    reads=READS,
    environment=ENVIRONMENT,
    render=render,
    parse=parse,
    usage=usage,
    files=files,
    parse_files=parse_files,
)
