"""Who may do what? can(user, verb, subject) for deeds, visible_to(user, Model) for lists; no is the default.

Roles lie on a team's subtree, a cluster or the fleet. A lead acts on the team and everything below it. Rights are
read once per person and request; a new request reads them anew.
"""

from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Model, Q, QuerySet

from allocations.errors import NotAllowed
from allocations.models import Allocation, Cluster, Membership, RoleGrant, Team, User

Scope = Literal["team", "cluster", "fleet", "reservation", "none"]

# verb -> what kind of subject it is asked about; anything else raises
VERBS: dict[str, Scope] = {
    "account.use": "none",
    "admin.grant_roles": "none",
    "allocation.grant": "team",
    "audit.read": "none",
    "cluster.connect": "none",
    "cluster.operate": "cluster",
    "cluster.read": "cluster",
    "fleet.read": "none",
    "inbox.read": "none",
    "policy.set": "none",
    "reservation.approve": "reservation",
    "reservation.cancel": "reservation",
    "reservation.preview": "team",
    "reservation.read": "reservation",
    "reservation.request": "team",
    "reservation.withdraw": "reservation",
    "team.manage": "team",
    "team.read": "team",
}


@dataclass(frozen=True)
class Rights:
    """What one person holds now: team paths by membership, and grants as (role, team path, cluster id)."""

    user_id: int
    member_paths: frozenset[str]
    lead_paths: frozenset[str]
    grants: frozenset[tuple[str, str | None, int | None]]

    def leads(self, team: Team) -> bool:
        return any(within(team.path, path) for path in self.lead_paths)

    def belongs_to(self, team: Team) -> bool:
        """Member or lead of the team or of a team above it."""
        return any(within(team.path, path) for path in self.member_paths | self.lead_paths)

    def has(self, role: str, team: Team | None = None, cluster_id: int | None = None) -> bool:
        """The role on the fleet, on a subtree that holds `team`, or on the cluster."""
        for granted, path, cluster in self.grants:
            if granted != role:
                continue
            if path is None and cluster is None:
                return True
            if path is not None and team is not None and within(team.path, path):
                return True
            if cluster is not None and cluster == cluster_id:
                return True
        return False

    def has_anywhere(self, role: str) -> bool:
        return any(granted == role for granted, _, _ in self.grants)

    @property
    def reads_everything(self) -> bool:
        return self.has("auditor") or self.has("admin")


def within(path: str, root: str) -> bool:
    """Is the team at `path` the one at `root` or below it?"""
    return path == root or path.startswith(root + "/")


def rights(user: User) -> Rights:
    """The person's rights, read once per User instance (that is, once per request)."""
    known = user.__dict__.get("_rights")
    if isinstance(known, Rights):
        return known
    memberships = Membership.objects.filter(user=user, ended_at=None, team__archived_at=None).values_list(
        "team__path", "role"
    )
    grants = RoleGrant.objects.filter(user=user, ended_at=None).values_list("role", "team__path", "cluster_id")
    paths = list(memberships) if user.is_active else []
    fresh = Rights(
        user_id=user.pk,
        member_paths=frozenset(path for path, role in paths if role == "member"),
        lead_paths=frozenset(path for path, role in paths if role == "lead"),
        grants=frozenset(grants) if user.is_active else frozenset(),
    )
    user.__dict__["_rights"] = fresh
    return fresh


def can(user: User, verb: str, subject: Any = None) -> bool:
    """May this person do this to that? Unknown verbs raise LookupError; a verb without its subject is never allowed.

    A reservation as subject is anything with team, cluster_id and created_by_id.
    """
    scope = VERBS.get(verb)
    if scope is None:
        raise LookupError(f"no such permission verb: {verb}")
    if not getattr(user, "is_authenticated", False) or not user.is_active:
        return False
    held = rights(user)
    if scope == "none":
        return _can_plain(held, verb)
    if subject is None:
        return False
    if scope == "team":
        return _can_team(held, verb, subject)
    if scope == "cluster":
        return verb == "cluster.read" or held.has("operator", cluster_id=subject.pk)
    return _can_reservation(held, verb, subject)


def require(actor: User | None, verb: str, subject: Any = None) -> None:
    """Raises NotAllowed unless the actor may. None is the machine itself: a command of whoever owns the database."""
    if actor is not None and not can(actor, verb, subject):
        raise NotAllowed("This is not yours to do.")


def _can_plain(held: Rights, verb: str) -> bool:
    if verb in ("account.use", "fleet.read"):
        return True
    if verb == "audit.read":
        return held.reads_everything
    if verb in ("admin.grant_roles", "policy.set"):
        return held.has("admin")
    if verb == "cluster.connect":
        return held.has("operator") or held.has("admin")
    return bool(
        verb == "inbox.read" and (held.has_anywhere("approver") or held.lead_paths or held.has_anywhere("operator"))
    )


def _can_team(held: Rights, verb: str, team: Team) -> bool:
    if verb == "team.read":
        return held.belongs_to(team) or held.reads_everything or held.has("approver", team) or held.has("operator")
    if verb == "reservation.preview":
        return held.belongs_to(team)
    if verb == "allocation.grant":
        return held.has("approver", team) or held.has("admin")
    if verb == "team.manage":
        return held.leads(team) or held.has("admin")
    return held.leads(team)


def _can_reservation(held: Rights, verb: str, reservation: Any) -> bool:
    team, cluster_id = reservation.team, reservation.cluster_id
    operates = held.has("operator", cluster_id=cluster_id)
    if verb == "reservation.approve":
        return held.has("approver", team, cluster_id) and reservation.created_by_id != held.user_id
    if verb == "reservation.read":
        return held.belongs_to(team) or held.reads_everything or operates or held.has("approver", team, cluster_id)
    if verb == "reservation.cancel":
        return held.leads(team) or operates
    return held.leads(team)


def readable_teams(user: User) -> QuerySet[Team]:
    """Teams this person may look into, archived ones left out."""
    held = rights(user)
    teams = Team.objects.filter(archived_at=None)
    if held.reads_everything or held.has("operator") or held.has("approver"):
        return teams
    paths = held.member_paths | held.lead_paths | {path for role, path, _ in held.grants if role == "approver" and path}
    return teams.filter(below(paths))


def led_teams(user: User) -> QuerySet[Team]:
    """Teams in whose name this person may ask."""
    return Team.objects.filter(below(rights(user).lead_paths), archived_at=None)


def below(paths: "frozenset[str] | set[str]", field: str = "path") -> Q:
    """A condition: the team path in `field` is one of `paths` or below one. Nothing for no paths."""
    condition = Q(pk__in=())
    for path in sorted(paths):
        condition |= Q(**{field: path}) | Q(**{f"{field}__startswith": path + "/"})
    return condition


def visible_to(user: User, model: type[Model]) -> QuerySet[Any]:
    """The rows of `model` this person may see. Raises LookupError for a model without a rule here."""
    held = rights(user)
    if not user.is_active:
        return model._default_manager.none()
    if model is Team:
        return readable_teams(user)
    if model is Cluster:
        return Cluster.objects.all()
    if model is Allocation:
        allocations = Allocation.objects.all()
        if held.reads_everything or held.has("operator") or held.has("approver"):
            return allocations
        return allocations.filter(team__in=readable_teams(user))
    raise LookupError(f"no visibility rule for {model.__name__}")


def may_hold(role: str) -> bool:
    """Is this one of the roles that can be granted?"""
    return role in RoleGrant.Role.values
