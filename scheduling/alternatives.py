"""What would fit instead? (complete specs, each placed before it is offered; at most five, the closest first)"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from scheduling.answers import Alternative, AlternativeKind, Move, Placement, Reason
from scheduling.ask import LOOK_AHEAD_MINUTES, Ask
from scheduling.placement import place
from scheduling.search import Fit, Shortfall, free_from, search
from scheduling.snapshot import FleetSnapshot
from scheduling.spec import ReservationSpec, SpecError

MOST_OFFERED = 5
HOUR = 60

Offers = Iterator[Alternative]


def offers(
    ask: Ask, shortfall: Shortfall | None, reasons: Sequence[Reason], others: Sequence[FleetSnapshot] = ()
) -> tuple[Alternative, ...]:
    """Alternatives to an ask that does not fit.

    `shortfall` is what its own window yields at best (None without one), `reasons` why it does not fit: only a
    reservation that they name is offered to move.
    """
    kinds: tuple[Callable[[], Offers], ...] = (
        lambda: _later(ask),
        lambda: _moved(ask, reasons),
        lambda: _split(ask),
        lambda: _smaller(ask, shortfall),
        lambda: _shorter(ask),
        lambda: _other_cluster(ask, others),
        lambda: _other_flavor(ask),
    )
    found: list[Alternative] = []
    for kind in kinds:
        for offer in kind():
            if not any(offer.spec == old.spec and offer.placement.cluster == old.placement.cluster for old in found):
                found.append(offer)
            if len(found) == MOST_OFFERED:
                return tuple(found)
    return tuple(found)


def placed(ask: Ask) -> Placement | None:
    """The earliest placement of the ask, None when it does not fit."""
    found = _fit(ask)
    return None if found is None else place(ask, found.start_minute, found.free)


def _fit(ask: Ask) -> Fit | None:
    """The earliest fit of the ask."""
    if ask.last_start < ask.first_start or ask.possible < ask.need:
        return None
    found = search(ask)
    return found if isinstance(found, Fit) else None


def _offer(kind: AlternativeKind, snapshot: FleetSnapshot, spec: ReservationSpec) -> Offers:
    """The spec as an alternative if it fits; a spec that makes no sense there is no offer."""
    try:
        placement = placed(Ask.of(snapshot, spec))
    except SpecError:
        return
    if placement is not None:
        yield Alternative(kind, spec, placement)


def _later(ask: Ask) -> Offers:
    """The same, ending after the window."""
    if ask.spec.latest_end_minute is None:
        return
    horizon = ask.snapshot.now_minute + LOOK_AHEAD_MINUTES
    placement = placed(replace(ask, last_start=horizon - ask.spec.duration_minutes))
    if placement is not None:
        yield Alternative("later", replace(ask.spec, latest_end_minute=placement.end_minute), placement)


def _moved(ask: Ask, reasons: Sequence[Reason]) -> Offers:
    """The same, after one reservation in the way that may move has moved."""
    named = {cause.id for reason in reasons for cause in reason.by if cause.kind == "reservation"}
    movable = {busy.id: busy.request for busy in ask.snapshot.subjects if busy.request is not None and busy.id in named}
    for id, request in sorted(movable.items()):
        emptier = ask.snapshot.without("reservation", id)
        placement = placed(Ask.of(emptier, ask.spec))
        if placement is None:
            continue
        filled = emptier.with_hold("", placement.nodes, placement.start_minute, placement.end_minute)
        try:
            elsewhere = placed(Ask.of(filled, request))
        except SpecError:
            continue
        if elsewhere is not None:
            yield Alternative("move", ask.spec, placement, (Move(id, elsewhere),))


def _split(ask: Ask) -> Offers:
    """The same amount over more blocks, or as single nodes over more racks."""
    spec = ask.spec
    if ask.max_groups is not None:
        placement = placed(replace(ask, max_groups=None))
        if placement is not None:
            blocks = placement.score["blocks"]
            yield Alternative("split", replace(spec, same_block=False, max_blocks=blocks), placement)
    if spec.racks is not None:
        working = ask.piece_nodes - spec.spare_nodes
        nodes = replace(spec, racks=None, nodes_per_rack=None, spare_nodes=0, nodes=spec.racks * working, min=None)
        yield from _offer("split", ask.snapshot, nodes)


def _smaller(ask: Ask, shortfall: Shortfall | None) -> Offers:
    """The largest size that its own window yields, and as many racks with fewer nodes in each."""
    if shortfall is None or ask.last_start < ask.first_start:
        return
    size = ask.units(shortfall.most_pieces)
    if size > 0:
        start = shortfall.start_minute
        less = replace(ask, spec=ask.spec.of_size(size), need=shortfall.most_pieces, wanted=shortfall.most_pieces)
        yield Alternative("smaller", less.spec, place(less, start, free_from(ask, start)))
    if ask.spec.racks is not None:
        thin = Ask.of(ask.snapshot, replace(ask.spec, nodes_per_rack=1))  # has every rack that a thinner ask may use

        def with_nodes(nodes: int) -> Ask:
            spec = replace(ask.spec, nodes_per_rack=nodes)
            return replace(thin, spec=spec, piece_nodes=nodes + spec.spare_nodes)

        yield from _largest("smaller", ask.piece_nodes - ask.spec.spare_nodes, with_nodes)


def _shorter(ask: Ask) -> Offers:
    """The longest length that fits in the window: whole hours, or minutes for asks of an hour or less."""
    step = HOUR if ask.spec.duration_minutes > HOUR else 1
    end = ask.last_start + ask.spec.duration_minutes

    def with_steps(steps: int) -> Ask:
        minutes = steps * step
        return replace(ask, spec=replace(ask.spec, duration_minutes=minutes), last_start=end - minutes)

    yield from _largest("shorter", -(-ask.spec.duration_minutes // step), with_steps)


def _largest(kind: AlternativeKind, below: int, ask_of: Callable[[int], Ask]) -> Offers:
    """The ask of the largest number in [1, below) that fits; fitting must be monotone in the number."""
    best: tuple[Ask, Fit] | None = None
    low, high = 1, below - 1
    while low <= high:
        middle = (low + high) // 2
        ask = ask_of(middle)
        found = _fit(ask)
        if found is None:
            high = middle - 1
        else:
            best, low = (ask, found), middle + 1
    if best is not None:
        yield Alternative(kind, best[0].spec, place(best[0], best[1].start_minute, best[1].free))


def _other_cluster(ask: Ask, others: Sequence[FleetSnapshot]) -> Offers:
    """The same spec on another cluster that has a flavor of that name."""
    for other in others:
        yield from _offer("other_cluster", other, ask.spec)


def _other_flavor(ask: Ask) -> Offers:
    """As many GPUs (nodes, where neither flavor has any) of another flavor, in its full racks if racks were asked."""
    spec, topology = ask.spec, ask.snapshot.topology
    for flavor in topology.flavors:
        if flavor.name == spec.flavor or (flavor.gpus_per_node > 0) != (ask.flavor.gpus_per_node > 0):
            continue
        changed = replace(spec, flavor=flavor.name, min=None)
        nodes = _nodes_of_same_worth(ask, flavor.gpus_per_node)
        if spec.nodes is not None:
            changed = replace(changed, nodes=nodes)
        if spec.racks is not None:
            working = flavor.nodes_per_rack - spec.spare_nodes
            if working < 1:
                continue
            changed = replace(changed, racks=-(-nodes // working), nodes_per_rack=None)
        yield from _offer("other_flavor", ask.snapshot, changed)


def _nodes_of_same_worth(ask: Ask, gpus_per_node: int) -> int:
    """Nodes with that many GPUs each that hold as many GPUs as the ask's working nodes."""
    working = ask.wanted * (ask.piece_nodes - ask.spec.spare_nodes)
    return -(-working * ask.flavor.gpus_per_node // gpus_per_node) if gpus_per_node else working
