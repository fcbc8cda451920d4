"""Which outside systems may own allocation rows, and within what bounds?"""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from allocations.models.teams import Team


class SyncSource(models.Model):
    """One external system that owns its rows, with the ceilings an admin laid down."""

    class Mode(models.TextChoices):
        APPLY = "apply"
        PROPOSE = "propose"

    name = models.CharField(max_length=63, unique=True)
    team = models.ForeignKey(Team, models.PROTECT, related_name="sync_sources")
    clusters = ArrayField(models.CharField(max_length=63), default=list, blank=True)
    ceiling_per_row_gpus = models.PositiveIntegerField(null=True, blank=True)
    ceiling_sum_gpus = models.PositiveIntegerField(null=True, blank=True)
    mode = models.CharField(max_length=8, choices=Mode, default=Mode.PROPOSE)
    removal_limit = models.PositiveIntegerField(null=True, blank=True)
    version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
