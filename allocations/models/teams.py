"""Who: people, the tree of teams, memberships, scoped roles, delegations and elevations."""

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower

from allocations.models.fleet import Cluster


class UserManager(BaseUserManager["User"]):
    """Finds a person by e-mail, whatever its case."""

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email__iexact=username)


class User(AbstractBaseUser):
    """A person. Rights come from memberships and role grants alone; Django's own permissions are not used."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=200)
    zone = models.CharField(max_length=64, default="UTC")
    is_active = models.BooleanField(default=True)
    is_demo = models.BooleanField(default=False)
    is_service = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]
    objects = UserManager()

    class Meta:
        ordering = ("name", "id")
        constraints = (models.UniqueConstraint(Lower("email"), name="email_once_whatever_its_case"),)

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        return f"U-{self.pk}"

    def get_short_name(self) -> str:
        return self.name.split(" ")[0]


class Team(models.Model):
    """A node in the tree of groups that share the fleet. `path` is kept by the service that moves teams."""

    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="children")
    name = models.CharField(max_length=63)
    path = models.CharField(max_length=1000, unique=True)
    account = models.CharField(max_length=63, unique=True)
    title = models.CharField(max_length=200, blank=True)
    shares = models.PositiveBigIntegerField(default=1)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("path",)
        constraints = (
            models.UniqueConstraint(Lower("name"), "parent", name="team_named_once_among_siblings"),
            models.CheckConstraint(name="team_is_not_its_own_parent", condition=~Q(parent=F("id"))),
            models.CheckConstraint(name="shares_fit_every_scheduler", condition=Q(shares__lt=2**31)),
            models.CheckConstraint(
                name="account_is_plain", condition=Q(account__regex=r"^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$")
            ),
        )

    def __str__(self) -> str:
        return self.path

    @property
    def public_id(self) -> str:
        return f"T-{self.pk}"


class Membership(models.Model):
    """A person in a team: a member may use what it has, a lead asks in its name. Leads act on the subtree."""

    class Role(models.TextChoices):
        MEMBER = "member"
        LEAD = "lead"

    team = models.ForeignKey(Team, models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role)
    ended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("team", "user")
        constraints = (
            models.UniqueConstraint(
                fields=("team", "user"), condition=Q(ended_at__isnull=True), name="member_once_per_team"
            ),
        )


class RoleGrant(models.Model):
    """A role on a team's subtree, a cluster, or (neither given) the whole fleet."""

    class Role(models.TextChoices):
        APPROVER = "approver"
        OPERATOR = "operator"
        AUDITOR = "auditor"
        ADMIN = "admin"

    user = models.ForeignKey(User, models.PROTECT, related_name="role_grants")
    role = models.CharField(max_length=8, choices=Role)
    team = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="role_grants")
    cluster = models.ForeignKey(Cluster, models.PROTECT, null=True, blank=True, related_name="role_grants")
    granted_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("user", "role")
        constraints = (
            models.CheckConstraint(name="role_has_one_scope", condition=Q(team__isnull=True) | Q(cluster__isnull=True)),
            models.UniqueConstraint(
                name="role_is_held_once",
                fields=("user", "role", "team", "cluster"),
                condition=Q(ended_at=None),
                nulls_distinct=False,
            ),
        )


class ClusterUsername(models.Model):
    """What a person is called on a cluster. Never guessed."""

    user = models.ForeignKey(User, models.PROTECT, related_name="cluster_usernames")
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="usernames")
    username = models.CharField(max_length=63)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "cluster"), name="one_username_per_person_and_cluster"),
            models.UniqueConstraint(fields=("cluster", "username"), name="username_belongs_to_one_person"),
        )


class Delegation(models.Model):
    """One approver's decisions handed to another for a while."""

    from_user = models.ForeignKey(User, models.PROTECT, related_name="delegations_given")
    to_user = models.ForeignKey(User, models.PROTECT, related_name="delegations_held")
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="delegation_ends_after_it_starts", condition=Q(end_at__gt=F("start_at"))),
            models.CheckConstraint(name="nobody_delegates_to_themselves", condition=~Q(from_user=F("to_user"))),
        )


class Elevation(models.Model):
    """An admin's timed, reasoned use of admin rights: at most 60 minutes, no decisions meanwhile."""

    user = models.ForeignKey(User, models.PROTECT, related_name="elevations")
    reason = models.CharField(max_length=500)
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="elevation_ends_after_it_starts", condition=Q(end_at__gt=F("start_at"))),
        )


class Invitation(models.Model):
    """A one-time link, kept as a hash: a first admin, or a person a lead invites into a team."""

    email = models.EmailField()
    token_hash = models.CharField(max_length=64, unique=True)
    team = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="invitations")
    role = models.CharField(max_length=8, blank=True)
    invited_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
