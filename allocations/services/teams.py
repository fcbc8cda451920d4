"""Who is in which team, and what may a person do? (teams, people, memberships and roles)

Moving, merging and archiving teams depend on reservations and are deeds of reservations/services/teams.py.
"""

import re
import unicodedata
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from allocations.errors import Fault, Invalid, WrongState
from allocations.events import record
from allocations.models import Cluster, Membership, RoleGrant, Team, User
from allocations.permissions import require
from allocations.services.counters import bump, lock_all_clusters
from allocations.services.people import checked_zone

NAME_LENGTH = 63
SHARES_BOUND = 2**31
_NOT_IN_A_NAME = re.compile(r"[<>&\"'`/\\]")


def add_team(
    *,
    name: str,
    parent: Team | None = None,
    title: str = "",
    shares: int = 1,
    account: str = "",
    actor: User | None,
    at: datetime,
) -> Team:
    """A new team below `parent` (None: an organisation of its own). Without `account` one is derived from the path.

    Raises Invalid for a name with markup, control characters or a slash or over 63 characters; WrongState name_taken.
    """
    require(actor, "team.manage" if parent else "admin.grant_roles", parent)
    name = checked_name(name)
    _check_shares(shares)
    with transaction.atomic():
        if parent is not None:
            parent = Team.objects.select_for_update(no_key=True).get(pk=parent.pk)
            if parent.archived_at is not None:
                raise WrongState(f"{parent.path} is archived.")
        path = f"{parent.path}/{name}" if parent else name
        if Team.objects.filter(parent=parent, name__iexact=name).exists():
            raise WrongState(f"There is a team {path} already.", "name_taken")
        if account and not re.fullmatch(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?", account):
            raise Invalid("An account is lower case letters, digits, - and _.", Fault("/account", "invalid", account))
        team = Team.objects.create(
            parent=parent,
            name=name,
            path=path,
            title=checked_text(title, "title"),
            shares=shares,
            account=account or free_account(path),
        )
        _every_cluster_must_hear()
        record(
            "team.added",
            subject=("team", team.public_id),
            actor=actor,
            at=at,
            team=team,
            after={"path": path, "account": team.account, "shares": shares},
            sentence=f"{path} is a team now.",
        )
    return team


def change_team(
    *,
    team: Team,
    title: str | None = None,
    shares: int | None = None,
    version: int | None = None,
    actor: User | None,
    at: datetime,
) -> Team:
    """Change a team's title or its shares among its siblings; None leaves as it is. The same again changes nothing.

    Raises WrongState version_changed when `version` is not the team's, wrong_state for an archived team.
    """
    # Shares weigh a team against its siblings, so they are the parent's to set.
    require(actor, "team.manage", team if shares is None or team.parent is None else team.parent)
    if shares is not None:
        _check_shares(shares)
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        if team.archived_at is not None:
            raise WrongState(f"{team.path} is archived.")
        if version is not None and version != team.version:
            raise WrongState("The team changed since you read it.", "version_changed", version=team.version)
        new_title = team.title if title is None else checked_text(title, "title")
        new_shares = team.shares if shares is None else shares
        before = {"title": team.title, "shares": team.shares}
        after = {"title": new_title, "shares": new_shares}
        if before == after:
            return team
        team.title, team.shares, team.version = new_title, new_shares, team.version + 1
        team.save(update_fields=("title", "shares", "version"))
        if before["shares"] != after["shares"]:
            _every_cluster_must_hear()
        record(
            "team.changed", subject=("team", team.public_id), actor=actor, at=at, team=team, before=before, after=after
        )
    return team


def add_person(
    *,
    email: str,
    name: str,
    password: str | None = None,
    zone: str = "UTC",
    is_demo: bool = False,
    actor: User | None,
    at: datetime,
) -> User:
    """A new person. Without a password nobody can sign in as them until they come by an invitation.

    Raises Invalid for an address, name or zone that is none, WrongState name_taken for a known address.
    """
    require(actor, "admin.grant_roles")
    email = checked_email(email)
    name = checked_text(name, "name", is_needed=True)
    with transaction.atomic():
        if User.objects.filter(email__iexact=email).exists():
            raise WrongState(f"{email} is known already.", "name_taken")
        user = User(email=email, name=name, zone=checked_zone(zone), is_demo=is_demo)
        if password is None:
            user.set_unusable_password()
        else:
            user.set_password(password)
        user.save()
        record(
            "person.added", subject=("user", user.public_id), actor=actor, at=at, after={"email": email, "name": name}
        )
    return user


def set_member(
    *, team: Team, user: User, role: str = Membership.Role.MEMBER, actor: User | None, at: datetime
) -> Membership:
    """Make somebody a member or lead of a team, or change which of both. The same again changes nothing.

    Raises Invalid for another role, WrongState for an archived team.
    """
    require(actor, "team.manage", team)
    if role not in Membership.Role.values:
        raise Invalid("A member's role is member or lead.", Fault("/role", "invalid", str(role)))
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        if team.archived_at is not None:
            raise WrongState(f"{team.path} is archived.")
        before = Membership.objects.filter(team=team, user=user, ended_at=None).first()
        if before is not None and before.role == role:
            return before
        if before is not None:
            before.ended_at = at
            before.save(update_fields=("ended_at",))
        membership = Membership.objects.create(team=team, user=user, role=role)
        _forget_rights(user)
        _every_cluster_must_hear()
        record(
            "team.member_added",
            subject=("user", user.public_id),
            actor=actor,
            at=at,
            team=team,
            before={"role": before.role} if before else None,
            after={"role": role},
            sentence=f"{user.name} is a {role} of {team.path}.",
        )
    return membership


def end_member(*, membership: Membership, actor: User | None, at: datetime) -> Membership:
    """End a membership; the row stays. Raises WrongState when it has ended."""
    require(actor, "team.manage", membership.team)
    with transaction.atomic():
        membership = (
            Membership.objects.select_for_update(no_key=True).select_related("team", "user").get(pk=membership.pk)
        )
        if membership.ended_at is not None:
            raise WrongState("This membership has ended already.")
        membership.ended_at = at
        membership.save(update_fields=("ended_at",))
        _forget_rights(membership.user)
        _every_cluster_must_hear()
        record(
            "team.member_ended",
            subject=("user", membership.user.public_id),
            actor=actor,
            at=at,
            team=membership.team,
            before={"role": membership.role},
            sentence=f"{membership.user.name} left {membership.team.path}.",
        )
    return membership


def grant_role(
    *, user: User, role: str, team: Team | None = None, cluster: Cluster | None = None, actor: User | None, at: datetime
) -> RoleGrant:
    """Give a role on a team's subtree, on a cluster, or (neither) on the fleet. The same again changes nothing.

    Raises Invalid for an unknown role or two scopes, NotAllowed for anybody but an admin.
    """
    require(actor, "admin.grant_roles")
    if role not in RoleGrant.Role.values:
        raise Invalid(f"A role is one of {', '.join(RoleGrant.Role.values)}.", Fault("/role", "invalid", str(role)))
    if team is not None and cluster is not None:
        raise Invalid(
            "A role lies on a team or on a cluster, not on both.", Fault("/cluster", "invalid", "Two scopes.")
        )
    _forget_rights(user)
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        scope = {"team": team, "cluster": cluster}
        held = RoleGrant.objects.filter(user=user, role=role, ended_at=None, **scope).first()
        if held is not None:
            return held
        granted = RoleGrant.objects.create(user=user, role=role, granted_by=actor, **scope)
        where = team.path if team else cluster.name if cluster else "the fleet"
        record(
            "role.granted",
            subject=("user", user.public_id),
            actor=actor,
            at=at,
            team=team,
            cluster=cluster,
            after={"role": role, "scope": where},
            sentence=f"{user.name} is {role} of {where}.",
        )
    return granted


def end_role(*, grant: RoleGrant, actor: User | None, at: datetime) -> RoleGrant:
    """Take a role away. Raises WrongState last_admin for the last admin, wrong_state when it has ended."""
    require(actor, "admin.grant_roles")
    _forget_rights(grant.user)
    with transaction.atomic():
        # All admin rows are locked, so that two people who each end the other's role cannot both succeed.
        admins = list(
            RoleGrant.objects.select_for_update(no_key=True).filter(role="admin", ended_at=None).order_by("pk")
        )
        grant = (
            RoleGrant.objects.select_for_update(of=("self",), no_key=True)
            .select_related("user", "team", "cluster")
            .get(pk=grant.pk)
        )
        if grant.ended_at is not None:
            raise WrongState("This role has ended already.")
        others = {row.user_id for row in admins if row.pk != grant.pk}
        if grant.role == "admin" and not User.objects.filter(pk__in=others, is_active=True).exists():
            raise WrongState("The last admin stays: make another one first.", "last_admin")
        grant.ended_at = at
        grant.save(update_fields=("ended_at",))
        record(
            "role.ended",
            subject=("user", grant.user.public_id),
            actor=actor,
            at=at,
            team=grant.team,
            cluster=grant.cluster,
            before={"role": grant.role},
            sentence=f"{grant.user.name} is no longer {grant.role}.",
        )
    return grant


def checked_name(name: str) -> str:
    """A team's name, trimmed; Invalid for markup, slashes, control characters, nothing, or over 63 characters."""
    name = unicodedata.normalize("NFC", name).strip()
    reason = ""
    if not name:
        reason = "A team needs a name."
    elif len(name) > NAME_LENGTH:
        reason = f"A team's name has at most {NAME_LENGTH} characters."
    elif _NOT_IN_A_NAME.search(name):
        reason = "A team's name has no markup, quotes or slashes."
    elif any(unicodedata.category(char)[0] == "C" for char in name) or name in (".", ".."):
        reason = "A team's name has no line breaks or other control characters."
    elif not any(char.isalnum() for char in name):
        reason = "A team's name has a letter or a digit."
    if reason:
        raise Invalid(reason, Fault("/name", "invalid", reason))
    return name


def checked_text(text: str, field: str, *, is_needed: bool = False) -> str:
    """One line of text of at most 200 characters, trimmed; Invalid for control characters or markup brackets."""
    text = unicodedata.normalize("NFC", text).strip()
    is_bad = len(text) > 200 or any(unicodedata.category(char)[0] == "C" or char in "<>" for char in text)
    if is_bad or (is_needed and not text):
        sentence = f"The {field} is one line of at most 200 characters without markup."
        raise Invalid(sentence, Fault(f"/{field}", "invalid", sentence))
    return text


def checked_email(email: str) -> str:
    """An e-mail address in lower case; Invalid when it is none."""
    try:
        validate_email(email.strip())
    except ValidationError as error:
        raise Invalid(
            f"{email[:100]!r} is not an e-mail address.", Fault("/email", "invalid", "Not an address.")
        ) from error
    return email.strip().lower()


def free_account(path: str) -> str:
    """The account name a team at `path` gets on clusters: lower case [a-z0-9_-], numbered when it is taken."""
    plain = unicodedata.normalize("NFKD", path.lower()).encode("ascii", "ignore").decode()
    base = re.sub(r"[^a-z0-9_]+", "-", plain.replace("/", "-")).strip("-_")[:48].strip("-_") or "team"
    taken = set(Team.objects.filter(account__startswith=base).values_list("account", flat=True))
    number, account = 1, base
    while account in taken or account == "root":
        number += 1
        account = f"{base}-{number}"
    return account


def _check_shares(shares: int) -> None:
    if not 0 <= shares < SHARES_BOUND:
        raise Invalid("Shares are 0 to 2147483647.", Fault("/shares", "invalid", "0 to 2147483647."))


def _forget_rights(user: User) -> None:
    """Rights are read once per person and request; whoever holds this instance must not go on with the old ones."""
    user.__dict__.pop("_rights", None)


def _every_cluster_must_hear() -> None:
    """The team tree is on every cluster, so each one's desired state changed."""
    for cluster in lock_all_clusters():
        bump(cluster, desired=True)
