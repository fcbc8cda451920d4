"""How does the team tree become one cohort tree per GPU model? (teams and quotas -> Cohorts and ClusterQueues)

A team with children is a group: a Cohort with its borrowing limit and no quota of its own, and below it a ClusterQueue
for what the team holds itself. A team without children is a ClusterQueue. The one root team's Cohort holds the common
pool; where a cluster sees several teams without a parent, a Cohort `berth-<gpu_model>` stands above them.
"""

from collections.abc import Iterator
from typing import Any

from scheduling.desired import DesiredFlavor, DesiredQuota, DesiredState, DesiredTeam
from scheduling.dialects.errors import NameClash, UnknownReference
from scheduling.dialects.kueue.names import namespace_name, team_name
from scheduling.dialects.kueue.objects import BORROWING, LENDING, NOMINAL

Drawn = tuple[str, str, dict[str, Any]]
_ABOVE_ALL = "berth"


class TeamTree:
    """The teams of one state by account, with their children; checked: parents are there, nobody is below itself."""

    def __init__(self, desired: DesiredState) -> None:
        self.teams: dict[str, DesiredTeam] = {}
        for team in desired.teams:
            if team.account in self.teams:
                raise NameClash("account", team.account)
            self.teams[team.account] = team
        self.children: dict[str, list[str]] = {account: [] for account in ("", *self.teams)}
        for account, team in sorted(self.teams.items()):
            if team.parent not in self.children:
                raise UnknownReference("parent team", team.parent, f"team {team.team!r}")
            self.children[team.parent].append(account)
        self.depth: dict[str, int] = {}
        layer = self.children[""]
        while layer:
            self.depth.update(dict.fromkeys(layer, len(self.depth)))
            layer = [child for account in layer for child in self.children[account]]
        if len(self.depth) != len(self.teams):
            lost = min(set(self.teams) - set(self.depth))
            raise UnknownReference("parent team", self.teams[lost].parent, f"team {self.teams[lost].team!r}")

    def parents_first(self) -> list[str]:
        """Accounts, every parent before its children."""
        return sorted(self.teams, key=lambda account: (self.depth[account], account))

    def root(self) -> str:
        """The account of the one root team, "" where there are several or none."""
        tops = self.children[""]
        return tops[0] if len(tops) == 1 else ""


def draw_tree(desired: DesiredState, gpu_model: str, flavors: tuple[DesiredFlavor, ...]) -> tuple[Drawn, ...]:
    """(class, name, attributes) of every Cohort, parents first, then of every ClusterQueue of one GPU model."""
    tree = TeamTree(desired)
    names = {flavor.name for flavor in flavors}
    quotas = {
        account: tuple(quota for quota in team.quotas if quota.flavor in names) for account, team in tree.teams.items()
    }
    used = {account for account in tree.teams if quotas[account]}
    for account in reversed(tree.parents_first()):  # whoever is above a used team is used
        if account in used and tree.teams[account].parent:
            used.add(tree.teams[account].parent)
    if not used:  # a pool that nobody can reach; and its name would change with the first team that can
        return ()
    root = tree.root()
    top = team_name(root or _ABOVE_ALL, gpu_model)
    pools = {flavor: gpus for flavor, gpus in desired.pool_gpus if flavor in names}
    pool = {NOMINAL + name: max(0, pools.get(name, 0)) for name in sorted(names)}
    cohorts: list[Drawn] = [("Cohort", top, {"parentName": None, "weight": "1", **pool})]
    queues: list[Drawn] = []
    for account in tree.parents_first():
        if account in used:
            team = tree.teams[account]
            own = team_name(account, gpu_model)
            above = team_name(team.parent, gpu_model) if team.parent else top
            is_group = bool(tree.children[account]) and account != root
            if is_group:
                cohorts.append(("Cohort", own, _group(team, quotas[account], above)))
            if quotas[account]:
                inside = own if is_group or account == root else above
                queues.append(("ClusterQueue", own, _queue(team, quotas[account], inside, capped=not is_group)))
    if len({name for _, name, _ in cohorts}) != len(cohorts):
        raise NameClash("cohort", top)
    return (*cohorts, *queues)


def _group(team: DesiredTeam, quotas: tuple[DesiredQuota, ...], above: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {"parentName": above, "weight": str(team.shares)}
    for quota in quotas:
        attributes[NOMINAL + quota.flavor] = 0
        attributes[BORROWING + quota.flavor] = quota.borrowing_limit_gpus
    return attributes


def _queue(team: DesiredTeam, quotas: tuple[DesiredQuota, ...], cohort: str, capped: bool) -> dict[str, Any]:
    """A leaf; a group's own part (not capped) is bounded by the group's borrowing limit above it."""
    return queue_attributes(cohort, (namespace_name(team.account),), str(team.shares) if capped else "1") | {
        prefix + quota.flavor: value for quota in quotas for prefix, value in _limits(quota, capped)
    }


def _limits(quota: DesiredQuota, capped: bool) -> Iterator[tuple[str, int | None]]:
    lending = quota.lending_limit_gpus
    yield NOMINAL, quota.guaranteed_gpus
    yield BORROWING, quota.borrowing_limit_gpus if capped else None
    yield LENDING, None if lending is None else min(lending, quota.guaranteed_gpus)


def queue_attributes(cohort: str | None, namespaces: tuple[str, ...], weight: str = "1") -> dict[str, Any]:
    """What every ClusterQueue of ours says besides its quotas: its guarantee is taken back from whoever borrows it."""
    return {
        "cohortName": cohort,
        "namespaces": tuple(sorted(namespaces)),
        "weight": weight,
        "reclaimWithinCohort": "Any" if cohort else "Never",
        "withinClusterQueue": "LowerPriority",
        "stopPolicy": "None",
    }
