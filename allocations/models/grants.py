"""What was granted: allocations, and the tiers work runs in."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from allocations.models.fleet import Cluster, Flavor, GpuModel
from allocations.models.teams import Team


class Tier(models.Model):
    """Named bundle of priority, preemption rights and limits: a Slurm QOS, a Kueue WorkloadPriorityClass."""

    class Mode(models.TextChoices):
        REQUEUE = "requeue"
        CANCEL = "cancel"
        SUSPEND = "suspend"

    name = models.CharField(max_length=63, unique=True)
    priority = models.IntegerField(default=0)
    preempts = ArrayField(models.CharField(max_length=63), default=list, blank=True)
    preemptible = models.BooleanField(default=False)
    mode = models.CharField(max_length=8, choices=Mode, default=Mode.REQUEUE)
    notice_minutes = models.PositiveIntegerField(default=0)
    protected_minutes = models.PositiveIntegerField(default=0)
    max_walltime_minutes = models.PositiveIntegerField(null=True, blank=True)
    max_gpus_per_job = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("-priority", "name")

    def __str__(self) -> str:
        return self.name


class Allocation(models.Model):
    """The grant: team x flavor x period, or team x gpu_model over clusters with a split.

    The period is half-open. A limit of null is no limit. A grant is never rewritten: it is revoked or followed.
    """

    class Split(models.TextChoices):
        FIXED = "fixed"
        BY_CAPACITY = "by_capacity"
        FOLLOW_DEMAND = "follow_demand"

    class OnExhausted(models.TextChoices):
        BURST_ONLY = "burst_only"
        HOLD_NEW = "hold_new"
        STOP = "stop"

    team = models.ForeignKey(Team, models.PROTECT, related_name="allocations")
    flavor = models.ForeignKey(Flavor, models.PROTECT, null=True, blank=True, related_name="allocations")
    gpu_model = models.ForeignKey(GpuModel, models.PROTECT, null=True, blank=True, related_name="allocations")
    clusters = models.ManyToManyField(Cluster, blank=True, related_name="model_allocations")
    split = models.CharField(max_length=16, choices=Split, default=Split.FIXED)
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="parts")
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    guaranteed_gpus = models.PositiveIntegerField(default=0)
    borrowing_limit_gpus = models.PositiveIntegerField(null=True, blank=True)
    lending_limit_gpus = models.PositiveIntegerField(null=True, blank=True)
    gpu_hours = models.DecimalField(max_digits=16, decimal_places=2, null=True, blank=True)
    max_walltime_minutes = models.PositiveIntegerField(null=True, blank=True)
    max_gpus_per_job = models.PositiveIntegerField(null=True, blank=True)
    tier = models.ForeignKey(Tier, models.PROTECT, null=True, blank=True, related_name="allocations")
    on_exhausted = models.CharField(max_length=16, choices=OnExhausted, default=OnExhausted.BURST_ONLY)
    revoked_at = models.DateTimeField(null=True, blank=True)
    source = models.ForeignKey(
        "allocations.SyncSource", models.PROTECT, null=True, blank=True, related_name="allocations"
    )
    external_id = models.CharField(max_length=255, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey("allocations.User", models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(name="allocation_ends_after_it_starts", condition=Q(end_at__gt=F("start_at"))),
            models.CheckConstraint(
                name="allocation_of_a_flavor_or_a_model",
                condition=Q(flavor__isnull=False, gpu_model__isnull=True)
                | Q(flavor__isnull=True, gpu_model__isnull=False),
            ),
            models.UniqueConstraint(
                fields=("source", "external_id"), condition=Q(source__isnull=False), name="synced_row_once_per_source"
            ),
        )

    @property
    def public_id(self) -> str:
        return f"A-{self.pk}"
