"""How does a whole file of policy come into force? (row by row through the services; again, it changes nothing)"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction

from allocations.errors import DomainError, Fault, Invalid
from allocations.models import Allocation, Cluster, Event, Flavor, Membership, Team, Tier, User
from allocations.services import approvals, grants, teams
from reservations.services import grants as upper_grants
from reservations.services.policies import set_reservation_policy

Row = Mapping[str, Any]
UNLIMITED = "unlimited"
_AMOUNTS = (
    "guaranteed_gpus",
    "borrowing_limit_gpus",
    "lending_limit_gpus",
    "gpu_hours",
    "max_walltime_minutes",
    "max_gpus_per_job",
)


@dataclass(frozen=True, slots=True)
class RowResult:
    """What became of one row: the section, its number from 0, and whether anything changed."""

    section: str
    number: int
    name: str
    changed: bool


class RowRefused(Exception):
    """A row that is refused, and with it the whole file; `key` is the key at fault, "" for the row as a whole."""

    def __init__(self, section: str, number: int, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.section, self.number, self.key, self.sentence = section, number, key, sentence


def apply_policy(
    *, sections: Mapping[str, Sequence[Row]], actor: User | None, at: datetime, dry_run: bool = False
) -> tuple[RowResult, ...]:
    """Bring everything to what the rows say, in one transaction; what they do not name stays as it is.

    Rows come checked for their keys. `dry_run` does everything and rolls it back. Raises RowRefused.
    """
    results = []
    with transaction.atomic():
        for section, (name_of, take) in _SECTIONS.items():
            for number, row in enumerate(sections.get(section, ())):
                before = _last_event()
                try:
                    take(row, actor, at)
                except DomainError as error:
                    key = error.faults[0].pointer.strip("/").split("/")[0] if error.faults else ""
                    raise RowRefused(section, number, key, error.sentence) from error
                results.append(RowResult(section, number, name_of(row), _last_event() != before))
        if dry_run:
            transaction.set_rollback(True)
    return tuple(results)


def _last_event() -> int | None:
    """Every change writes an event in this transaction, so a row that wrote none changed nothing."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first()


def _take_person(row: Row, actor: User | None, at: datetime) -> None:
    user = User.objects.filter(email__iexact=row["email"]).first()
    if user is None:
        user = teams.add_person(email=row["email"], name=row.get("name") or row["email"], actor=actor, at=at)
    for number, role in enumerate(row.get("roles", ())):
        if not isinstance(role, Mapping) or not set(role) <= {"role", "team", "cluster"} or "role" not in role:
            sentence = f"/roles/{number} has the key role and, for its scope, team or cluster."
            raise Invalid(sentence, Fault("/roles", "invalid", sentence))
        teams.grant_role(
            user=user,
            role=role["role"],
            team=_team(role["team"], "roles") if role.get("team") else None,
            cluster=_cluster(role["cluster"], "roles") if role.get("cluster") else None,
            actor=actor,
            at=at,
        )


def _take_team(row: Row, actor: User | None, at: datetime) -> None:
    parent_path, _, name = row["path"].rpartition("/")
    team = Team.objects.filter(path=row["path"]).first()
    if team is None:
        parent = _team(parent_path, "path") if parent_path else None
        optional = {key: row[key] for key in ("title", "shares", "account") if key in row}
        teams.add_team(name=name, parent=parent, actor=actor, at=at, **optional)
        return
    if row.get("account", team.account) != team.account:
        sentence = f"{team.path} is {team.account} on clusters; an account is not renamed."
        raise Invalid(sentence, Fault("/account", "invalid", sentence))
    teams.change_team(team=team, title=row.get("title"), shares=row.get("shares"), actor=actor, at=at)


def _take_membership(row: Row, actor: User | None, at: datetime) -> None:
    user = User.objects.filter(email__iexact=row["user"]).first()
    if user is None:
        raise Invalid(f"Nobody here has the address {row['user']}.", Fault("/user", "invalid", "Unknown."))
    role = row.get("role", Membership.Role.MEMBER)
    teams.set_member(team=_team(row["team"], "team"), user=user, role=role, actor=actor, at=at)


def _take_tier(row: Row, actor: User | None, at: datetime) -> None:
    grants.set_tier(**{key: _limit(value) for key, value in row.items()}, actor=actor, at=at)


