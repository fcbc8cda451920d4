"""What exists: clusters, their network levels, blocks, racks, nodes and the kinds of GPU in them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q


class Lifecycle(models.TextChoices):
    """Where a thing stands between its order and its end."""

    ORDERED = "ordered"
    BURN_IN = "burn_in"
    PRODUCTION = "production"
    REPAIR = "repair"
    RETIRED = "retired"


class Cluster(models.Model):
    """One scheduler's domain. The two counters are the truth about what must be pushed and what a preview saw.

    `desired_generation` rises whenever what must be pushed changed, `applied_generation` is set to what was
    verified; `snapshot_version` rises with anything a preview sees. All are bumped in the writing transaction.
    `inventory_mark` is a new random word with each change of what the cluster consists of; caches of it are keyed so.
    `topology_labels` are the node labels that tell a node's place, highest level first and the rack last.
    """

    class Kind(models.TextChoices):
        SLURM = "slurm"
        KUEUE = "kueue"
        VOLCANO = "volcano"
        KAI = "kai"
        YUNIKORN = "yunikorn"
        SLINKY = "slinky"

    class Disclosure(models.TextChoices):
        NAMES = "names"
        BARE = "bare"

    class DriftPolicy(models.TextChoices):
        RESTORE = "restore"
        ASK = "ask"

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=16, choices=Kind)
    zone = models.CharField(max_length=64, default="UTC")
    lifecycle = models.CharField(max_length=16, choices=Lifecycle, default=Lifecycle.PRODUCTION)
    contract_ends_at = models.DateTimeField(null=True, blank=True)
    disclosure = models.CharField(max_length=8, choices=Disclosure, default=Disclosure.NAMES)
    drift_policy = models.CharField(max_length=8, choices=DriftPolicy, default=DriftPolicy.RESTORE)
    desired_generation = models.BigIntegerField(default=0)
    applied_generation = models.BigIntegerField(default=0)
    snapshot_version = models.BigIntegerField(default=0)
    inventory_mark = models.CharField(max_length=32, blank=True)
    topology_labels = ArrayField(models.CharField(max_length=317), default=list, blank=True)
    frozen_at = models.DateTimeField(null=True, blank=True)
    frozen_reason = models.CharField(max_length=500, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                name="applied_never_ahead_of_desired", condition=Q(applied_generation__lte=F("desired_generation"))
            ),
            models.CheckConstraint(
                name="cluster_name_is_plain", condition=Q(name__regex=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
            ),
        )

    def __str__(self) -> str:
        return self.name


class GpuModel(models.Model):
    """A kind of GPU, fleet-wide: H100, GB200."""

    name = models.CharField(max_length=63, unique=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Flavor(models.Model):
    """A kind of node in one cluster with its native words. 0 GPUs per node: counted in nodes and node-hours."""

    class NvlinkDomain(models.TextChoices):
        RACK = "rack"
        NODE = "node"
        NONE = "none"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="flavors")
    name = models.CharField(max_length=63)
    gpu_model = models.ForeignKey(GpuModel, models.PROTECT, null=True, blank=True, related_name="flavors")
    gpus_per_node = models.PositiveIntegerField()
    nodes_per_rack = models.PositiveIntegerField()
    nvlink_domain = models.CharField(max_length=4, choices=NvlinkDomain, default=NvlinkDomain.RACK)
    turnaround_minutes = models.PositiveIntegerField(default=0)
    gres_type = models.CharField(max_length=63, blank=True)
    partition = models.CharField(max_length=255, blank=True)
    node_labels = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (models.UniqueConstraint(fields=("cluster", "name"), name="flavor_named_once_per_cluster"),)

    def __str__(self) -> str:
        return self.name


class Level(models.Model):
    """A named network level of a cluster above the rack; position 0 is `block`, the lowest."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="levels")
    name = models.CharField(max_length=63)
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ("cluster", "position")
        constraints = (
            models.UniqueConstraint(fields=("cluster", "position"), name="level_position_once_per_cluster"),
            models.UniqueConstraint(fields=("cluster", "name"), name="level_named_once_per_cluster"),
        )

    def __str__(self) -> str:
        return self.name


class Block(models.Model):
    """One place at a level: racks lie in blocks of the lowest level, blocks in blocks of the next."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="blocks")
    level = models.ForeignKey(Level, models.PROTECT, related_name="blocks")
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="children")
    name = models.CharField(max_length=255)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (models.UniqueConstraint(fields=("cluster", "level", "name"), name="block_named_once_per_level"),)

    def __str__(self) -> str:
        return self.name


class Rack(models.Model):
    """One NVLink domain: the unit of placement. `cabinet` is only a label.

    `positions_given` counts the positions ever given to nodes here: the next node gets that number.
    The pseudo-rack of nodes without topology has is_pseudo set; asks for racks never use it.
    """

    class Nvlink(models.TextChoices):
        OK = "ok"
        DEGRADED = "degraded"
        BROKEN = "broken"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="racks")
    block = models.ForeignKey(Block, models.PROTECT, null=True, blank=True, related_name="racks")
    flavor = models.ForeignKey(Flavor, models.PROTECT, related_name="racks")
    name = models.CharField(max_length=255)
    cabinet = models.CharField(max_length=255, blank=True)
    is_pseudo = models.BooleanField(default=False)
    positions_given = models.PositiveIntegerField(default=0)
    nvlink = models.CharField(max_length=8, choices=Nvlink, default=Nvlink.OK)
    lifecycle = models.CharField(max_length=16, choices=Lifecycle, default=Lifecycle.PRODUCTION)
    in_service_at = models.DateTimeField(null=True, blank=True)
    out_of_service_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (models.UniqueConstraint(fields=("cluster", "name"), name="rack_named_once_per_cluster"),)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """One OS host: what is held, drained and scheduled.

    `position` is its place in the rack, given once and never reused, so that stored masks keep their meaning.
    A node absent from an import becomes gone (gone_at), never deleted.
    """

    class Condition(models.TextChoices):
        HEALTHY = "healthy"
        SUSPECT = "suspect"
        FAILED = "failed"
        UNKNOWN = "unknown"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="nodes")
    rack = models.ForeignKey(Rack, models.PROTECT, related_name="nodes")
    flavor = models.ForeignKey(Flavor, models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=253)
    position = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField(default=0)
    cabinet = models.CharField(max_length=255, blank=True)
    labels = models.JSONField(default=dict, blank=True)
    condition = models.CharField(max_length=8, choices=Condition, default=Condition.HEALTHY)
    condition_since_at = models.DateTimeField(null=True, blank=True)
    is_drained = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, blank=True)
    lifecycle = models.CharField(max_length=16, choices=Lifecycle, default=Lifecycle.PRODUCTION)
    expected_back_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("cluster", "name")
        constraints = (
            models.UniqueConstraint(fields=("cluster", "name"), name="node_named_once_per_cluster"),
            models.UniqueConstraint(fields=("rack", "position"), name="node_position_once_per_rack"),
        )

    def __str__(self) -> str:
        return self.name
