"""What do Slurm's own words mean? (node states, GRES, features with a cabinet)"""

import re
from collections.abc import Iterable

from scheduling.inventory.gpu_models import known_model
from scheduling.inventory.sightings import words

MAX_GRES = 4096
_SUFFIX = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN",
    "$": "MAINT", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED", "-": "PLANNED", "+": "",
}  # fmt: skip
_SPELLINGS = {
    "ALLOC": "ALLOCATED", "MIX": "MIXED", "COMP": "COMPLETING", "UNK": "UNKNOWN", "DRNG": "DRAINING",
    "MAINTENANCE": "MAINT", "RESV": "RESERVED", "PLND": "PLANNED", "NO_RESPOND": "NOT_RESPONDING",
    "INVALID_REG": "INVAL", "INVALID": "INVAL", "FAILG": "FAILING", "FUTR": "FUTURE", "REBOOT": "REBOOT_ISSUED",
    "POW_UP": "POWERING_UP", "POW_DN": "POWERING_DOWN", "NPC": "PERFCTRS",
}  # fmt: skip
_FAILED = frozenset(["DOWN", "ERROR", "FAIL", "FAILING", "INVAL"])
_UNKNOWN = frozenset(["UNKNOWN", "FUTURE", "NOT_RESPONDING", "REBOOT_ISSUED"])
_DRAINED = frozenset(["DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT", "POWER_DRAIN"])
_ASLEEP = frozenset(["POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_UP"])
_WELL = words(
    "IDLE ALLOCATED MIXED COMPLETING RESERVED PLANNED CLOUD DYNAMIC_NORM DYNAMIC_FUTURE POWER_DOWN REBOOT_REQUESTED"
    " BLOCKED PERFCTRS RESUME UNDRAIN REBOOT_CANCELED POWER_DOWN_ASAP EXTERNAL RUN_EPILOG"
)
_EVERY = _FAILED | _UNKNOWN | _DRAINED | _ASLEEP | _WELL
_GPU = re.compile(r"gpu(?::(?P<type>[^:()]+))?(?::(?P<count>\d+)(?P<scale>[KMG]?))?(?:\(.*\))?\Z")
_TRES_GPU = re.compile(r"(?:^|,)gres/gpu(?::(?P<type>[^=,]+))?=(?P<count>\d+)")
_CABINET = re.compile(r"""(?:^|[\s,;{"'])cabinet["']?\s*[=:_-]\s*["']?(?P<name>[A-Za-z0-9._-]+)""", re.IGNORECASE)


def read_state(said: Iterable[str]) -> tuple[str, bool, tuple[str, ...]]:
    """(condition, drained, words nobody knows) of a state: `["IDLE+DRAIN"]`, `["down*"]`, `["IDLE", "CLOUD"]`.

    A powered-down node is healthy: it wakes for a job. One that does not answer while awake is unknown, and so is a
    node in a state word that is not known here: both are out of placement, neither is called broken.
    """
    flags: set[str] = set()
    for part in "+".join(said).upper().split("+"):
        word = part.strip()
        while word and word[-1] in _SUFFIX:
            flags.add(_SUFFIX[word[-1]])
            word = word[:-1]
        flags.add(_SPELLINGS.get(word, word))
    flags.discard("")
    strange = tuple(sorted(flags - _EVERY))
    if flags & _ASLEEP:
        flags.discard("NOT_RESPONDING")
    drained = bool(flags & _DRAINED)
    if flags & _FAILED:
        return "failed", drained, strange
    return ("unknown" if flags & _UNKNOWN or strange or not flags else "healthy"), drained, strange


def read_gres(gres: str, tres: str = "") -> tuple[int, str]:
    """(GPUs, native type) of `gpu:h100:8(S:0-1),shard:4`; what it leaves open is filled from configured TRES.

    With several types on one node the GPUs add up and the most numerous type speaks for the node. Raises ValueError
    on a GPU entry that cannot be read.
    """
    if len(gres) > MAX_GRES or len(tres) > MAX_GRES:
        raise ValueError(f"GRES of {max(len(gres), len(tres))} characters, at most {MAX_GRES} are read")
    counts: dict[str, int] = {}
    for entry in re.split(r",(?![^(]*\))", gres.strip()):
        if entry != "gpu" and not entry.startswith("gpu:"):
            continue
        match = _GPU.match(entry)
        if not match:
            raise ValueError(f"cannot read the GPUs of {entry[:60]!r}")
        kind, count = match["type"] or "", match["count"]
        if kind.isdigit() and count is None:
            kind, count = "", kind
        counts[kind] = counts.get(kind, 0) + int((count or "1")[:9]) * 1024 ** " KMG".index(match["scale"] or " ")
    total = sum(counts.values())
    typed: dict[str, int] = {}
    plain = 0
    for match in _TRES_GPU.finditer(tres):
        if match["type"]:
            typed[match["type"]] = int(match["count"][:9])
        else:
            plain = int(match["count"][:9])
    total = total or plain or sum(typed.values())
    counts.pop("", None)
    native = max((counts or typed).items(), key=lambda item: (item[1], item[0]), default=("", 0))[0]
    return total, native if total else ""


def read_features(features: Iterable[str], *texts: str) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """(cabinet, GPU model, labels) that features and free texts (Extra, Comment) tell.

    A cabinet is written `cabinet=c07` (or `cabinet_c07`, `cabinet-c07`) as a feature, or in Extra or Comment, as JSON
    or plain. Labels are the features: `k=v` as a pair, a plain one with the value "".
    """
    names = [feature.strip() for feature in features if feature.strip()]
    pairs = [(name.partition("=")[0], name.partition("=")[2]) for name in names]
    found = next((match for text in (*names, *texts) if (match := _CABINET.search(text))), None)
    model = next((model for name in names if (model := known_model(name))), "")
    return (found["name"] if found else ""), model, tuple(sorted(set(pairs)))
