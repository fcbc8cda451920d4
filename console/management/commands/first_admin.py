"""manage.py first_admin: how does the first admin come in? Prints a link that works once, for a day."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from allocations.errors import DomainError
from allocations.services import invitations
from console.management.base import BerthCommand


class Command(BerthCommand):
    """Exit 0 with the link, 1 refused, 64 wrong usage."""

    help = "Print a one-time link by which this person becomes an admin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    def perform(self, **given: Any) -> int | None:
        try:
            invitation, token = invitations.create_invitation(
                email=given["email"], role="admin", actor=None, at=timezone.now()
            )
        except DomainError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(f"{settings.BERTH_BASE_URL.rstrip('/')}/join/{token}")
        self.stderr.write(f"It works once, until {invitation.expires_at:%d %b %H:%M} UTC, for {invitation.email}.")
        return None
