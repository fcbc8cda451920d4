"""Bearer tokens: made once, shown once, kept as a hash, findable by secret scanners."""

import hashlib
import secrets
import zlib
from datetime import datetime, timedelta

from django.db import transaction

from allocations.errors import Invalid, NotFound
from allocations.events import record
from allocations.models import User
from console.models import ApiToken

SCOPES = ("read", "request", "approve", "sync", "operate")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number: int, width: int) -> str:
    """`number` in base 62, padded with zeros to `width`."""
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = _ALPHABET[rest] + digits
    return digits.rjust(width, "0")


@transaction.atomic
def create(*, owner: User, name: str, scopes: list[str], days: int, at: datetime) -> tuple[ApiToken, str]:
    """A token row and its secret, which is never to be had again. Raises Invalid for a wrong scope or lifetime."""
    if unknown := set(scopes) - set(SCOPES):
        raise Invalid(f"There is no scope {', '.join(sorted(unknown))}.")
    if not 1 <= days <= 365:
        raise Invalid("A token lives 1 to 365 days.")
    prefix = "".join(secrets.choice(_ALPHABET[:36]) for _ in range(8))
    body = f"berth_pat_{prefix}_{base62(int.from_bytes(secrets.token_bytes(32)), 43)}"
    secret = f"{body}_{base62(zlib.crc32(body.encode()), 6)}"
    row = ApiToken.objects.create(
        owner=owner,
        name=name[:100],
        prefix=prefix,
        secret_hash=hashlib.sha256(secret.encode()).hexdigest(),
        scopes=sorted(set(scopes)),
        expires_at=at + timedelta(days=days),
    )
    record("token.created", subject=("token", prefix), actor=owner, at=at, after={"scopes": row.scopes, "days": days})
    return row, secret


@transaction.atomic
def revoke(*, owner: User, prefix: str, at: datetime) -> None:
    """End one of the owner's tokens at once."""
    if not ApiToken.objects.filter(owner=owner, prefix=prefix, revoked_at=None).update(revoked_at=at):
        raise NotFound("You have no such token.")
    record("token.revoked", subject=("token", prefix), actor=owner, at=at)


def find(secret: str) -> ApiToken | None:
    """The row of this secret, whatever its state, or None. One look-up by hash; nothing of the secret is logged."""
    if not secret.startswith("berth_pat_") or len(secret) > 100:
        return None
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return ApiToken.objects.select_related("owner").filter(secret_hash=digest).first()