def _take_allocation(row: Row, actor: User | None, at: datetime) -> None:
    """The allocation of this team, flavor and end: kept when it says the same, else revoked and followed by another."""
    team, flavor, tier = _team(row["team"], "team"), _flavor(row), _tier(row)
    start_at, end_at = _moment(row, "start_at"), _moment(row, "end_at")
    amounts = {key: _limit(row[key]) for key in _AMOUNTS if key in row}
    standing = Allocation.objects.filter(team=team, flavor=flavor, end_at=end_at, revoked_at=None).order_by("pk")
    # One that followed a revoked one began at that moment, not at the row's start.
    same_period = [one for one in standing if one.start_at == start_at or start_at < one.start_at <= at]
    wanted = {**dict.fromkeys(_AMOUNTS), "guaranteed_gpus": 0, **amounts}
    if any(_says(one, wanted, tier) for one in same_period):
        return
    for one in same_period:
        upper_grants.revoke(allocation=one, actor=actor, at=at, reason="Followed by another grant.")
    overcommit = {key: row[key] for key in ("overcommit", "reason") if key in row}
    upper_grants.grant(
        team=team,
        flavor=flavor,
        start_at=max(start_at, at) if same_period else start_at,
        end_at=end_at,
        tier=tier,
        actor=actor,
        at=at,
        **wanted,
        **overcommit,
    )


def _says(allocation: Allocation, wanted: Mapping[str, Any], tier: Tier | None) -> bool:
    def plain(value: Any) -> Decimal | None:
        try:
            return None if value is None else Decimal(str(value))
        except InvalidOperation:
            return Decimal("NaN")

    is_same = all(plain(getattr(allocation, key)) == plain(value) for key, value in wanted.items())
    return is_same and allocation.tier_id == (tier.pk if tier else None)


def _take_approval_policy(row: Row, actor: User | None, at: datetime) -> None:
    approvals.set_policy(**row, actor=actor, at=at)


def _take_reservation_policy(row: Row, actor: User | None, at: datetime) -> None:
    limits = {key: _limit(value) for key, value in row.items() if key not in ("cluster", "flavor", "tier")}
    flavor = _flavor(row) if row.get("flavor") else None
    set_reservation_policy(flavor=flavor, tier=_tier(row), actor=actor, at=at, **limits)


def _team(path: str, key: str) -> Team:
    team = Team.objects.filter(path=path).first()
    if team is None:
        raise Invalid(f"There is no team {path}.", Fault(f"/{key}", "invalid", "Unknown team."))
    return team


def _cluster(name: str, key: str) -> Cluster:
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise Invalid(f"There is no cluster {name}.", Fault(f"/{key}", "invalid", "Unknown cluster."))
    return cluster


def _flavor(row: Row) -> Flavor:
    if not row.get("cluster"):
        raise Invalid("A flavor is named with its cluster.", Fault("/cluster", "required", "The cluster's name."))
    cluster = _cluster(row["cluster"], "cluster")
    flavor = Flavor.objects.select_related("cluster").filter(cluster=cluster, name=row["flavor"]).first()
    if flavor is None:
        raise Invalid(f"{cluster.name} has no flavor {row['flavor']}.", Fault("/flavor", "unknown_flavor", "Unknown."))
    return flavor


def _tier(row: Row) -> Tier | None:
    if row.get("tier") is None:
        return None
    tier = Tier.objects.filter(name=row["tier"]).first()
    if tier is None:
        raise Invalid(f"There is no tier {row['tier']}.", Fault("/tier", "invalid", "Unknown tier."))
    return tier


def _moment(row: Row, key: str) -> datetime:
    try:
        moment = datetime.fromisoformat(str(row[key]))
    except ValueError as error:
        raise Invalid(f"{row[key]!r} is not a moment.", Fault(f"/{key}", "invalid", "RFC 3339.")) from error
    if moment.tzinfo is None:
        raise Invalid(f"{key} needs an offset, such as Z.", Fault(f"/{key}", "offset_needed", "No offset."))
    return moment


def _limit(value: Any) -> Any:
    return None if value == UNLIMITED else value


def _by(*keys: str) -> Callable[[Row], str]:
    return lambda row: " ".join(str(row[key]) for key in keys if row.get(key) is not None)


# In the order in which rows need each other.
_SECTIONS: dict[str, tuple[Callable[[Row], str], Callable[[Row, User | None, datetime], None]]] = {
    "teams": (_by("path"), _take_team),
    "people": (_by("email"), _take_person),
    "memberships": (_by("user", "team"), _take_membership),
    "tiers": (_by("name"), _take_tier),
    "allocations": (_by("team", "cluster", "flavor"), _take_allocation),
    "approval_policies": (_by("name"), _take_approval_policy),
    "reservation_policies": (_by("name"), _take_reservation_policy),
}
