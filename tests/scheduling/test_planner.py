"""Does the planner do what people are told it does? (the rules, one small fleet at a time)"""

from dataclasses import replace

import pytest

from scheduling.answers import Placement, Refusal
from scheduling.feasibility import check, earliest, find, next_free, strip
from scheduling.snapshot import Busy, FleetSnapshot
from scheduling.spec import ReservationSpec, SpecError
from scheduling.topology import FlavorShape, NodeMasks, RackShape, Topology, TopologyError

NOW = 30_000_000
DAY = 24 * 60
FULL = FlavorShape("gb200-nvl72", 4, 18)


def rack(name: str, block: str | None = "b1", nodes: int = 18, **given: object) -> RackShape:
    return RackShape(name, FULL.name, tuple(f"{name}-{at:02}" for at in range(nodes)), (block,), **given)  # type: ignore[arg-type]


def fleet(
    racks: list[RackShape], *busy: Busy, unhealthy: tuple[str, ...] = (), ends: int | None = None
) -> FleetSnapshot:
    topology = Topology.build(("block",), [FULL], racks)
    return FleetSnapshot.build("sol", NOW, topology, unhealthy, busy, ends)


def ask(**given: object) -> ReservationSpec:
    return ReservationSpec(**{"flavor": FULL.name, "duration_minutes": 3 * DAY, **given})  # type: ignore[arg-type]


def found(answer: Placement | Refusal) -> Placement:
    assert isinstance(answer, Placement), answer
    return answer


def refused(answer: Placement | Refusal) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def codes(answer: Placement | Refusal) -> list[str]:
    return [reason.code for reason in refused(answer).reasons]


def test_a_drained_node_is_never_held() -> None:
    snapshot = fleet([rack("r1"), rack("r2")], unhealthy=("r1-03",))
    placement = found(find(snapshot, ask(racks=2, nodes_per_rack=17)))
    assert "r1-03" not in placement.nodes
    assert len(placement.nodes) == 34


def test_racks_with_16_17_and_18_healthy_nodes_each_satisfy_what_they_can() -> None:
    racks = [rack("r16"), rack("r17"), rack("r18")]
    snapshot = fleet(racks, unhealthy=("r16-00", "r16-01", "r17-00"))
    assert found(find(snapshot, ask(racks=3, nodes_per_rack=16))).racks == ("r16", "r17", "r18")
    assert found(find(snapshot, ask(racks=2, nodes_per_rack=16, spare_nodes=1))).racks == ("r17", "r18")
    assert found(find(snapshot, ask(racks=1))).racks == ("r18",)
    assert codes(find(snapshot, ask(racks=2))) == ["unhealthy"]


def test_the_tightest_rack_is_taken_so_that_whole_racks_stay_free() -> None:
    snapshot = fleet([rack("r1"), rack("r2")], unhealthy=("r2-00",))
    assert found(find(snapshot, ask(racks=1, nodes_per_rack=17))).racks == ("r2",)
    assert found(find(snapshot, ask(nodes=5))).racks == ("r2",)


def test_spares_lie_beyond_the_working_nodes_in_the_same_rack() -> None:
    placement = found(find(fleet([rack("r1"), rack("r2")]), ask(racks=2, nodes_per_rack=17, spare_nodes=1)))
    assert placement.spares == ("r1-17", "r2-17")
    assert len(placement.nodes) == 36
    assert len(placement.working_nodes) == 34


def test_the_fewest_blocks_win_and_of_those_the_one_with_the_least_left() -> None:
    racks = [rack(f"a{at}", "b1") for at in range(4)] + [rack(f"b{at}", "b2") for at in range(2)]
    racks += [rack("c1", "b3")]
    placement = found(find(fleet(racks), ask(racks=2)))
    assert placement.racks == ("b0", "b1")
    assert placement.score["blocks"] == 1
    assert found(find(fleet(racks), ask(racks=5))).racks == ("a0", "a1", "a2", "a3", "c1")


def test_a_rack_whose_block_is_unknown_is_adjacent_to_nothing() -> None:
    racks = [rack("r1", None), rack("r2", None), rack("r3", "b1")]
    assert codes(find(fleet(racks), ask(racks=2, same_block=True))) == ["never_possible"]
    assert found(find(fleet(racks), ask(racks=1, same_block=True))).racks == ("r1",)
    assert found(find(fleet(racks), ask(racks=2))).score["blocks"] == 2


def test_nodes_without_topology_serve_asks_for_nodes_and_never_asks_for_racks() -> None:
    snapshot = fleet([RackShape("", FULL.name, tuple(f"x{at}" for at in range(40)))])
    assert codes(find(snapshot, ask(racks=1))) == ["never_possible"]
    placement = found(find(snapshot, ask(nodes=20)))
    assert placement.racks == ()
    assert len(placement.nodes) == 20


