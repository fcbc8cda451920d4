"""Does the planner decide as a slow and obvious one does, on any small fleet?"""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.answers import Placement, Refusal
from scheduling.feasibility import check, find, strip
from scheduling.snapshot import Busy, FleetSnapshot
from scheduling.spec import ReservationSpec
from scheduling.topology import FlavorShape, RackShape, Topology
from tests.scheduling import planner_referee as referee
from tests.scheduling.planner_referee import PlainFleet

NOW = 1000
SPAN = 40  # minutes of the window and of everything busy: small, so that things meet
KEPT = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def snapshot_of(fleet: PlainFleet) -> FleetSnapshot:
    levels = max((len(rack.levels) for rack in fleet.racks), default=0)
    topology = Topology.build(("block", "hall")[:levels], fleet.flavors, fleet.racks)
    return FleetSnapshot.build("sol", fleet.now, topology, fleet.unhealthy, fleet.busy, fleet.contract_ends)


@st.composite
def fleets(draw: st.DrawFn) -> PlainFleet:
    turnaround = draw(st.sampled_from([0, 0, 0, 3]))
    flavors = (FlavorShape("nvl", 4, 3, turnaround), FlavorShape("hgx", 8, 2))
    racks = []
    for number in range(draw(st.integers(1, 6))):
        name = f"r{number}" if draw(st.integers(0, 9)) else ""
        flavor = draw(st.sampled_from(["nvl", "nvl", "nvl", "hgx"]))
        nodes = tuple(f"n{number}-{at}" for at in range(draw(st.sampled_from([3, 3, 2, 1, 70]))))
        racks.append(
            RackShape(
                name,
                flavor,
                nodes,
                (draw(st.sampled_from(["b1", "b1", "b2", "b3", None])),) if name else (None,),
                draw(st.sampled_from(["ok", "ok", "ok", "ok", "degraded", "broken"])),
                draw(st.sampled_from([None, None, None, NOW + 10])),
                draw(st.sampled_from([None, None, None, NOW + 30])),
            )
        )
    every = [node for rack in racks for node in rack.nodes]
    some = st.lists(st.sampled_from(every), max_size=4, unique=True)
    busy = []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["reservation", "reservation", "outage", "job"]))
        whole = draw(st.sampled_from(racks)).nodes
        nodes = draw(st.one_of(st.just(whole), some.map(tuple)))
        start = NOW + draw(st.integers(-5, SPAN))
        end: int | None = start + draw(st.integers(1, SPAN))
        if kind == "job":
            start, end = NOW - 5, draw(st.one_of(st.none(), st.integers(NOW - 3, NOW + SPAN)))
        busy.append(Busy(kind, f"{kind[0]}{draw(st.integers(0, 3))}-{number // 2}", nodes, start, end))  # type: ignore[arg-type]
    contract = draw(st.sampled_from([None, None, None, None, NOW + 25]))
    return PlainFleet(NOW, flavors, tuple(racks), frozenset(draw(some)), tuple(busy), contract)


@st.composite
def specs(draw: st.DrawFn, fleet: PlainFleet) -> ReservationSpec:
    every = [node for rack in fleet.racks for node in rack.nodes]
    kind = draw(st.sampled_from(["racks", "racks", "nodes", "gpus"]))
    number = draw(st.integers(1, {"racks": 4, "nodes": 9, "gpus": 40}[kind]))
    shape: dict[str, int] = {kind: number}
    if kind == "racks":
        shape["spare_nodes"] = draw(st.sampled_from([0, 0, 1]))
        if draw(st.booleans()):
            shape["nodes_per_rack"] = draw(st.integers(1, 3))
    earliest = draw(st.one_of(st.none(), st.integers(NOW - 5, NOW + 15)))
    return ReservationSpec(
        flavor=draw(st.sampled_from(["nvl", "nvl", "nvl", "hgx"])),
        duration_minutes=draw(st.integers(1, 25)),
        same_block=draw(st.sampled_from([False, False, True])),
        max_blocks=draw(st.sampled_from([None, None, 1, 2])),
        avoid=tuple(draw(st.lists(st.sampled_from(every), max_size=2))),
        prefer=tuple(draw(st.lists(st.sampled_from(every), max_size=2))),
        avoid_racks=tuple(draw(st.lists(st.sampled_from(["r0", "r1", "elsewhere"]), max_size=1))),
        prefer_racks=tuple(draw(st.lists(st.sampled_from(["r1", "r2"]), max_size=1))),
        earliest_start_minute=earliest,
        latest_end_minute=NOW + SPAN + draw(st.integers(-25, 10)),
        ignore_jobs=draw(st.sampled_from([False, False, True])),
        min=draw(st.one_of(st.none(), st.none(), st.integers(1, number))),
        nvlink=draw(st.sampled_from(["full", "full", "degraded_ok", "not_needed"])),
        **shape,
    ).checked()


asks = fleets().flatmap(lambda fleet: st.tuples(st.just(fleet), specs(fleet)))


def stands(fleet: PlainFleet, spec: ReservationSpec, placement: Placement) -> None:
    """Assert that a placement is what the spec asks for and lies on free nodes only."""
    _, each = referee.size(fleet, spec)
    had = min(referee.wanted(fleet, spec), referee.pieces(fleet, spec, placement.start_minute))
    free = referee.free_nodes(fleet, spec, placement.start_minute)
    held = set(placement.nodes)
    assert len(held) == len(placement.nodes) == had * each
    assert held <= set().union(*free.values())
    assert placement.start_minute in referee.starts(fleet, spec)
    assert placement.end_minute == placement.start_minute + spec.duration_minutes
    per_rack = {rack: held & set(rack.nodes) for rack in free if held & set(rack.nodes)}
    assert placement.racks == tuple(sorted(rack.name for rack in per_rack if rack.name))
    assert any(set(per_rack) <= set(racks) for racks in referee.block_sets(fleet, spec))
    if spec.racks is not None:
        assert all(len(nodes) == each for nodes in per_rack.values())
        assert all(len(nodes & set(placement.spares)) == spec.spare_nodes for nodes in per_rack.values())
    assert set(placement.spares) <= held


