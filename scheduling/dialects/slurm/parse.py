"""What does a Slurm cluster hold? (text of scontrol and sacctmgr -> Observed)

The texts are those of READS, run under ENVIRONMENT. Moments come as epoch seconds; where a site's wrapper drops the
variable they come as UTC text, which is read too. An empty text is never "nothing there": it raises.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from scheduling.dialects.errors import UnreadableAnswer
from scheduling.dialects.slurm.accounts import account
from scheduling.dialects.slurm.names import moment, organization, same_nodes
from scheduling.dialects.slurm.reservations import OWN_PREFIX, reservation
from scheduling.hostlist import HostlistError
from scheduling.plan import NativeObject, Observed

_ASSOCIATION_FIELDS = "Cluster,Account,User,Partition,ParentName,Share"
READS: Mapping[str, tuple[str, ...]] = {
    "config": ("scontrol", "show", "config"),
    "accounts": ("sacctmgr", "-nP", "show", "account", "format=Account,Descr,Org"),
    # `where user=` leaves out user rows; `wopinfo` would leave out the parent.
    "associations": ("sacctmgr", "-nP", "show", "assoc", "where", "user=", f"format={_ASSOCIATION_FIELDS}"),
    "reservations": ("scontrol", "-o", "show", "reservation"),
}
NO_RESERVATIONS = "No reservations in the system"
UNNAMED = "(null)"
_KEY = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:]*)=")
_OUTPUT_FLAGS = {"SPEC_NODES", "ALL_NODES"}  # Slurm says them of every reservation with named nodes


def parse(native: Mapping[str, str], *, installation: str, label_prefix: str = "") -> Observed:
    """Accounts of this cluster and all reservations; facts: version, native_cluster. Raises UnreadableAnswer.

    A reservation is ours by its name, an account by its organization; all others are foreign.
    """
    config = read_config(_text(native, "config"))
    cluster = config["ClusterName"] if config["ClusterName"] != UNNAMED else ""
    accounts = _accounts(native, cluster, organization(installation))
    reservations = [_reservation(record) for record in reservation_records(_text(native, "reservations"))]
    version = tuple(int(part) for part in re.findall(r"\d+", config["SLURM_VERSION"])[:3])
    facts = {"version": version, "native_cluster": cluster}
    return Observed((*accounts, *reservations), facts)


def read_config(text: str) -> dict[str, str]:
    """`Key = value` lines of `scontrol show config`; ClusterName and SLURM_VERSION are always among them."""
    pairs = (line.partition("=") for line in text.splitlines())
    config = {key.strip(): value.strip() for key, found, value in pairs if found}
    for key in ("ClusterName", "SLURM_VERSION"):
        if not config.get(key):
            raise UnreadableAnswer("config", f"scontrol show config named no {key}")
    return config


def reservation_records(text: str) -> list[dict[str, str]]:
    """One mapping per line of `scontrol -o show reservation`; [] for NO_RESERVATIONS.

    Values may hold spaces; of a key that comes more than once (NodeName=, CoreIDs=) the first is kept.
    """
    records = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(NO_RESERVATIONS):
            continue
        if not line.startswith("ReservationName="):
            raise UnreadableAnswer("reservations", f"not a reservation line: {line[:120]!r}")
        records.append(key_values(line))
    return records


def key_values(line: str) -> dict[str, str]:
    """`Key=value Key=value` with spaces inside values; (null) and N/A become ""."""
    found = list(_KEY.finditer(line))
    record: dict[str, str] = {}
    for match, following in zip(found, [*found[1:], None], strict=True):
        value = line[match.end() : following.start() if following else len(line)].strip()
        record.setdefault(match.group(1), "" if value in ("(null)", "N/A") else value)
    return record


def epoch_seconds(value: str) -> int:
    """A moment of Slurm's: epoch seconds, or text in UTC."""
    if value.isdigit():
        return int(value)
    try:
        return int(datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp())
    except ValueError as error:
        raise UnreadableAnswer("reservations", f"not a moment: {value[:40]!r}") from error


def _text(native: Mapping[str, str], part: str) -> str:
    text = native.get(part, "")
    if not text.strip():
        raise UnreadableAnswer(part, "the answer is empty, and an empty answer says nothing about the cluster")
    return text


def _rows(native: Mapping[str, str], part: str, width: int) -> Iterator[list[str]]:
    """Rows of `sacctmgr -nP`; a description may itself hold a bar, so the outer columns are counted from both ends."""
    for line in filter(None, map(str.strip, _text(native, part).splitlines())):
        cells = line.split("|")
        if len(cells) < width:
            raise UnreadableAnswer(part, f"expected {width} columns: {line[:120]!r}")
        yield [cells[0], "|".join(cells[1 : len(cells) - width + 2]), *cells[len(cells) - width + 2 :]]


def _accounts(native: Mapping[str, str], cluster: str, ours: str) -> Iterator[NativeObject]:
    """Accounts with an association on this cluster, and foreign ones without: their names are taken all the same."""
    made = {name: (described, owner) for name, described, owner in _rows(native, "accounts", 3)}
    associated = {}
    for on_cluster, name, user, _partition, parent, share in _rows(native, "associations", 6):
        if on_cluster == cluster and not user:
            associated[name] = (parent, share)
    for name in sorted(made):
        described, owner = made[name]
        owned = owner.lower() == ours
        if name != "root" and (name in associated or not owned):
            parent, share = associated.get(name, ("", ""))
            attributes = {
                "parent": parent.lower(),
                "fairshare": int(share) if share.isdigit() else share,
                "organization": owner.lower(),
                "description": described.lower(),
            }
            yield account(name, attributes, cluster, owned)


def _reservation(record: Mapping[str, str]) -> NativeObject:
    name = record["ReservationName"]
    try:
        nodes = same_nodes(record.get("Nodes", ""))
        start, end = moment(epoch_seconds(record["StartTime"])), moment(epoch_seconds(record["EndTime"]))
    except KeyError as error:
        raise UnreadableAnswer("reservations", f"the reservation {name[:64]!r} has no {error.args[0]}") from error
    except HostlistError as error:
        raise UnreadableAnswer("reservations", f"the reservation {name[:64]!r}: {error}") from error
    attributes = {
        "nodes": nodes,
        "start": start,
        "end": end,
        "accounts": ",".join(sorted(filter(None, record.get("Accounts", "").lower().split(",")))),
        "users": record.get("Users", ""),
        "flags": ",".join(sorted(set(filter(None, record.get("Flags", "").split(","))) - _OUTPUT_FLAGS)),
    }
    return reservation(name, attributes, owned=name.startswith(OWN_PREFIX))
