"""What can be true on a cluster now, and what must wait? (desired + observed -> what to push, and what converges)

Slurm keeps a calendar, so there the desired state is pushed as it is. Kueue has none: a reservation is a fence around
its nodes, and a node is fenced, or its fence taken off, only while no work runs on it. Until then the reservation
converges, with a sentence that says on what it waits. The common pool stays lowered meanwhile, so that nothing new is
admitted on nodes that are promised. Derived anew at each run from the two states alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from scheduling.desired import DesiredReservation, DesiredState
from scheduling.hostlist import fold
from scheduling.plan import Observed

KINDS_WITH_CALENDAR = frozenset({"slurm", "slinky"})
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Converging:
    """A reservation ("" for another object) that is not yet as it should be, and why, in one sentence."""

    reservation: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What to render now (with the keys that must not be deleted yet in `desired.keep`), and what converges."""

    desired: DesiredState
    converging: tuple[Converging, ...] = ()


def settle(desired: DesiredState, observed: Observed) -> Settled:
    """`desired` without what cannot be done yet. Identity on schedulers with a calendar of their own.

    `observed.facts` holds busy_nodes (node -> names of what runs there) and terminating (keys).
    """
    if desired.kind in KINDS_WITH_CALENDAR:
        return Settled(desired)
    busy: Mapping[str, Sequence[str]] = observed.facts.get("busy_nodes", {})
    fences = _fences(observed)
    opening = [_opened(each, desired.at_minute, busy, fences) for each in desired.reservations]
    reservations = tuple(each for each, _ in opening if each is not None)
    waiting = [sentence for _, sentence in opening if sentence is not None]
    closing, kept_nodes = _closing(desired, busy, fences)
    terminating: Iterable[Key] = observed.facts.get("terminating", ())
    waiting += closing + [
        Converging("", f"{object_class} {name} is being removed and waits for what still uses it.")
        for object_class, name in terminating
    ]
    flavors = {("ResourceFlavor", f"rsv-{value}") for value in kept_nodes.values()}
    keep = {*(("Node", node) for node in kept_nodes), *flavors, *terminating}
    pool = _with_smaller_pool(desired, observed, kept_nodes)
    settled = replace(desired, reservations=reservations, pool_gpus=pool, keep=tuple(sorted(keep)))
    return Settled(settled, tuple(waiting))


def _is_active(reservation: DesiredReservation, at_minute: int) -> bool:
    return reservation.start_minute <= at_minute < reservation.end_minute


def _fences(observed: Observed) -> dict[str, str]:
    """Node -> the reservation (lower case) whose fence stands around it."""
    nodes = (item for item in observed.objects if item.object_class == "Node")
    marks = {node.name: node.attributes.get("reservation") or node.attributes.get("taint") for node in nodes}
    return {name: mark for name, mark in marks.items() if mark}


def _opened(
    wanted: DesiredReservation, at_minute: int, busy: Mapping[str, Sequence[str]], fences: Mapping[str, str]
) -> tuple[DesiredReservation | None, Converging | None]:
    """The reservation as far as it can be fenced. One that is open keeps the nodes it has; a new one opens whole."""
    if not _is_active(wanted, at_minute):
        return wanted, None
    has = {node for node in wanted.nodes if fences.get(node) == wanted.id.lower()}
    blocked = [node for node in wanted.nodes if node not in has and node in busy]
    if not blocked:
        return wanted, None
    workloads = sorted({name for node in blocked for name in busy[node]})
    since = datetime.fromtimestamp(wanted.start_minute * 60, UTC)
    sentence = (
        f"{wanted.id} was to open on {since:%Y-%m-%d at %H:%M} UTC; {len(blocked)} of its {len(wanted.nodes)} nodes "
        f"still run other work: {fold(blocked)} ({_some(workloads)})."
    )
    if not has:
        return None, Converging(wanted.id, sentence)
    ready = tuple(node for node in wanted.nodes if node not in blocked)
    return replace(wanted, nodes=ready), Converging(wanted.id, sentence)


def _closing(
    desired: DesiredState, busy: Mapping[str, Sequence[str]], fences: Mapping[str, str]
) -> tuple[list[Converging], dict[str, str]]:
    """Fences that nobody wants any more but that still have work inside: node -> reservation (lower case)."""
    wanted = {
        (node, each.id.lower())
        for each in desired.reservations
        if _is_active(each, desired.at_minute)
        for node in each.nodes
    }
    kept = {node: mark for node, mark in sorted(fences.items()) if (node, mark) not in wanted and node in busy}
    waiting = []
    for mark in sorted(set(kept.values())):
        nodes = [node for node in kept if kept[node] == mark]
        workloads = sorted({name for node in nodes for name in busy[node]})
        sentence = (
            f"{len(nodes)} nodes are no longer {mark.upper()}'s but still run its work: {fold(nodes)} "
            f"({_some(workloads)}); they go back when it has ended."
        )
        waiting.append(Converging(mark.upper(), sentence))
    return waiting, kept


def _with_smaller_pool(
    desired: DesiredState, observed: Observed, kept_nodes: Mapping[str, str]
) -> tuple[tuple[str, int], ...]:
    """The pool less the GPUs that are still behind a fence: they can be promised to nobody yet.

    Nodes that the next reservation holds are not in the pool as it is.
    """
    reserved = {node for each in desired.reservations if _is_active(each, desired.at_minute) for node in each.nodes}
    flavor_of = {
        item.name.removeprefix("rsv-"): item.attributes.get("flavor")
        for item in observed.objects
        if item.object_class == "ResourceFlavor"
    }
    per_node = {flavor.name: flavor.gpus_per_node for flavor in desired.flavors}
    pool = dict(desired.pool_gpus)
    for node, mark in kept_nodes.items():
        flavor = flavor_of.get(mark)
        if flavor in pool and node not in reserved:
            pool[flavor] = max(0, pool[flavor] - per_node.get(flavor, 0))
    return tuple((flavor, pool[flavor]) for flavor, _ in desired.pool_gpus)


def _some(names: Sequence[str]) -> str:
    """At most three names, and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
