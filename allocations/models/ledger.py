"""What was used: append-only charges, and the jobs they come from."""

from django.db import models

from allocations.models.fleet import Cluster, Flavor
from allocations.models.grants import Allocation
from allocations.models.teams import Team


class Charge(models.Model):
    """One ledger line: GPU-hours of one kind for a team and flavor in one hour. A correction is another line."""

    class Kind(models.TextChoices):
        JOB = "job"
        RESERVED_IDLE = "reserved_idle"
        SPARES = "spares"
        DRAIN = "drain"
        CREDIT = "credit"
        CORRECTION = "correction"

    team = models.ForeignKey(Team, models.PROTECT, related_name="charges")
    flavor = models.ForeignKey(Flavor, models.PROTECT, related_name="charges")
    allocation = models.ForeignKey(Allocation, models.PROTECT, null=True, blank=True, related_name="charges")
    kind = models.CharField(max_length=16, choices=Kind)
    hour_at = models.DateTimeField()
    gpu_hours = models.DecimalField(max_digits=16, decimal_places=6)
    subject = models.CharField(max_length=64, blank=True)
    corrects = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="corrections")
    recorded_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(fields=("team", "flavor", "hour_at"), name="charge_by_team_and_hour"),)


class JobRecord(models.Model):
    """A job that ended (or was last seen), as the scheduler's accounting tells it."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="job_records")
    job_id = models.CharField(max_length=253)
    account = models.CharField(max_length=255, blank=True)
    username = models.CharField(max_length=255, blank=True)
    flavor = models.ForeignKey(Flavor, models.PROTECT, null=True, blank=True, related_name="+")
    gpus = models.PositiveIntegerField(default=0)
    submitted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=32)
    reservation = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("cluster", "job_id", "submitted_at"), name="job_recorded_once"),)
