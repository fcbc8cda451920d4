"""How is everything of ours called on a Kubernetes cluster, and what may a name hold? (names, labels, quantities)"""

import math
import re
from decimal import Decimal, InvalidOperation

from scheduling.dialects.errors import NameNotAllowed, UnreadableAnswer

API = "kueue.x-k8s.io/v1beta2"
GPU_RESOURCE = "nvidia.com/gpu"
FIELD_MANAGER = "berth"
MANAGED_BY = "app.kubernetes.io/managed-by"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
HOSTNAME = "kubernetes.io/hostname"
TOPOLOGY = "berth"

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_LABEL_KEY = re.compile(r"(?:[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z")
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?\Z")
_SCALE = {
    suffix: Decimal(base) ** power
    for base, suffixes in ((1000, ("k", "M", "G", "T", "P", "E")), (1024, ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")))
    for power, suffix in enumerate(suffixes, start=1)
} | {"": Decimal(1), "m": Decimal("0.001")}


def dns_label(what: str, name: str) -> str:
    """`name` itself when it may name a queue or a namespace (63 of a-z 0-9 -); raises NameNotAllowed otherwise."""
    return _checked(_DNS_LABEL, what, name, "1 to 63 of a-z 0-9 -, no - at either end")


def node_name(name: str) -> str:
    """`name` itself when it may name a node."""
    return _checked(_DNS_SUBDOMAIN, "node", name, "1 to 253 of a-z 0-9 . -, no . or - at either end")


def label_key(key: str) -> str:
    """`key` itself when it may be a label's key."""
    return _checked(_LABEL_KEY, "label key", key, "an optional DNS prefix and /, then 1 to 63 of A-Z a-z 0-9 _ . -")


def label_value(value: str) -> str:
    """`value` itself when it may be a label's value."""
    return _checked(_LABEL_VALUE, "label value", value, "at most 63 of A-Z a-z 0-9 _ . -")


def _checked(rule: re.Pattern[str], what: str, name: str, sentence: str) -> str:
    if not rule.match(name):
        raise NameNotAllowed(what, name, sentence)
    return name


def team_name(account: str, gpu_model: str) -> str:
    """`climate-gb200`: the Cohort, ClusterQueue and LocalQueue of a team for one GPU model."""
    return dns_label("queue", f"{account}-{re.sub('[^a-z0-9]+', '-', gpu_model.lower()).strip('-')}")


def namespace_name(account: str) -> str:
    """The team's namespace: its account."""
    return dns_label("namespace", account)


def reservation_value(reservation_id: str) -> str:
    """`r-131`: a reservation's id as a label value and in names."""
    return dns_label("reservation", reservation_id.lower())


def reservation_name(reservation_id: str) -> str:
    """`rsv-r-131`: flavor and queues of a reservation."""
    return dns_label("reservation", f"rsv-{reservation_value(reservation_id)}")


def whole_quantity(value: object) -> int:
    """A count of GPUs from any spelling of a Kubernetes quantity ("8", 8, "8000m", "1k"); parts round up as Kueue does.

    Raises UnreadableAnswer for what is no quantity.
    """
    match = _QUANTITY.match(str(value))
    try:
        if match is None:
            raise InvalidOperation
        digits, suffix = match.group(1), match.group(2) or ""
        exact = (
            Decimal(digits + suffix) if suffix[:1] in ("e", "E") and suffix[1:] else Decimal(digits) * _SCALE[suffix]
        )
    except InvalidOperation:
        raise UnreadableAnswer("quantity", f"not a quantity: {str(value)[:40]!r}") from None
    return math.ceil(exact)


def same_weight(value: object) -> str:
    """A weight in one spelling: "500m", "0.5" -> "0.5"; "2", 2 -> "2"."""
    match = _QUANTITY.match(str(value))
    if match is None or (match.group(2) or "") not in _SCALE:
        return str(value)
    return f"{(Decimal(match.group(1)) * _SCALE[match.group(2) or '']).normalize():f}"
