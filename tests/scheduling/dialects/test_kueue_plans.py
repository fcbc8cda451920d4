"""Do plans for Kueue reach the desired state, and is no GPU promised twice at any single step?"""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.desired import DesiredFlavor, DesiredQuota, DesiredReservation, DesiredState, DesiredTeam
from scheduling.dialects import dialect
from scheduling.dialects.demo import demo_state
from scheduling.plan import diff
from scheduling.settle import settle
from tests.scheduling.dialects.kueue_server import KueueServer

KUEUE = dialect("kueue")
AT = 30_000_000
FLAVORS = (
    DesiredFlavor("gb", "GB200", 4, 4, node_labels=(("kind", "gb"),)),
    DesiredFlavor("hgx", "H200", 8, 4, node_labels=(("kind", "hgx"),)),
    DesiredFlavor("hgx-old", "H200", 8, 4, node_labels=(("kind", "old"),)),
)
NODES = {flavor.name: tuple(f"{flavor.name}-{number}" for number in range(8)) for flavor in FLAVORS}
HEALTHY = {flavor.name: 8 * flavor.gpus_per_node for flavor in FLAVORS}
TREES = (
    (("a", ""), ("b", "a"), ("c", "a")),
    (("a", ""), ("b", "a"), ("c", "b")),
    (("b", ""), ("a", "b"), ("c", "a")),
    (("a", ""), ("b", ""), ("c", "b")),
)
ELSEWHERE = {"key": "maintenance", "value": "soon", "effect": "NoSchedule"}


def server_with_nodes() -> KueueServer:
    return KueueServer({node: [dict(ELSEWHERE)] for nodes in NODES.values() for node in nodes})


def plan_for(state: DesiredState, server: KueueServer):
    observed = KUEUE.parse(server.answers(), installation=state.installation)
    settled = settle(state, observed)
    return diff(KUEUE.render(settled.desired, None), observed), settled


def push(state: DesiredState, server: KueueServer, steps: int | None = None):
    """Take the steps of one push, yielding each after it was taken."""
    for step in plan_for(state, server)[0].steps[:steps]:
        server.take(step)
        yield step


@st.composite
def states(draw):
    reservations = []
    reserved = dict.fromkeys(HEALTHY, 0)
    for number, flavor in enumerate(FLAVORS):
        if draw(st.booleans()):
            chosen = draw(st.sets(st.sampled_from(NODES[flavor.name]), min_size=1, max_size=4))
            reserved[flavor.name] = len(chosen) * flavor.gpus_per_node
            span = (f"R-{number}", flavor.name, ("b",), tuple(sorted(chosen)), AT - 10, AT + 10)
            reservations.append(DesiredReservation(*span))
    left = {name: HEALTHY[name] - reserved[name] for name in HEALTHY}
    limits = st.one_of(st.none(), st.integers(0, 9))
    teams = []
    for account, parent in draw(st.sampled_from(TREES)):
        quotas = []
        for flavor in FLAVORS:
            if draw(st.booleans()):
                guaranteed = draw(st.integers(0, left[flavor.name]))
                left[flavor.name] -= guaranteed
                quotas.append(DesiredQuota(flavor.name, guaranteed, draw(limits), draw(limits)))
        teams.append(DesiredTeam(account, account, parent, draw(st.integers(1, 9)), tuple(quotas)))
    return DesiredState(
        "luna",
        "kueue",
        "x",
        1,
        AT,
        flavors=FLAVORS,
        teams=tuple(teams),
        reservations=tuple(reservations),
        pool_gpus=tuple(left.items()),
        topology_labels=("block", "rack"),
    )


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=states(), after=states(), cut=st.integers(0, 12))
def test_no_step_of_any_plan_promises_more_than_is_healthy_and_every_plan_arrives(before, after, cut):
    server = server_with_nodes()
    base = {f"rsv-r-{number}": flavor.name for number, flavor in enumerate(FLAVORS)}
    for state, steps in ((before, None), (after, cut), (after, None)):
        for step in push(state, server, steps):
            promised = server.promised(base)
            assert all(promised.get(name, 0) <= HEALTHY[name] for name in HEALTHY), step
    plan, settled = plan_for(after, server)
    assert plan.is_empty and not settled.converging
    assert all(ELSEWHERE in node["spec"]["taints"] for node in server.kept["Node"].values())


def test_nodes_are_fenced_before_the_queue_opens_and_the_pool_is_lowered_before_both():
    state = demo_state("kueue")
    before = replace(
        state, at_minute=state.reservations[0].start_minute - 1, pool_gpus=(("gb200-nvl72", 180), ("h200-hgx8", 72))
    )
    server = KueueServer({node: [] for reservation in state.reservations for node in reservation.nodes})
    list(push(before, server))
    words = [f"{step.verb} {step.object_class} {step.name}" for step in push(state, server)]
    assert words[0] == "update Cohort observatory-gb200"
    assert words[1:19] == [f"create Node gb{number:03}" for number in range(1, 19)]
    assert words[19:] == [
        "create ResourceFlavor rsv-r-131",
        "create ClusterQueue rsv-r-131",
        "create LocalQueue climate/rsv-r-131",
    ]


