"""What does a DesiredState look like in Kueue's words? (flavors, cohorts, queues, and the carve-outs of reservations)

Kueue has no calendar: a reservation is rendered from its start to its end and not a minute longer. Its carve-out is a
label and a taint on exactly its nodes, a flavor that chooses them, a queue outside every cohort, and a local queue in
the namespace of each of its teams.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from scheduling.desired import DesiredFlavor, DesiredReservation, DesiredState
from scheduling.dialects.contract import Capabilities
from scheduling.dialects.errors import NameClash, UnknownReference
from scheduling.dialects.kueue.names import (
    HOSTNAME,
    TOPOLOGY,
    dns_label,
    label_key,
    label_value,
    namespace_name,
    node_name,
    reservation_name,
    reservation_value,
)
from scheduling.dialects.kueue.objects import CLASSES, NODE_LABEL, NOMINAL, Owner, kueue_object
from scheduling.dialects.kueue.tree import Drawn, TeamTree, draw_tree, queue_attributes
from scheduling.plan import Compromise, NativeObject, Rendered


def render(desired: DesiredState, capabilities: Capabilities | None = None) -> Rendered:
    """Objects in creation order. Raises NameNotAllowed, NameClash, UnknownReference."""
    owner = Owner(desired.installation, desired.label_prefix)
    label_key(owner.reservation_label)
    drawn = [*_topology(desired), *_flavors(desired), *_queues(desired), *_reservations(owner, desired)]
    drawn += _namespaces(drawn)
    drawn.sort(key=lambda each: (CLASSES.index(each[0]), each[0] != "Cohort" and each[1]))  # cohorts stay parents first
    objects = tuple(kueue_object(owner, *each) for each in drawn)
    _refuse_clashes(objects)
    return Rendered(objects, tuple(_compromises(desired)), frozenset(desired.keep))


def is_active(desired: DesiredState, reservation: DesiredReservation) -> bool:
    """Whether it has started and is not over at the state's moment."""
    return reservation.start_minute <= desired.at_minute < reservation.end_minute


def _topology(desired: DesiredState) -> Iterator[Drawn]:
    if desired.topology_labels:
        levels = [label_key(label) for label in desired.topology_labels if label != HOSTNAME]
        yield "Topology", TOPOLOGY, {"levels": (*levels, HOSTNAME)}


def _flavors(desired: DesiredState) -> Iterator[Drawn]:
    for flavor in desired.flavors:
        if _has_gpus(flavor):
            yield "ResourceFlavor", dns_label("flavor", flavor.name), _flavor_attributes(desired, flavor)


def _flavor_attributes(desired: DesiredState, flavor: DesiredFlavor) -> dict[str, object]:
    """Labels that choose the nodes, and the topology: only a flavor with labels may have one."""
    labels = {NODE_LABEL + label_key(key): label_value(value) for key, value in flavor.node_labels}
    return {**labels, "topologyName": TOPOLOGY if desired.topology_labels and labels else None}


def _queues(desired: DesiredState) -> Iterator[Drawn]:
    """The tree of each GPU model, and a local queue beside every queue of a team."""
    for model in sorted({flavor.gpu_model for flavor in desired.flavors if _has_gpus(flavor)}):
        flavors = tuple(flavor for flavor in desired.flavors if flavor.gpu_model == model and _has_gpus(flavor))
        for object_class, name, attributes in draw_tree(desired, model, flavors):
            yield object_class, name, attributes
            if object_class == "ClusterQueue":
                yield "LocalQueue", f"{attributes['namespaces'][0]}/{name}", {"clusterQueue": name}


def _reservations(owner: Owner, desired: DesiredState) -> Iterator[Drawn]:
    accounts = TeamTree(desired).teams
    for reservation in desired.reservations:
        flavor = _flavor_of(desired, reservation)
        if unknown := sorted(set(reservation.teams) - set(accounts)):
            raise UnknownReference("team", unknown[0], f"reservation {reservation.id}")
        if is_active(desired, reservation) and _has_gpus(flavor):
            yield from _carve_out(owner, desired, reservation, flavor)


def _carve_out(
    owner: Owner, desired: DesiredState, reservation: DesiredReservation, flavor: DesiredFlavor
) -> Iterator[Drawn]:
    value, name = reservation_value(reservation.id), reservation_name(reservation.id)
    for node in sorted(set(reservation.nodes)):
        yield "Node", node_name(node), {"reservation": value, "taint": value}
    chosen = {
        **_flavor_attributes(desired, flavor),
        NODE_LABEL + owner.reservation_label: value,
        "topologyName": TOPOLOGY if desired.topology_labels else None,
        "toleration": value,
        "reservation": value,
        "flavor": label_value(flavor.name),
    }
    yield "ResourceFlavor", name, chosen
    namespaces = tuple(namespace_name(account) for account in reservation.teams)
    gpus = len(set(reservation.nodes)) * flavor.gpus_per_node
    queue = queue_attributes(None, namespaces)
    yield "ClusterQueue", name, {**queue, NOMINAL + name: gpus, "reservation": value}
    for namespace in sorted(namespaces):
        yield "LocalQueue", f"{namespace}/{name}", {"clusterQueue": name, "reservation": value}


def _namespaces(drawn: list[Drawn]) -> list[Drawn]:
    homes = {name.partition("/")[0] for object_class, name, _ in drawn if object_class == "LocalQueue"}
    return [("Namespace", home, {}) for home in sorted(homes)]


def _has_gpus(flavor: DesiredFlavor) -> bool:
    return flavor.gpus_per_node > 0 and bool(flavor.gpu_model)


def _flavor_of(desired: DesiredState, reservation: DesiredReservation) -> DesiredFlavor:
    for flavor in desired.flavors:
        if flavor.name == reservation.flavor:
            return flavor
    raise UnknownReference("flavor", reservation.flavor, f"reservation {reservation.id}")


def _refuse_clashes(objects: tuple[NativeObject, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for item in objects:
        if item.key in seen:
            raise NameClash(item.object_class, item.name)
        seen.add(item.key)


def _compromises(desired: DesiredState) -> Iterator[Compromise]:
    for flavor in desired.flavors:
        if not _has_gpus(flavor):
            yield Compromise(
                "nodes_without_gpus",
                flavor.name,
                f"Kueue counts GPUs here: nodes of {flavor.name} have none and are held by Berth's calendar alone.",
            )
        elif not flavor.node_labels and len(desired.flavors) > 1:
            yield Compromise(
                "flavor_without_labels",
                flavor.name,
                f"No node labels are known for {flavor.name}: its quota may be used on nodes of other flavors.",
            )
    if desired.topology_levels and not desired.topology_labels:
        yield Compromise(
            "topology_without_labels",
            desired.cluster,
            f"No node labels are known for the racks of {desired.cluster}: Kueue cannot keep a job inside one rack.",
        )
    for reservation in desired.reservations:
        if reservation.start_minute > desired.at_minute:
            start = datetime.fromtimestamp(reservation.start_minute * 60, UTC)
            yield Compromise(
                "reservation_not_due",
                reservation.id,
                f"Kueue has no calendar: the queue of {reservation.id} opens on {start:%Y-%m-%d at %H:%M} UTC, "
                "and until then the cluster does not know of it.",
            )