def test_a_rack_over_64_nodes_is_one_rack_to_every_caller() -> None:
    long = FlavorShape("long", 8, 130)
    names = tuple(f"n{at:03}" for at in range(130))
    topology = Topology.build((), [long], [RackShape("r1", "long", names)])
    snapshot = FleetSnapshot.build("sol", NOW, topology)
    assert found(find(snapshot, ask(flavor="long", racks=1))).nodes == names
    held = snapshot.with_hold("R-1", names[100:101], NOW, NOW + DAY)
    assert found(find(held, ask(flavor="long", racks=1))).start_minute == NOW + DAY
    assert found(find(held, ask(flavor="long", racks=1, nodes_per_rack=129))).start_minute == NOW


def test_gpus_round_up_to_whole_nodes() -> None:
    assert len(found(find(fleet([rack("r1")]), ask(gpus=9))).nodes) == 3


def test_a_job_without_an_end_blocks_for_ever_and_one_past_its_end_for_a_minute() -> None:
    endless = fleet([rack("r1")], Busy("job", "7", ["r1-00"], NOW - 5))
    reason = refused(find(endless, ask(racks=1))).reasons[0]
    assert (reason.code, reason.until_minute) == ("running_job", None)
    late = fleet([rack("r1")], Busy("job", "7", ["r1-00"], NOW - 50, NOW - 20))
    assert found(find(late, ask(racks=1))).start_minute == NOW + 1


def test_an_ask_that_ignores_jobs_names_those_in_its_way() -> None:
    snapshot = fleet([rack("r1")], Busy("job", "7", ["r1-00"], NOW - 5), Busy("job", "8", ["r1-01"], NOW, NOW + 1))
    placement = found(find(snapshot, ask(racks=1, ignore_jobs=True, earliest_start_minute=NOW + 5)))
    assert placement.jobs == ("7",)


def test_a_start_is_never_before_now() -> None:
    assert found(find(fleet([rack("r1")]), ask(racks=1, earliest_start_minute=NOW - DAY))).start_minute == NOW


def test_the_start_is_the_minute_at_which_the_last_thing_in_the_way_ends() -> None:
    snapshot = fleet([rack("r1")], Busy("reservation", "R-1", ["r1-04"], NOW + 10, NOW + 777))
    assert found(find(snapshot, ask(racks=1))).start_minute == NOW + 777
    assert found(find(snapshot, ask(racks=1, duration_minutes=10))).start_minute == NOW


def test_turnaround_keeps_reservations_apart_but_not_from_jobs_and_outages() -> None:
    padded = Topology.build(("block",), [replace(FULL, turnaround_minutes=30)], [rack("r1")])
    busy = [Busy("reservation", "R-1", ["r1-00"], NOW + 100, NOW + 200)]
    snapshot = FleetSnapshot.build("sol", NOW, padded, busy=busy)
    assert found(find(snapshot, ask(racks=1, duration_minutes=70))).start_minute == NOW
    assert found(find(snapshot, ask(racks=1, duration_minutes=71))).start_minute == NOW + 230
    outage = FleetSnapshot.build("sol", NOW, padded, busy=[replace(busy[0], kind="outage")])
    assert found(find(outage, ask(racks=1, duration_minutes=100))).start_minute == NOW


def test_nvlink_is_taken_as_the_ask_says() -> None:
    racks = [rack("r1", nvlink="degraded"), rack("r2", nvlink="broken")]
    reason = refused(find(fleet(racks), ask(racks=1))).reasons[0]
    assert (reason.code, [cause.id for cause in reason.by]) == ("nvlink_unhealthy", ["r1"])
    assert found(find(fleet(racks), ask(racks=1, nvlink="degraded_ok"))).racks == ("r1",)
    assert found(find(fleet(racks), ask(racks=2, nvlink="not_needed"))).racks == ("r1", "r2")


def test_a_rack_is_used_only_while_it_is_there() -> None:
    racks = [rack("r1", from_minute=NOW + DAY, until_minute=NOW + 10 * DAY)]
    assert found(find(fleet(racks), ask(racks=1))).start_minute == NOW + DAY
    assert codes(find(fleet(racks), ask(racks=1, latest_end_minute=NOW + 3 * DAY))) == ["not_yet_delivered"]
    late = ask(racks=1, earliest_start_minute=NOW + 8 * DAY)
    assert codes(find(fleet(racks), late)) == ["contract_ends"]


