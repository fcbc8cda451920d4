"""What may a person change about themselves? (the time zone in which they see moments)"""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import transaction

from allocations.errors import Fault, Invalid
from allocations.events import record
from allocations.models import User


def checked_zone(zone: str) -> str:
    """The name of a time zone that this machine knows; Invalid for any other text."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:  # OSError: a folder of zones, or a name that no file can have
        raise Invalid(f"There is no time zone {zone[:64]!r}.", Fault("/zone", "invalid", "An IANA name.")) from error
    return zone


@transaction.atomic
def set_zone(*, user: User, zone: str, actor: User, at: datetime) -> User:
    """Show this person moments in that zone. The same again changes nothing. Raises Invalid for a zone that is none."""
    person = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if person.zone == checked_zone(zone):
        return person
    before, person.zone = person.zone, zone
    person.save(update_fields=("zone",))
    record(
        "person.zone_set",
        subject=("user", person.public_id),
        actor=actor,
        at=at,
        before={"zone": before},
        after={"zone": zone},
    )
    return person
