"""Which rows differ from an inventory that was just read? (one import's rows in memory, then written in bulk)

Nodes keep the position they were first given in their rack; a position is never given twice, so that masks which
reservations stored keep their meaning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allocations.errors import Fault, Invalid
from allocations.models import Block, Cluster, Flavor, GpuModel, Level, Node, Observation, Rack, User
from allocations.services.health import HEALTH_FIELDS, take_report, write_health
from scheduling.inventory.fleet import FlavorRecord, FleetInventory, NodeRecord, RackRecord

_BATCH = 2000
_FLAVOR_FIELDS = (
    "gpu_model_id",
    "gpus_per_node",
    "nodes_per_rack",
    "nvlink_domain",
    "gres_type",
    "partition",
    "node_labels",
)
_RACK_FIELDS = ("flavor_id", "block_id", "cabinet", "is_pseudo", "positions_given", "gone_at")
_NODE_FIELDS = ("rack_id", "flavor_id", "position", "gpus", "cabinet", "labels", "gone_at")
GONE_REASON = "no longer in the inventory"


@dataclass(frozen=True, slots=True)
class Change:
    """One named thing that an import made, changed, lost or found again. `detail` says what, for a person."""

    kind: str
    name: str
    verb: str
    detail: str = ""


class _Gone:
    """What is reported of a node that is not there any more."""

    condition, drained, reason = "failed", False, GONE_REASON

    def __init__(self, name: str) -> None:
        self.name = name


class FleetRows:
    """The rows of one cluster during one import. The caller holds the cluster's lock."""

    def __init__(self, cluster: Cluster, at: datetime, held_nodes: Mapping[str, str]) -> None:
        self.cluster, self.at, self.held_nodes = cluster, at, held_nodes
        self.changes: list[Change] = []
        self.flavors = {row.name: row for row in Flavor.objects.filter(cluster=cluster)}
        self.racks = {row.name: row for row in Rack.objects.filter(cluster=cluster)}
        self.nodes = {row.name: row for row in Node.objects.filter(cluster=cluster)}
        self._new_nodes: list[Node] = []
        self._old_nodes: list[Node] = []
        self._health: list[tuple[Node, dict[str, Any]]] = []

    def count(self, *verbs: str) -> int:
        """How many nodes met one of these fates."""
        return sum(change.kind == "node" and change.verb in verbs for change in self.changes)

    def take(self, inventory: FleetInventory) -> None:
        """Bring everything but the nodes' rows up to date, and prepare those. Raises Invalid inventory_refused."""
        self._take_flavors(inventory.flavors)
        blocks = self._take_levels_and_blocks(inventory)
        self._take_racks(inventory, blocks)
        for record in inventory.nodes:
            self._take_node(record)
        self._let_go({record.name for record in inventory.nodes})

    def write(self, actor: User | None) -> None:
        """Write racks' counters, nodes, observations and their events: a handful of statements whatever the size."""
        grown = [
            rack for rack in self.racks.values() if rack.pk and rack.positions_given != self._given_before[rack.pk]
        ]
        Rack.objects.bulk_update(grown, ["positions_given"], batch_size=_BATCH)
        Node.objects.bulk_create(self._new_nodes, batch_size=_BATCH)
        Node.objects.bulk_create(
            self._old_nodes,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=[*_NODE_FIELDS, *HEALTH_FIELDS],
            batch_size=_BATCH,
        )
        write_health(self.cluster, self._health, source=Observation.Source.SCHEDULER, actor=actor, at=self.at)

    def _note(self, kind: str, name: str, verb: str, detail: str = "") -> None:
        self.changes.append(Change(kind, name, verb, detail))

    def _take_flavors(self, records: Sequence[FlavorRecord]) -> None:
        wanted_models = {record.gpu_model for record in records if record.gpu_model}
        GpuModel.objects.bulk_create([GpuModel(name=name) for name in sorted(wanted_models)], ignore_conflicts=True)
        models = dict(GpuModel.objects.filter(name__in=wanted_models).values_list("name", "pk"))
        for record in records:
            facts = {
                "gpu_model_id": models.get(record.gpu_model),
                "gpus_per_node": record.gpus_per_node,
                "nodes_per_rack": record.nodes_per_rack,
                "nvlink_domain": record.nvlink_domain,
                "gres_type": record.gres_type,
                "partition": record.partition[:255],
                "node_labels": dict(record.node_labels),
            }
            row = self.flavors.get(record.name)
            if row is None:
                self.flavors[record.name] = Flavor.objects.create(cluster=self.cluster, name=record.name, **facts)
                self._note("flavor", record.name, "created")
            elif told := _differences(row, facts):
                _assign(row, facts)
                row.save(update_fields=[field.removesuffix("_id") for field in _FLAVOR_FIELDS])
                self._note("flavor", record.name, "changed", told)

    def _take_levels_and_blocks(self, inventory: FleetInventory) -> dict[tuple[int, str], int]:
        """Levels and blocks as read; returns block ids by (level position, name)."""
        levels = self._take_levels(inventory.levels)
        rows = {
            (position, block.name): block
            for position, level in enumerate(levels)
            for block in Block.objects.filter(level=level)
        }
        parents = _parents(inventory)
        for position in reversed(range(len(levels))):  # the highest first, so that a parent has its id
            for place in sorted(place for place in parents if place[0] == position):
                above = parents[place]
                parent_id = rows[above].pk if above else None
                row = rows.get(place)
                if row is None:
                    rows[place] = Block.objects.create(
                        cluster=self.cluster, level=levels[position], name=place[1], parent_id=parent_id
                    )
                    self._note(levels[position].name, place[1], "created")
                elif row.parent_id != parent_id:
                    row.parent_id = parent_id
                    row.save(update_fields=("parent",))
                    self._note(
                        levels[position].name, place[1], "changed", f"now under {above[1] if above else 'nothing'}"
                    )
        return {place: row.pk for place, row in rows.items()}

    def _take_levels(self, names: Sequence[str]) -> list[Level]:
        rows = {level.position: level for level in Level.objects.filter(cluster=self.cluster)}
        if [rows[position].name for position in sorted(rows)] == list(names):
            return [rows[position] for position in sorted(rows)]
        surplus = [rows.pop(position).pk for position in sorted(rows) if position >= len(names)]
        if surplus:
            # A network level that is no more: its blocks were only places above racks, nothing stands in them.
            Block.objects.filter(cluster=self.cluster, parent__level__in=surplus).update(parent=None)
            Rack.objects.filter(cluster=self.cluster, block__level__in=surplus).update(block=None)
            for rack in self.racks.values():
                rack.refresh_from_db(fields=("block",))
            Block.objects.filter(level__in=surplus).delete()
            Level.objects.filter(pk__in=surplus).delete()
        for position, level in rows.items():  # out of the way first: two levels may have swapped their names
            Level.objects.filter(pk=level.pk).update(name=f"-{position}")
        levels = []
        for position, name in enumerate(names):
            level, _ = Level.objects.update_or_create(cluster=self.cluster, position=position, defaults={"name": name})
            levels.append(level)
        self._note("levels", ", ".join(names), "changed")
        return levels

    def _take_racks(self, inventory: FleetInventory, blocks: Mapping[tuple[int, str], int]) -> None:
        """Racks as read, and the pseudo-racks that gather nodes without one, one per flavor."""
        self._given_before = {rack.pk: rack.positions_given for rack in self.racks.values()}
        wanted = {record.name: self._rack_facts(record, blocks) for record in inventory.racks}
        for flavor in sorted({record.flavor for record in inventory.nodes if record.rack is None}):
            facts = {"flavor_id": self.flavors[flavor].pk, "block_id": None, "cabinet": "", "is_pseudo": True}
            wanted[pseudo_rack(flavor)] = {**facts, "gone_at": None}
        made, changed = [], []
        for name, facts in wanted.items():
            row = self.racks.get(name)
            if row is None:
                row = self.racks[name] = Rack(cluster=self.cluster, name=name, **facts)
                made.append(row)
                self._note("rack", name, "created")
            elif told := _differences(row, facts):
                self._note("rack", name, "back" if row.gone_at else "changed", told)
                _assign(row, facts)
                changed.append(row)
        for name, row in self.racks.items():
            if name not in wanted and row.gone_at is None:
                row.gone_at = self.at
                changed.append(row)
                self._note("rack", name, "gone")
        Rack.objects.bulk_create(made, batch_size=_BATCH)
        Rack.objects.bulk_create(
            changed, update_conflicts=True, unique_fields=["id"], update_fields=list(_RACK_FIELDS), batch_size=_BATCH
        )
        self._given_before |= {rack.pk: 0 for rack in made}

    def _rack_facts(self, record: RackRecord, blocks: Mapping[tuple[int, str], int]) -> dict[str, Any]:
        lowest = next(((position, name) for position, name in enumerate(record.levels) if name), None)
        return {
            "flavor_id": self.flavors[record.flavor].pk,
            "block_id": blocks[lowest] if lowest else None,
            "cabinet": record.cabinet[:255],
            "is_pseudo": False,
            "gone_at": None,
        }

    def _take_node(self, record: NodeRecord) -> None:
        rack = self.racks[pseudo_rack(record.flavor) if record.rack is None else record.rack]
        facts = {
            "flavor_id": self.flavors[record.flavor].pk,
            "gpus": record.gpus,
            "cabinet": record.cabinet[:255],
            "labels": dict(record.labels),
            "gone_at": None,
        }
        row = self.nodes.get(record.name)
        if row is None:
            row = Node(cluster=self.cluster, name=record.name, rack=rack, position=self._next_position(rack), **facts)
            self.nodes[record.name] = row
            change = take_report(row, record, self.at)
            row.condition_since_at = self.at
            self._new_nodes.append(row)
            self._note("node", record.name, "created")
        else:
            change = self._retake_node(row, rack, record, facts)
        if change is not None:
            self._health.append(change)

    def _retake_node(
        self, row: Node, rack: Rack, record: NodeRecord, facts: dict[str, Any]
    ) -> tuple[Node, dict[str, Any]] | None:
        """A node that was known before: it may have come back, moved, changed, or be as it was."""
        verb = "back" if row.gone_at else "changed"
        told = _differences(row, facts)
        if row.rack_id != rack.pk:
            self._refuse_move_of_held(record.name, rack)
            verb, told = ("moved" if verb == "changed" else verb), f"now in {rack.name}"
            row.rack, row.position = rack, self._next_position(rack)
        _assign(row, facts)
        change = take_report(row, record, self.at)
        if change is not None:
            told = told or f"{record.condition}{', drained' if record.drained else ''}"
        if told or verb == "back":
            self._note("node", record.name, verb, told)
            self._old_nodes.append(row)
        return change

    def _refuse_move_of_held(self, name: str, rack: Rack) -> None:
        if reservation := self.held_nodes.get(name):
            sentence = f"node {name} is held by {reservation} and cannot move to rack {rack.name} before it is released"
            raise Invalid(sentence, Fault(f"/nodes/{name}", "node_held", sentence), code="inventory_refused")

    def _next_position(self, rack: Rack) -> int:
        position = rack.positions_given
        rack.positions_given += 1
        return position

    def _let_go(self, present: set[str]) -> None:
        """Nodes that were not read become gone and failed; a hold on one stays, and the event tells of it."""
        for name, row in self.nodes.items():
            if name in present or row.gone_at is not None:
                continue
            row.gone_at = self.at
            change = take_report(row, _Gone(name), self.at)
            if change is not None:
                self._health.append(change)
            self._old_nodes.append(row)
            held = self.held_nodes.get(name)
            self._note("node", name, "gone", f"still held by {held}" if held else "")


