"""Which racks, when several would do? (fewest blocks, then what was preferred, tightest fit, healthiest, then name)

Tightest means: what stays behind is of the most use to the next big ask. Blocks are chosen so that the least remains
in them, racks so that the fewest free nodes are left over in them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from scheduling.answers import Placement
from scheduling.ask import Ask
from scheduling.topology import WORD_BITS, Indexes, Masks

MOST_CELLS = 1 << 22  # size of the table over block sets up to which the tightest set is found exactly


def place(ask: Ask, start: int, free: Masks) -> Placement:
    """The one placement of the ask at `start`, given its free masks there. The ask must fit."""
    counts = ask.timeline.counts(free)
    ask = ask.grown(counts)
    preferred = _preferred(ask)
    stock = Stock(ask, counts, ask.timeline.counts(free & preferred), _ill(ask))
    groups = _choose_groups(stock)
    columns = np.flatnonzero(np.isin(ask.group, groups))
    taken = stock.take(columns)
    topology = ask.snapshot.topology
    nodes: list[str] = []
    spares: list[str] = []
    liked_nodes = 0
    for column in sorted(taken, key=stock.name):
        positions = _positions(ask, column, free)
        wanted = set(_positions(ask, column, free & preferred))
        chosen = sorted(sorted(positions, key=lambda position: (position not in wanted, position))[: taken[column]])
        names = [topology.racks[ask.timeline.rack[column]].nodes[position] for position in chosen]
        nodes += names
        if ask.spec.spare_nodes:
            spares += names[-ask.spec.spare_nodes :]
        liked_nodes += len(wanted.intersection(chosen))
    end = start + ask.spec.duration_minutes
    return Placement(
        cluster=ask.snapshot.cluster,
        racks=tuple(name for name in stock.names(taken) if name),
        nodes=tuple(nodes),
        spares=tuple(spares),
        start_minute=start,
        end_minute=end,
        score=_score(stock, taken, columns, liked_nodes),
        jobs=_jobs_in_the_way(ask, nodes, start, end),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """What each rack column offers at one start: free nodes, preferred ones among them, and how many are unhealthy."""

    ask: Ask
    counts: Indexes
    liked: Indexes
    ill: Indexes

    def name(self, column: int) -> str:
        """The rack's name."""
        return self.ask.snapshot.topology.racks[int(self.ask.timeline.rack[column])].name

    def names(self, columns: Iterable[int]) -> list[str]:
        """The racks' names in order."""
        return sorted(self.name(column) for column in columns)

    def take(self, columns: Indexes) -> dict[int, int]:
        """Rack column -> nodes to take for the whole ask from these racks, which must be enough."""
        return _take_racks(self, columns) if self.ask.per_rack else _take_nodes(self, columns)


def _preferred(ask: Ask) -> Masks:
    """Preferred nodes as masks over the ask's word columns."""
    topology = ask.snapshot.topology
    plane = topology.plane(topology.masks(ask.spec.prefer))
    for name in ask.spec.prefer_racks:
        number = topology.rack_number(name)
        if number is not None:
            words = slice(*topology.first_word[number : number + 2].tolist())
            plane[words] = topology.full[words]
    return plane[ask.timeline.word]


def _choose_groups(stock: Stock) -> Indexes:
    """Numbers of the fewest groups that hold the ask, with most preferred nodes, then with least left in them."""
    ask = stock.ask
    each = ask.pieces(stock.counts)
    pieces = ask.per_group(each)
    fond = ask.per_group(np.minimum(stock.liked, ask.piece_nodes) * each if ask.per_rack else stock.liked)
    numbers = np.unique(ask.group)
    most_first = np.argsort(-pieces, kind="stable")
    fewest = int(np.searchsorted(np.cumsum(pieces[most_first]), ask.need)) + 1
    if fewest == 1:
        fits = np.flatnonzero(pieces >= ask.need)
        fondness = np.minimum(fond[fits], ask.need * ask.piece_nodes)
        fits = fits[fondness == fondness.max()]
        fits = fits[pieces[fits] == pieces[fits].min()]
        return numbers[[min(fits.tolist(), key=lambda at: _left_in(stock, np.flatnonzero(ask.group == numbers[at])))]]
    if len(pieces) * (fewest + 1) * (ask.need + int(pieces.max())) > MOST_CELLS:
        return numbers[_greedy_groups(pieces, most_first, fewest, ask.need)]
    return numbers[_tightest_groups(pieces, fond, fewest, ask.need)]


def _left_in(stock: Stock, columns: Indexes) -> tuple[int, int, list[str]]:
    """How good it is to place the ask in these racks: nodes left in the used ones, unhealthy ones there, names."""
    used = list(stock.take(columns))
    return int(stock.counts[used].sum()), int(stock.ill[used].sum()), stock.names(used)


def _greedy_groups(pieces: Indexes, most_first: Indexes, fewest: int, need: int) -> list[int]:
    """The largest groups, and as the last one the smallest that completes them."""
    large = most_first[: fewest - 1].tolist()
    rest = need - int(pieces[large].sum())
    last = min((at for at in most_first[fewest - 1 :].tolist() if pieces[at] >= rest), key=lambda at: (pieces[at], at))
    return [*large, last]