def test_nothing_is_placed_beyond_the_contract_of_the_cluster() -> None:
    answer = refused(find(fleet([rack("r1")], ends=NOW + DAY), ask(racks=1)))
    assert [reason.code for reason in answer.reasons] == ["contract_ends"]
    assert "the contract of sol ends" in answer.reasons[0].sentence


def test_a_window_that_is_too_short_says_by_how_much_and_comes_alone() -> None:
    answer = refused(find(fleet([rack("r1")]), ask(racks=1, latest_end_minute=NOW + 2 * DAY)))
    assert [(reason.code, reason.missing, reason.unit) for reason in answer.reasons] == [
        ("window_too_short", DAY, "minutes")
    ]
    assert {offer.kind for offer in answer.alternatives} == {"later", "shorter"}


def test_a_fragmented_block_is_named_beside_what_stands_in_it() -> None:
    racks = [rack("a1", "b1"), rack("a2", "b1"), rack("c1", "b2"), rack("c2", "b2")]
    holds = [Busy("reservation", f"R-{name}", [f"{name}-00"], NOW, NOW + 9 * DAY) for name in ("a1", "c1")]
    answer = find(fleet(racks, *holds), ask(racks=2, same_block=True, latest_end_minute=NOW + 4 * DAY))
    assert codes(answer) == ["block_fragmented", "rack_held"]
    reason = refused(answer).reasons[1]
    assert [cause.id for cause in reason.by] == ["R-a1"]
    split = next(offer for offer in refused(answer).alternatives if offer.kind == "split")
    assert (split.spec.same_block, split.spec.max_blocks, split.placement.racks) == (False, 2, ("a2", "c2"))


def test_preferred_racks_and_nodes_win_over_a_tighter_fit() -> None:
    snapshot = fleet([rack("r1"), rack("r2", nodes=18), rack("r3")], unhealthy=("r1-00",))
    spec = ask(racks=1, nodes_per_rack=17, prefer_racks=("r3",))
    assert found(find(snapshot, spec)).racks == ("r3",)
    assert found(find(snapshot, ask(nodes=2, prefer=("r2-07", "r3-01")))).nodes == ("r2-07", "r3-01")


def test_a_minimum_takes_the_earliest_start_at_which_it_fits_and_there_as_much_as_there_is() -> None:
    snapshot = fleet([rack("r1"), rack("r2"), rack("r3")], Busy("outage", "M-1", ["r3-00"], NOW, NOW + DAY))
    placement = found(find(snapshot, ask(racks=3, min=1)))
    assert (placement.start_minute, placement.racks) == (NOW, ("r1", "r2"))
    assert check(snapshot, ask(racks=3, min=1), placement) is None
    assert check(snapshot.with_hold("R-1", ["r2-00"], NOW, NOW + 1), ask(racks=3, min=1), placement) is not None
    assert found(find(snapshot, ask(racks=3))).start_minute == NOW + DAY
    with pytest.raises(SpecError, match="min: must be at most what is asked, 2, is 3"):
        find(snapshot, ask(racks=2, min=3))


def test_what_is_avoided_is_not_used() -> None:
    snapshot = fleet([rack("r1"), rack("r2"), rack("r3")])
    assert found(find(snapshot, ask(racks=1, avoid_racks=("r1",), avoid=("r2-00",)))).racks == ("r3",)
    assert codes(find(snapshot, ask(racks=3, avoid_racks=("r1",)))) == ["never_possible"]


def test_a_reservation_that_may_move_is_offered_to_move() -> None:
    request = ask(racks=1, latest_end_minute=NOW + 20 * DAY)
    held = Busy("reservation", "R-5", ["r1-00"], NOW, NOW + 3 * DAY, provisional=True, request=request)
    answer = find(fleet([rack("r1")], held), ask(racks=1, latest_end_minute=NOW + 3 * DAY))
    move = next(offer for offer in refused(answer).alternatives if offer.kind == "move")
    assert move.placement.start_minute == NOW
    assert [(each.reservation, each.placement.start_minute) for each in move.moves] == [("R-5", NOW + 3 * DAY)]


def test_another_flavor_is_offered_with_as_many_gpus() -> None:
    other = FlavorShape("h200-hgx8", 8, 8)
    racks = [rack("r1"), *(RackShape(f"h{at}", other.name, tuple(f"h{at}-{n}" for n in range(8))) for at in range(2))]
    topology = Topology.build(("block",), [FULL, other], racks)
    snapshot = FleetSnapshot.build("sol", NOW, topology, unhealthy=["r1-00"])
    answer = refused(find(snapshot, ask(racks=1)))
    offer = next(offer for offer in answer.alternatives if offer.kind == "other_flavor")
    assert (offer.spec.flavor, offer.spec.racks) == ("h200-hgx8", 2)  # 72 GPUs are 9 nodes of 8: two racks of 64