def pseudo_rack(flavor: str) -> str:
    """The name of the pseudo-rack of nodes without topology of a flavor; no scheduler's rack has spaces in its name."""
    return f"no rack ({flavor})"


def _parents(inventory: FleetInventory) -> dict[tuple[int, str], tuple[int, str] | None]:
    """Every place of every level with the nearest known place above it."""
    chains: list[Sequence[str | None]] = [(block.name, *block.parents) for block in inventory.blocks]
    chains += [rack.levels for rack in inventory.racks]
    parents: dict[tuple[int, str], tuple[int, str] | None] = {}
    for chain in chains:
        known = [(position, name) for position, name in enumerate(chain) if name]
        for number, place in enumerate(known):
            above = known[number + 1] if number + 1 < len(known) else None
            parents[place] = parents.get(place) or above
    return parents


def _differences(row: Any, facts: Mapping[str, Any]) -> str:
    """What differs, in words a person can read (`gpus 4 -> 3`), "" when nothing does."""
    told = []
    for key, value in facts.items():
        before = getattr(row, key)
        if before == value:
            continue
        if key == "gone_at":
            told.append("found again")
        elif key.endswith("_id"):
            told.append(f"another {key.removesuffix('_id')}")
        else:
            told.append(f"{key} {_plain(before)} -> {_plain(value)}")
    return ", ".join(told)


def _assign(row: Any, facts: Mapping[str, Any]) -> None:
    for key, value in facts.items():
        setattr(row, key, value)


def _plain(value: Any) -> str:
    return "none" if value in (None, "", {}) else str(value)[:80]
