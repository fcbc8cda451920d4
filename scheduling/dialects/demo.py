"""What does the built-in example fleet look like? (one DesiredState, in which every dialect shows its words)

One organisation with a division of two teams and a team beside it, two flavors, a running reservation of a whole rack
and one to come.
"""

from scheduling.desired import DesiredFlavor, DesiredQuota, DesiredReservation, DesiredState, DesiredTeam

# 2027-01-05 08:00 UTC: eight hours into reservation R-131, a week before R-140.
AT_MINUTE = 29_985_600
_DAY = 24 * 60

_FLAVORS = (
    DesiredFlavor(
        name="gb200-nvl72",
        gpu_model="GB200",
        gpus_per_node=4,
        nodes_per_rack=18,
        gres_type="gb200",
        partition="nvl72",
        node_labels=(("nvidia.com/gpu.product", "NVIDIA-GB200"),),
    ),
    DesiredFlavor(
        name="h200-hgx8",
        gpu_model="H200",
        gpus_per_node=8,
        nodes_per_rack=4,
        gres_type="h200",
        partition="hgx",
        node_labels=(("nvidia.com/gpu.product", "NVIDIA-H200"),),
    ),
)

_TEAMS = (
    DesiredTeam("Observatory", "observatory"),
    DesiredTeam("Research", "research", "observatory", 60, (DesiredQuota("gb200-nvl72", 0, borrowing_limit_gpus=144),)),
    DesiredTeam(
        "Climate",
        "climate",
        parent="research",
        shares=40,
        quotas=(DesiredQuota("gb200-nvl72", 72, borrowing_limit_gpus=72), DesiredQuota("h200-hgx8", 16)),
    ),
    DesiredTeam(
        "Vision",
        "vision",
        parent="research",
        shares=20,
        quotas=(DesiredQuota("gb200-nvl72", 36, lending_limit_gpus=0), DesiredQuota("h200-hgx8", 32, 0)),
    ),
    DesiredTeam("Platform", "platform", "observatory", 10, (DesiredQuota("h200-hgx8", 8, borrowing_limit_gpus=8),)),
)


def demo_state(kind: str) -> DesiredState:
    """The example as the state of a cluster of this kind."""
    return DesiredState(
        cluster=f"demo-{kind}",
        kind=kind,
        installation="demo",
        generation=7,
        at_minute=AT_MINUTE,
        flavors=_FLAVORS,
        teams=_TEAMS,
        reservations=(
            DesiredReservation(
                id="R-131",
                flavor="gb200-nvl72",
                teams=("climate",),
                nodes=tuple(f"gb{number:03}" for number in range(1, 19)),
                spares=("gb018",),
                racks=("r01",),
                start_minute=AT_MINUTE - 480,
                end_minute=AT_MINUTE - 480 + 3 * _DAY,
            ),
            DesiredReservation(
                id="R-140",
                flavor="h200-hgx8",
                teams=("platform", "vision"),
                nodes=("hgx01", "hgx02", "hgx03", "hgx04"),
                racks=("h01",),
                start_minute=AT_MINUTE + 7 * _DAY,
                end_minute=AT_MINUTE + 8 * _DAY,
            ),
        ),
        pool_gpus=(("gb200-nvl72", 108), ("h200-hgx8", 72)),
        topology_levels=("block",),
        topology_labels=("topology.kubernetes.io/block", "nvidia.com/gpu.clique"),
    )
