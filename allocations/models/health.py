"""How things are: what was reported about nodes and racks, planned outages, and the jobs that run."""

from django.contrib.postgres.fields import ArrayField, DateTimeRangeField
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models import Q

from allocations.models.fleet import Cluster, Node, Rack


class Observation(models.Model):
    """One timestamped report about a node, one of its GPUs or a rack's NVLink. Append-only."""

    class Source(models.TextChoices):
        SCHEDULER = "scheduler"
        HEALTH_SYSTEM = "health_system"
        PERSON = "person"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="observations")
    node = models.ForeignKey(Node, models.PROTECT, null=True, blank=True, related_name="observations")
    rack = models.ForeignKey(Rack, models.PROTECT, null=True, blank=True, related_name="observations")
    gpu_index = models.PositiveSmallIntegerField(null=True, blank=True)
    source = models.CharField(max_length=16, choices=Source)
    condition = models.CharField(max_length=16)
    is_drained = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, blank=True)
    until_at = models.DateTimeField(null=True, blank=True)
    observed_at = models.DateTimeField()

    class Meta:
        ordering = ("-observed_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="observation_of_a_node_or_a_rack", condition=Q(node__isnull=False) | Q(rack__isnull=False)
            ),
        )


class Outage(models.Model):
    """A planned period in which nodes are not free (maintenance)."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="outages")
    name = models.CharField(max_length=200)
    reason = models.CharField(max_length=500, blank=True)
    period = DateTimeRangeField()
    nodes = models.ManyToManyField(Node, related_name="outages")
    cancelled_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey("allocations.User", models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        indexes = (GistIndex(fields=("period",), name="outage_period"),)
        constraints = (models.CheckConstraint(name="outage_ends_after_it_starts", condition=Q(period__isempty=False)),)

    @property
    def public_id(self) -> str:
        return f"M-{self.pk}"


class RunningJob(models.Model):
    """A job as last seen on the cluster. Without ends_at it blocks its nodes until it is gone."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="running_jobs")
    job_id = models.CharField(max_length=253)
    account = models.CharField(max_length=255, blank=True)
    username = models.CharField(max_length=255, blank=True)
    tier = models.CharField(max_length=63, blank=True)
    nodes = ArrayField(models.CharField(max_length=253))
    started_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    observed_at = models.DateTimeField()

    class Meta:
        ordering = ("cluster", "job_id")
        constraints = (models.UniqueConstraint(fields=("cluster", "job_id"), name="job_seen_once_per_cluster"),)
