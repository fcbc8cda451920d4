"""What does a DesiredState look like in Slurm's words? (teams -> accounts, reservations -> reservations)"""

from collections.abc import Iterator

from scheduling.desired import DesiredReservation, DesiredState, DesiredTeam
from scheduling.dialects.contract import Capabilities
from scheduling.dialects.errors import NameClash, UnknownReference
from scheduling.dialects.slurm.accounts import account
from scheduling.dialects.slurm.names import account_name, checked_name, description, moment, node_list, organization
from scheduling.dialects.slurm.reservations import reservation
from scheduling.plan import Compromise, NativeObject, Rendered

ROOT = "root"


def render(desired: DesiredState, capabilities: Capabilities | None = None) -> Rendered:
    """Accounts, parents first, then reservations by name.

    Raises NameNotAllowed, NameClash (two teams whose accounts differ in case only) and UnknownReference.
    """
    cluster = checked_name("cluster", (capabilities.native_cluster if capabilities else "") or desired.cluster)
    teams = _by_account(desired)
    accounts = [_account(desired, teams, name, cluster) for name in _parents_first(teams)]
    reservations = [_reservation(desired, teams, wanted) for wanted in desired.reservations]
    reservations.sort(key=lambda item: item.name)
    return Rendered((*accounts, *reservations), tuple(_compromises(desired)))


def _by_account(desired: DesiredState) -> dict[str, DesiredTeam]:
    teams: dict[str, DesiredTeam] = {}
    for team in desired.teams:
        name = account_name(team.account)
        if name in teams or name == ROOT:
            raise NameClash("account", name)
        teams[name] = team
    return teams


def _parents_first(teams: dict[str, DesiredTeam]) -> list[str]:
    """Accounts by depth, then name; a parent that is missing or below itself raises UnknownReference."""
    depths: dict[str, int] = {}

    def depth(name: str, below: tuple[str, ...] = ()) -> int:
        parent = teams[name].parent.lower()
        if name in below or (parent and parent not in teams):
            raise UnknownReference("parent team", parent, f"team {teams[name].team!r}")
        if name not in depths:
            depths[name] = 1 + depth(parent, (*below, name)) if parent else 0
        return depths[name]

    return sorted(teams, key=lambda name: (depth(name), name))


def _account(desired: DesiredState, teams: dict[str, DesiredTeam], name: str, cluster: str) -> NativeObject:
    team = teams[name]
    attributes = {
        "parent": team.parent.lower() or ROOT,
        "fairshare": team.shares,
        "organization": organization(desired.installation),
        "description": description(team.team),
    }
    return account(name, attributes, cluster)


def _reservation(desired: DesiredState, teams: dict[str, DesiredTeam], wanted: DesiredReservation) -> NativeObject:
    accounts = sorted({account_name(name) for name in wanted.teams})
    for name in accounts:
        if name not in teams:
            raise UnknownReference("team", name, f"reservation {wanted.id}")
    if not accounts or not wanted.nodes:
        raise UnknownReference("team" if not accounts else "node", "", f"reservation {wanted.id}")
    attributes = {
        "nodes": node_list(wanted.nodes),
        "start": moment(wanted.start_minute * 60),
        "end": moment(wanted.end_minute * 60),
        "accounts": ",".join(accounts),
        "users": "",
        "flags": "",
    }
    return reservation(checked_name("reservation", wanted.name), attributes, at=desired.at_minute * 60)


def _compromises(desired: DesiredState) -> Iterator[Compromise]:
    held = [team.team for team in desired.teams if any(quota.guaranteed_gpus for quota in team.quotas)]
    if held:
        yield Compromise(
            "guarantee_by_reservation_only",
            desired.cluster,
            f"Slurm's shares order the queue and guarantee nothing: the guarantees of {len(held)} "
            f"{'team' if len(held) == 1 else 'teams'} are kept by what Berth approves, not by {desired.cluster}.",
        )
