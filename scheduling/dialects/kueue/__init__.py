"""Kueue's words: flavors, cohorts, queues and the carve-outs of reservations, as manifests and a file."""

from scheduling.dialects.contract import Dialect
from scheduling.dialects.kueue.files import files, parse_files
from scheduling.dialects.kueue.nodes import node_patch
from scheduling.dialects.kueue.objects import CLASSES
from scheduling.dialects.kueue.parse import READS, parse
from scheduling.dialects.kueue.render import render
from scheduling.dialects.kueue.usage import usage

__all__ = ["DIALECT", "node_patch"]

DIALECT = Dialect(
    kind="kueue",
    classes=CLASSES,
    reads=READS,
    render=render,
    parse=parse,
    usage=usage,
    files=files,
    parse_files=parse_files,
)
