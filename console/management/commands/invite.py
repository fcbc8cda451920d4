"""manage.py invite: how does somebody whom a policy file named come in? Prints a link that works once, for a day."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from allocations.errors import DomainError
from allocations.services import invitations
from console.management.base import BerthCommand


class Command(BerthCommand):
    """Exit 0 with the link, 1 refused, 64 wrong usage. Teams and roles stay as they are."""

    help = "Print a one-time link by which a person who is known here chooses a first password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    def perform(self, **given: Any) -> int | None:
        try:
            invitation, token = invitations.create_invitation(
                email=given["email"], role=invitations.NO_ROLE, actor=None, at=timezone.now()
            )
        except DomainError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(f"{settings.BERTH_BASE_URL.rstrip('/')}/join/{token}")
        self.stderr.write(f"It works once, until {invitation.expires_at:%d %b %H:%M} UTC, for {invitation.email}.")
        return None