@KEPT
@given(asks)
def test_feasibility_and_the_earliest_start_are_those_of_the_referee(ask: tuple[PlainFleet, ReservationSpec]) -> None:
    fleet, spec = ask
    answer = find(snapshot_of(fleet), spec)
    expected = referee.earliest(fleet, spec)
    if expected is None:
        assert isinstance(answer, Refusal)
    else:
        assert isinstance(answer, Placement)
        assert answer.start_minute == expected
        stands(fleet, spec, answer)


@KEPT
@given(asks)
def test_a_placement_is_checked_to_stand_until_something_takes_one_of_its_nodes(
    ask: tuple[PlainFleet, ReservationSpec],
) -> None:
    fleet, spec = ask
    snapshot = snapshot_of(fleet)
    answer = find(snapshot, spec, explained=False)
    if isinstance(answer, Placement):
        assert check(snapshot, spec, answer) is None
        last = answer.end_minute - 1
        taken = snapshot.with_hold("R-new", answer.nodes[-1:], last, last + 1)
        refusal = check(taken, spec, answer)
        assert refusal is not None
        assert [cause.id for reason in refusal.reasons for cause in reason.by] == ["R-new"]


@KEPT
@given(asks, st.data())
def test_another_hold_never_makes_an_ask_fit_or_start_earlier(
    ask: tuple[PlainFleet, ReservationSpec], data: st.DataObject
) -> None:
    fleet, spec = ask
    every = [node for rack in fleet.racks for node in rack.nodes]
    nodes = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    start = data.draw(st.integers(NOW, NOW + SPAN))
    before = find(snapshot_of(fleet), spec, explained=False)
    after = find(snapshot_of(fleet).with_hold("R-new", nodes, start, start + 9), spec, explained=False)
    if isinstance(after, Placement):
        assert isinstance(before, Placement)
        assert before.start_minute <= after.start_minute


@KEPT
@given(asks)
def test_reasons_are_true_minimal_and_speak_of_the_nearest_miss(ask: tuple[PlainFleet, ReservationSpec]) -> None:
    fleet, spec = ask
    answer = find(snapshot_of(fleet), spec, explained=False)
    if isinstance(answer, Placement):
        return
    codes = [reason.code for reason in answer.reasons]
    assert codes and len(set(codes)) == len(codes)
    window = referee.starts(fleet, spec)
    never = referee.nodes_missing(fleet, spec, NOW) is None
    if never or not window:
        assert codes == ["never_possible" if never else "window_too_short"]
        return
    missing = [referee.nodes_missing(fleet, spec, start) for start in window]
    start = window[missing.index(min(missing))]  # type: ignore[type-var]
    assert {reason.start_minute for reason in answer.reasons} == {start}
    things = [(reason.code, cause.kind, cause.id) for reason in answer.reasons for cause in reason.by]
    assert len(set(things)) == len(things)
    ends = any("the contract of" in reason.sentence for reason in answer.reasons)
    bare = replace(fleet, contract_ends=None) if ends else fleet
    assert referee.fits(referee.without_all(bare, things), spec, start)
    for thing in things:
        others = [other for other in things if other != thing]
        assert not referee.fits(referee.without_all(bare, others), spec, start), thing
    if ends:
        assert not referee.fits(referee.without_all(fleet, things), spec, start)
    if "block_fragmented" in codes:
        assert referee.fits(fleet, replace(spec, same_block=False, max_blocks=None), start)


@KEPT
@given(asks)
def test_every_alternative_was_itself_found_to_fit(ask: tuple[PlainFleet, ReservationSpec]) -> None:
    fleet, spec = ask
    answer = find(snapshot_of(fleet), spec)
    if isinstance(answer, Placement):
        return
    assert len(answer.alternatives) <= 5
    assert len({(offer.spec, offer.placement.cluster) for offer in answer.alternatives}) == len(answer.alternatives)
    for offer in answer.alternatives:
        assert offer.spec != spec
        stands(fleet, offer.spec.checked(), offer.placement)
        assert referee.earliest(fleet, offer.spec) is not None


@KEPT
@given(asks)
def test_the_strip_shows_the_largest_size_of_each_day(ask: tuple[PlainFleet, ReservationSpec]) -> None:
    fleet, spec = ask
    bar = strip(snapshot_of(fleet), spec, 1)[0]
    need, _ = referee.size(fleet, spec)
    first = referee.starts(fleet, replace(spec, latest_end_minute=None)).start
    assert bar.start_minute == first
    sizes = [referee.pieces(fleet, spec, start) for start in range(first, first + 2 * SPAN)]
    full = referee.wanted(fleet, spec)
    most = min(max(sizes), full)
    worth = {"racks": 1, "nodes": 1, "gpus": 4 if spec.flavor == "nvl" else 8}
    unit = next(key for key in worth if getattr(spec, key) is not None)
    assert bar.size == min(most * worth[unit], getattr(spec, unit))
    assert bar.fits == (most >= need)
    assert min(referee.pieces(fleet, spec, bar.best_start_minute), full) == most