def _tightest_groups(pieces: Indexes, fond: Indexes, count: int, need: int) -> list[int]:
    """Exactly `count` groups holding `need` pieces: most preferred nodes, then fewest pieces left over, then names.

    best[j, s] is the most preferred nodes in j groups with s pieces together, over the groups seen so far.
    Groups are seen last name first, so that a tie at the end is settled for the first names.
    """
    size = need + int(pieces.max())
    best = np.full((count + 1, size), -1, np.int64)
    best[0, 0] = 0
    took = np.zeros((len(pieces), count + 1, size), bool)
    for at in range(len(pieces) - 1, -1, -1):
        room = int(pieces[at])
        if not room:
            continue
        before = best[:-1, : size - room]
        with_it = np.where(before >= 0, before + fond[at], -1)
        better = (with_it >= best[1:, room:]) & (with_it >= 0)
        took[at, 1:, room:] = better
        best[1:, room:] = np.where(better, with_it, best[1:, room:])
    together = need + int(np.argmax(best[count, need:]))  # argmax takes the first, which is the tightest
    chosen, left = [], count
    for at in range(len(pieces)):
        if left and took[at, left, together]:
            chosen.append(at)
            left, together = left - 1, together - int(pieces[at])
    return chosen


def _ill(ask: Ask) -> Indexes:
    """Unhealthy nodes per rack column."""
    return ask.timeline.counts(ask.snapshot.unhealthy[ask.timeline.word])


def _take_racks(stock: Stock, columns: Indexes) -> dict[int, int]:
    """For an ask of racks: most preferred, tightest, healthiest, then name."""
    each = stock.ask.piece_nodes
    fits = columns[stock.counts[columns] >= each].tolist()
    liked, counts, ill = stock.liked, stock.counts, stock.ill
    fits.sort(key=lambda at: (-min(int(liked[at]), each), int(counts[at]), int(ill[at]), stock.name(at)))
    return dict.fromkeys(fits[: stock.ask.need], each)


def _take_nodes(stock: Stock, columns: Indexes) -> dict[int, int]:
    """For an ask of single nodes: preferred nodes first, the rest from the fewest racks.

    The rest goes to racks already in use, then whole into the largest racks, and last into the tightest rack that takes
    what remains.
    """
    left, taken = stock.ask.need, {}
    room = {column: int(stock.counts[column]) for column in columns.tolist() if stock.counts[column]}
    rank = {column: (int(stock.ill[column]), stock.name(column)) for column in room}
    for column in sorted(room, key=lambda column: (-int(stock.liked[column]), stock.name(column))):
        part = min(left, int(stock.liked[column]))
        if part:
            taken[column] = part
            room[column] -= part
            left -= part
    while left:
        open_racks = [column for column in room if room[column] and column in taken]
        open_racks = open_racks or [column for column in room if room[column]]
        enough = [column for column in open_racks if room[column] >= left]
        sign = 1 if enough else -1
        column = min(enough or open_racks, key=lambda column: (sign * room[column], rank[column]))
        part = min(left, room[column])
        taken[column] = taken.get(column, 0) + part
        room[column] -= part
        left -= part
    return taken


def _positions(ask: Ask, column: int, masks: Masks) -> list[int]:
    """Positions inside the rack of the nodes set in its words."""
    words = masks[ask.timeline.first[column] : ask.timeline.first[column + 1]].tolist()
    return [
        at * WORD_BITS + bit for at, word in enumerate(words) for bit in range(word.bit_length()) if word >> bit & 1
    ]


def _score(stock: Stock, taken: dict[int, int], columns: Indexes, liked_nodes: int) -> dict[str, int]:
    """The parts by which this placement won over the others at its start."""
    used, ask = list(taken), stock.ask
    whole = [column for column in columns.tolist() if stock.counts[column] >= ask.flavor.nodes_per_rack]
    return {
        "blocks": len(np.unique(ask.group[used])),
        "preferred_nodes": liked_nodes,
        "left_whole_racks": sum(column not in taken for column in whole),
        "left_nodes": int(stock.counts[used].sum()) - sum(taken.values()),
        "unhealthy_nodes": int(stock.ill[used].sum()),
    }


def _jobs_in_the_way(ask: Ask, nodes: list[str], start: int, end: int) -> tuple[str, ...]:
    """Ids of jobs that run on held nodes in the period; only an ask that ignores jobs has any."""
    if not ask.spec.ignore_jobs:
        return ()
    topology, snapshot = ask.snapshot.topology, ask.snapshot
    held = topology.plane(topology.masks(nodes))
    rows = np.repeat(np.arange(len(snapshot.start)), np.diff(snapshot.first_entry))
    meets = (held[snapshot.entry_word] & snapshot.entry_mask) != 0
    during = (snapshot.start[rows] < end) & (snapshot.end[rows] > start)
    found = np.unique(snapshot.subject[rows[meets & during]])
    return tuple(sorted({busy.id for busy in (snapshot.subjects[at] for at in found.tolist()) if busy.kind == "job"}))