def test_at_the_end_the_queue_goes_then_the_fences_then_the_pool_is_raised_and_the_flavor_goes_last():
    state = demo_state("kueue")
    server = KueueServer({node: [] for reservation in state.reservations for node in reservation.nodes})
    list(push(state, server))
    over = replace(state, reservations=state.reservations[1:], pool_gpus=(("gb200-nvl72", 180), ("h200-hgx8", 72)))
    words = [f"{step.verb} {step.object_class} {step.name}" for step in push(over, server)]
    assert words == [
        "delete LocalQueue climate/rsv-r-131",
        "delete ClusterQueue rsv-r-131",
        *[f"delete Node gb{number:03}" for number in range(1, 19)],
        "update Cohort observatory-gb200",
        "delete ResourceFlavor rsv-r-131",
    ]


def test_a_reservation_whose_nodes_still_run_work_stays_closed_and_says_on_what_it_waits():
    state = demo_state("kueue")
    server = KueueServer({node: [] for reservation in state.reservations for node in reservation.nodes})
    server.run_pod("big-job-0", "gb004")
    plan, settled = plan_for(state, server)
    assert not any(step.name == "rsv-r-131" or step.object_class == "Node" for step in plan.steps)
    (waiting,) = settled.converging
    assert waiting.reservation == "R-131"
    assert waiting.sentence == (
        "R-131 was to open on 2027-01-05 at 00:00 UTC; 1 of its 18 nodes still run other work: gb004 "
        "(somewhere/big-job-0)."
    )
    server.kept["Pod"].clear()
    list(push(state, server))
    assert not plan_for(state, server)[1].converging


def test_an_open_reservation_keeps_its_nodes_while_one_more_is_still_busy():
    state = demo_state("kueue")
    server = KueueServer(
        {f"gb{number:03}": [] for number in range(1, 37)} | {f"hgx0{number}": [] for number in range(1, 5)}
    )
    list(push(state, server))
    first, second = state.reservations
    swapped = replace(first, nodes=(*first.nodes[1:], "gb036"))
    server.run_pod("theirs", "gb036")
    server.run_pod("ours", "gb001")
    plan, settled = plan_for(replace(state, reservations=(swapped, second)), server)
    assert [(step.verb, step.object_class, step.name) for step in plan.steps] == [
        ("update", "ClusterQueue", "rsv-r-131"),
        ("update", "Cohort", "observatory-gb200"),
    ]
    assert [each.reservation for each in settled.converging] == ["R-131", "R-131"]
    assert "gb001" in settled.converging[1].sentence and ("Node", "gb001") in settled.desired.keep


def test_a_fence_with_work_inside_stays_and_its_gpus_are_promised_to_nobody():
    state = demo_state("kueue")
    server = KueueServer({node: [] for reservation in state.reservations for node in reservation.nodes})
    list(push(state, server))
    server.run_pod("last-one", "gb007")
    over = replace(state, reservations=state.reservations[1:], pool_gpus=(("gb200-nvl72", 180), ("h200-hgx8", 72)))
    list(push(over, server))
    assert server.kept["Node"]["gb007"]["metadata"]["labels"]["berth.local/reservation"] == "r-131"
    assert "rsv-r-131" in server.kept["ResourceFlavor"] and "rsv-r-131" not in server.kept["ClusterQueue"]
    pool = server.kept["Cohort"]["observatory-gb200"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert pool["nominalQuota"] == "176"
    server.kept["Pod"].clear()
    list(push(over, server))
    assert "rsv-r-131" not in server.kept["ResourceFlavor"]
    assert pool != server.kept["Cohort"]["observatory-gb200"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]


def test_the_next_reservation_of_the_same_nodes_waits_for_the_work_of_the_one_before():
    state = demo_state("kueue")
    server = KueueServer({node: [] for reservation in state.reservations for node in reservation.nodes})
    list(push(state, server))
    server.run_pod("last-one", "gb007")
    first = state.reservations[0]
    following = replace(first, id="R-150", start_minute=first.end_minute, end_minute=first.end_minute + 60)
    later = replace(state, at_minute=first.end_minute, reservations=(following,))
    settled = plan_for(later, server)[1]
    assert settled.desired.pool_gpus == later.pool_gpus  # lowered already, by the one that follows
    assert {each.reservation for each in settled.converging} == {"R-131", "R-150"}
    list(push(later, server))
    server.kept["Pod"].clear()
    list(push(later, server))
    assert plan_for(later, server)[0].is_empty
    assert server.kept["Node"]["gb007"]["metadata"]["labels"]["berth.local/reservation"] == "r-150"


def test_settling_changes_nothing_on_a_scheduler_with_a_calendar():
    state = demo_state("slurm")
    observed = KUEUE.parse(server_with_nodes().answers(), installation="demo")
    assert settle(state, observed).desired is state


def test_what_is_already_terminating_is_not_deleted_again_and_converges():
    state = demo_state("kueue")
    server = KueueServer({node: [] for reservation in state.reservations for node in reservation.nodes})
    list(push(state, server))
    server.kept["ClusterQueue"]["rsv-r-131"]["metadata"]["deletionTimestamp"] = "2027-01-08T00:00:10Z"
    over = replace(state, reservations=state.reservations[1:])
    plan, settled = plan_for(over, server)
    assert "rsv-r-131" not in {step.name for step in plan.steps if step.object_class == "ClusterQueue"}
    assert any("ClusterQueue rsv-r-131" in each.sentence for each in settled.converging)