def test_another_cluster_is_offered_the_same_spec() -> None:
    full = fleet([rack("r1")], unhealthy=("r1-00",))
    answer = refused(find(full, ask(racks=1), others=[replace(fleet([rack("r9")]), cluster="luna")]))
    offer = next(offer for offer in answer.alternatives if offer.kind == "other_cluster")
    assert (offer.placement.cluster, offer.placement.racks) == ("luna", ("r9",))


def test_check_says_what_came_in_the_way_of_a_placement_or_that_its_time_is_over() -> None:
    snapshot, spec = fleet([rack("r1"), rack("r2")]), ask(racks=1)
    placement = found(find(snapshot, spec))
    assert check(snapshot, spec, placement) is None
    taken = snapshot.with_hold("R-9", ["r1-00"], NOW + DAY, NOW + 2 * DAY)
    refusal = check(taken, spec, placement)
    assert refusal is not None
    assert [(reason.code, reason.by[0].id) for reason in refusal.reasons] == [("rack_held", "R-9")]
    assert check(taken.without("reservation", "R-9"), spec, placement) is None
    assert check(replace(snapshot, now_minute=NOW + DAY), spec, placement) is None
    over = check(replace(snapshot, now_minute=placement.end_minute), spec, placement)
    assert over is not None
    assert over.reasons[0].code == "window_too_short"


def test_a_placement_on_a_node_that_is_gone_does_not_stand() -> None:
    spec = ask(racks=2)
    placement = found(find(fleet([rack("r1"), rack("r2")]), spec))
    refusal = check(fleet([rack("r1"), rack("r2", nodes=17)]), spec, placement)
    assert refusal is not None
    assert [reason.code for reason in refusal.reasons] == ["never_possible"]


def test_earliest_and_next_free_look_beyond_the_window() -> None:
    snapshot = fleet([rack("r1")], Busy("reservation", "R-1", ["r1-00"], NOW, NOW + 50 * DAY))
    spec = ask(racks=1, latest_end_minute=NOW + 4 * DAY)
    assert codes(find(snapshot, spec)) == ["rack_held"]
    assert found(earliest(snapshot, spec)).start_minute == next_free(snapshot, spec) == NOW + 50 * DAY
    assert next_free(fleet([rack("r1")], unhealthy=("r1-00",)), spec) is None


def test_the_strip_tells_day_by_day_how_much_could_start() -> None:
    snapshot = fleet([rack("r1"), rack("r2")], Busy("reservation", "R-1", ["r1-00"], NOW + 2 * DAY, NOW + 5 * DAY))
    bars = strip(snapshot, ask(racks=2, duration_minutes=DAY, latest_end_minute=NOW + 2 * DAY), 6)
    assert [bar.size for bar in bars] == [2, 2, 1, 1, 1, 2]
    assert [bar.fits for bar in bars] == [True, True, False, False, False, True]
    assert bars[5].best_start_minute == NOW + 5 * DAY


def test_masks_survive_the_way_through_signed_columns() -> None:
    names = tuple(f"n{at}" for at in range(64))
    topology = Topology.build((), [FlavorShape("f", 8, 64)], [RackShape("r1", "f", names)])
    masks = topology.masks(["n63", "n0"])
    signed = [int(value) - 2**64 if value >= 2**63 else int(value) for value in masks.mask.tolist()]
    again = NodeMasks.of(masks.rack.tolist(), masks.word.tolist(), signed)
    assert topology.names(again) == ("n0", "n63")
    assert len(again) == 2


@pytest.mark.parametrize(
    ("racks", "sentence"),
    [
        ([rack("r1"), RackShape("r2", FULL.name, ("r1-00",))], "node r1-00 is in rack r1 and in rack r2"),
        ([rack("r1"), rack("r1", nodes=0)], "rack r1 is listed twice"),
        ([RackShape("r1", "h100", ())], "rack r1 is of unknown flavor h100"),
        ([RackShape("r1", FULL.name, (), ("b1", "hall", "city"))], "rack r1 names 3 levels of 1"),
    ],
)
def test_an_inventory_that_contradicts_itself_is_refused(racks: list[RackShape], sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        Topology.build(("block",), [FULL], racks)


def test_a_flavor_the_cluster_does_not_have_is_an_error_of_the_ask() -> None:
    with pytest.raises(SpecError, match="sol has no flavor h100"):
        find(fleet([rack("r1")]), ask(flavor="h100", racks=1))
