"""What is remembered about signing in: who, when, and who failed."""

from datetime import datetime

from django.db import transaction

from allocations.events import record
from allocations.models import User


def note_sign_in(*, user: User, at: datetime) -> None:
    """A person signed in."""
    record("person.signed_in", subject=("user", user.public_id), actor=user, at=at)


def note_sign_out(*, user: User, at: datetime) -> None:
    """A person signed out."""
    record("person.signed_out", subject=("user", user.public_id), actor=user, at=at)


def note_failed_sign_in(*, email: str, at: datetime) -> None:
    """Somebody failed to sign in. The address typed is kept only when it belongs to a person here."""
    known = User.objects.filter(email__iexact=email).first()
    subject = known.public_id if known else "unknown"
    record("person.sign_in_failed", subject=("user", subject), actor=None, at=at)


@transaction.atomic
def change_password(*, user: User, password: str, at: datetime) -> None:
    """Set a new password. Every other session of the person ends, because the session key hashes the password."""
    user.set_password(password)
    user.save(update_fields=("password",))
    record("person.password_changed", subject=("user", user.public_id), actor=user, at=at)
