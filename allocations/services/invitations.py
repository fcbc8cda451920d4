"""How does a person come in? (one-time links: the first admin's, and those by which a lead invites into a team)"""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from allocations.errors import Fault, Invalid, NotFound, WrongState
from allocations.events import record
from allocations.models import Invitation, Membership, Team, User
from allocations.permissions import require
from allocations.services.teams import add_person, checked_email, grant_role, set_member

FIRST_ADMIN_LIVES = timedelta(hours=24)
INVITATION_LIVES = timedelta(days=7)
NO_ROLE = ""


def create_invitation(
    *, email: str, team: Team | None = None, role: str = Membership.Role.MEMBER, actor: User | None, at: datetime
) -> tuple[Invitation, str]:
    """A one-time link for this address: the row and the token, which is kept nowhere. A newer one ends older ones.

    The token goes to the address and is never shown to who invites. With a team: a lead invites a member or lead, for
    7 days. Without: `role` "admin" makes a first admin, and NO_ROLE lets somebody known choose a first password, for 24
    hours; only the machine itself (actor None) or an admin may do that.
    """
    require(actor, "team.manage" if team else "admin.grant_roles", team)
    email = checked_email(email)
    allowed = Membership.Role.values if team else ["admin", NO_ROLE]
    if role not in allowed:
        raise Invalid(f"One is invited as {' or '.join(filter(None, allowed))}.", Fault("/role", "invalid", str(role)))
    if role == NO_ROLE and not User.objects.filter(email__iexact=email).exists():
        raise Invalid(f"Nobody here has the address {email}: a policy file or a lead adds them first.")
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        Invitation.objects.filter(email=email, team=team, used_at=None, expires_at__gt=at).update(expires_at=at)
        invitation = Invitation.objects.create(
            email=email,
            token_hash=_hash(token),
            team=team,
            role=role,
            invited_by=actor,
            expires_at=at + (INVITATION_LIVES if team else FIRST_ADMIN_LIVES),
        )
        record(
            "person.invited",
            subject=("invitation", str(invitation.pk)),
            actor=actor,
            at=at,
            team=team,
            after={"email": email, "role": role, "expires_at": invitation.expires_at.isoformat()},
        )
    return invitation, token


def open_invitation(*, token: str, at: datetime) -> Invitation:
    """The invitation that this token opens. Raises NotFound for one that is unknown, used or expired: all the same."""
    invitation = Invitation.objects.filter(token_hash=_hash(token), used_at=None, expires_at__gt=at).first()
    if invitation is None:
        raise NotFound("This link was used, has expired, or never was one. Ask for a new one.")
    return invitation


def accept_invitation(*, token: str, name: str, password: str, zone: str = "UTC", at: datetime) -> User:
    """Come in by a link: the person is made and gets the role. Somebody known already gives the password they have.

    Raises NotFound for a dead link, Invalid for a password that is weak, or not theirs.
    """
    with transaction.atomic():
        found = open_invitation(token=token, at=at)
        invitation = (
            Invitation.objects.select_for_update(of=("self",), no_key=True).select_related("team").get(pk=found.pk)
        )
        if invitation.used_at is not None:
            raise WrongState("This link was used a moment ago.")
        user = User.objects.filter(email__iexact=invitation.email).first()
        if user is not None and user.has_usable_password():
            # The link alone must not sign anybody in as a person who has a password: whoever invites them knows it.
            if not user.check_password(password):
                raise Invalid(
                    "You are known here: give the password you have.", Fault("/password", "invalid", "Wrong.")
                )
        else:
            _check_password(password, User(email=invitation.email, name=name))
        if user is None:
            user = add_person(email=invitation.email, name=name, password=password, zone=zone, actor=None, at=at)
        elif not user.has_usable_password():
            user.set_password(password)
            user.save(update_fields=("password",))
        if invitation.team is not None:
            set_member(team=invitation.team, user=user, role=invitation.role, actor=None, at=at)
        elif invitation.role != NO_ROLE:
            grant_role(user=user, role=invitation.role, actor=None, at=at)
        invitation.used_at = at
        invitation.save(update_fields=("used_at",))
        subject = ("user", user.public_id)
        record(
            "person.joined", subject=subject, actor=user, at=at, team=invitation.team, after={"role": invitation.role}
        )
    return user


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), Fault("/password", "invalid", " ".join(error.messages))) from error


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
