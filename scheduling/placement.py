"""Which racks, when several would do? (fewest blocks, then what was preferred, tightest fit, healthiest, then name)

Tightest means: what stays behind is of the most use to the next big ask. Blocks are chosen so that the least remains
in them, racks so that the fewest free nodes are left over in them.
"""

import numpy as np

from scheduling.answers import Placement
from scheduling.ask import Ask
from scheduling.topology import WORD_BITS, Indexes, Masks

MOST_CELLS = 1 << 22  # size of the table over block sets up to which the tightest set is found exactly


def place(ask: Ask, start: int, free: Masks) -> Placement:
    """The one placement of the ask at `start`, given its free masks there. The ask must fit."""
    counts = ask.timeline.counts(free)
    preferred = _preferred(ask)
    liked = ask.timeline.counts(free & preferred)
    groups = _choose_groups(ask, counts, liked)
    columns = np.flatnonzero(np.isin(ask.group, groups))
    taken = _take_racks(ask, counts, liked, columns) if ask.per_rack else _take_nodes(ask, counts, liked, columns)
    topology = ask.snapshot.topology
    nodes: list[str] = []
    spares: list[str] = []
    liked_nodes = 0
    for column in sorted(taken, key=lambda column: topology.racks[ask.timeline.rack[column]].name):
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
        racks=tuple(sorted({topology.racks[ask.timeline.rack[column]].name for column in taken} - {""})),
        nodes=tuple(nodes),
        spares=tuple(spares),
        start_minute=start,
        end_minute=end,
        score=_score(ask, counts, taken, columns, liked_nodes),
        jobs=_jobs_in_the_way(ask, nodes, start, end),
    )


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


def _choose_groups(ask: Ask, counts: Indexes, liked: Indexes) -> Indexes:
    """Numbers of the fewest groups that hold the ask, with most preferred nodes, then with least left in them."""
    pieces = ask.per_group(ask.pieces(counts))
    fond = ask.per_group(np.minimum(liked, ask.piece_nodes) * (ask.pieces(counts) > 0) if ask.per_rack else liked)
    numbers = np.unique(ask.group)
    most_first = np.argsort(-pieces, kind="stable")
    fewest = int(np.searchsorted(np.cumsum(pieces[most_first]), ask.need)) + 1
    if fewest == 1:
        wanted = ask.need * ask.piece_nodes
        fits = [int(at) for at in np.flatnonzero(pieces >= ask.need)]
        ill = ask.per_group(_ill(ask))
        best = min(fits, key=lambda at: (-min(int(fond[at]), wanted), int(pieces[at]), int(ill[at]), at))
        return numbers[[best]]
    if len(pieces) * (fewest + 1) * (ask.need + int(pieces.max())) > MOST_CELLS:
        return numbers[_greedy_groups(pieces, most_first, fewest, ask.need)]
    return numbers[_tightest_groups(pieces, fond, fewest, ask.need)]


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


def _take_racks(ask: Ask, counts: Indexes, liked: Indexes, columns: Indexes) -> dict[int, int]:
    """Rack column -> nodes to take, for an ask of whole pieces: most preferred, tightest, healthiest, then name."""
    ill = _ill(ask)
    racks = ask.snapshot.topology.racks
    fits = [int(column) for column in columns if counts[column] >= ask.piece_nodes]
    fits.sort(
        key=lambda column: (
            -min(int(liked[column]), ask.piece_nodes),
            int(counts[column]),
            int(ill[column]),
            racks[ask.timeline.rack[column]].name,
        )
    )
    return dict.fromkeys(fits[: ask.need], ask.piece_nodes)


def _take_nodes(ask: Ask, counts: Indexes, liked: Indexes, columns: Indexes) -> dict[int, int]:
    """Rack column -> nodes to take, for an ask of single nodes: preferred nodes first, the rest from the fewest racks.

    The rest goes to racks already in use, then whole into the largest racks, and last into the tightest rack that takes
    what remains.
    """
    ill = _ill(ask)
    racks = ask.snapshot.topology.racks
    left, taken = ask.need, {}
    room = {int(column): int(counts[column]) for column in columns if counts[column]}
    name = {column: racks[ask.timeline.rack[column]].name for column in room}
    for column in sorted(room, key=lambda column: (-int(liked[column]), name[column])):
        part = min(left, int(liked[column]))
        if part:
            taken[column] = part
            room[column] -= part
            left -= part
    while left:
        open_racks = [column for column in room if room[column] and column in taken]
        open_racks = open_racks or [column for column in room if room[column]]
        enough = [column for column in open_racks if room[column] >= left]
        sign = 1 if enough else -1
        column = min(enough or open_racks, key=lambda column: (sign * room[column], int(ill[column]), name[column]))
        part = min(left, room[column])
        taken[column] = taken.get(column, 0) + part
        room[column] -= part
        left -= part
    return taken


def _positions(ask: Ask, column: int, masks: Masks) -> list[int]:
    """Positions inside the rack of the nodes set in its words."""
    words = masks[ask.timeline.first[column] : ask.timeline.first[column + 1]].tolist()
    return [at * WORD_BITS + bit for at, word in enumerate(words) for bit in range(WORD_BITS) if word >> bit & 1]


def _score(ask: Ask, counts: Indexes, taken: dict[int, int], columns: Indexes, liked_nodes: int) -> dict[str, int]:
    """The parts by which this placement won over the others at its start."""
    used = list(taken)
    whole = [column for column in columns.tolist() if counts[column] >= ask.flavor.nodes_per_rack]
    return {
        "blocks": len(np.unique(ask.group[used])),
        "preferred_nodes": liked_nodes,
        "left_whole_racks": sum(column not in taken for column in whole),
        "left_nodes": int(counts[used].sum()) - sum(taken.values()),
        "unhealthy_nodes": int(_ill(ask)[used].sum()),
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
