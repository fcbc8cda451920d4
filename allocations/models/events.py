"""What happened: events, append-only, and the seals that chain them."""

from django.db import models
from django.db.models.expressions import RawSQL


class Event(models.Model):
    """One past fact, written in the transaction of the deed it tells of.

    A trigger refuses UPDATE, DELETE and TRUNCATE. `transaction_id` orders events by commit for readers that stop
    below the oldest running transaction.
    """

    verb = models.CharField(max_length=64)
    subject_kind = models.CharField(max_length=32)
    subject_id = models.CharField(max_length=64)
    team = models.ForeignKey("allocations.Team", models.PROTECT, null=True, related_name="events")
    cluster = models.ForeignKey("allocations.Cluster", models.PROTECT, null=True, related_name="events")
    actor = models.ForeignKey("allocations.User", models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField()
    request_id = models.CharField(max_length=64, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    sentence = models.CharField(max_length=1000, blank=True)
    transaction_id = models.BigIntegerField(db_default=RawSQL("pg_current_xact_id()::text::bigint", ()))

    class Meta:
        ordering = ("transaction_id", "id")
        indexes = (
            models.Index(fields=("transaction_id", "id"), name="event_by_commit"),
            models.Index(fields=("subject_kind", "subject_id"), name="event_by_subject"),
        )

    @property
    def public_id(self) -> str:
        return f"E-{self.pk}"


class EventSeal(models.Model):
    """One sealed run of events in commit order; each seal hashes the one before. Append-only."""

    last_transaction_id = models.BigIntegerField()
    last_event_id = models.BigIntegerField()
    event_count = models.PositiveIntegerField()
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, unique=True)
    sealed_at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("previous_hash",), name="seals_form_one_chain"),)
