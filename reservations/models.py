"""Who holds which nodes, when: reservations, their holds, series, waiting asks, and the rules against hoarding."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models import F, Q

from allocations.models import Allocation, ApprovalCase, Cluster, Flavor, Node, Team, Tier, User


class Series(models.Model):
    """A recurring reservation with an IANA zone."""

    team = models.ForeignKey(Team, models.PROTECT, related_name="series")
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="series")
    recurrence = models.JSONField()
    zone = models.CharField(max_length=64)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)


class Reservation(models.Model):
    """A team's right to named nodes for a period: [start_at, end_at), on whole minutes.

    `decision` is stored; the phase that time brings is derived (states.phase). Holds are the law about nodes; the
    masks beside them say the same in a form that a snapshot reads in milliseconds: entry i means that of rack
    mask_racks[i] the nodes at positions 64*mask_words[i] + each bit of mask_bits[i] (as signed 64-bit) are held.
    `wanted_generation` is the cluster's desired_generation that carries this reservation's last change.
    """

    class Decision(models.TextChoices):
        DRAFT = "draft"
        REQUESTED = "requested"
        COUNTER_OFFERED = "counter_offered"
        APPROVED = "approved"
        REJECTED = "rejected"
        WITHDRAWN = "withdrawn"
        LAPSED = "lapsed"
        CANCELLED = "cancelled"

    class Funding(models.TextChoices):
        POOL = "pool"
        OWN = "own"
        LOAN = "loan"
        OVERCOMMIT = "overcommit"

    class AtEnd(models.TextChoices):
        STOP = "stop"
        REQUEUE = "requeue"
        RUN_OVER = "run_over"

    class Spares(models.TextChoices):
        HELD = "held"
        SHARED_POOL = "shared_pool"
        PREEMPTIBLE_USE = "preemptible_use"
        NONE = "none"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="reservations")
    team = models.ForeignKey(Team, models.PROTECT, related_name="reservations")
    flavor = models.ForeignKey(Flavor, models.PROTECT, related_name="reservations")
    allocation = models.ForeignKey(Allocation, models.PROTECT, null=True, blank=True, related_name="reservations")
    series = models.ForeignKey(Series, models.PROTECT, null=True, blank=True, related_name="occurrences")
    approval_case = models.OneToOneField(
        ApprovalCase, models.PROTECT, null=True, blank=True, related_name="reservation"
    )
    decision = models.CharField(max_length=16, choices=Decision, default=Decision.DRAFT)
    purpose = models.CharField(max_length=500)
    spec = models.JSONField()
    score = models.JSONField(default=dict, blank=True)
    start_at = models.DateTimeField()
    end_at = models.DateTimeField()
    hold_expires_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    mask_racks = ArrayField(models.BigIntegerField(), default=list)
    mask_words = ArrayField(models.IntegerField(), default=list)
    mask_bits = ArrayField(models.BigIntegerField(), default=list)
    funding = models.CharField(max_length=16, choices=Funding, default=Funding.POOL)
    lender = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="loans")
    at_end = models.CharField(max_length=16, choices=AtEnd, default=AtEnd.STOP)
    run_over_minutes = models.PositiveIntegerField(default=0)
    spares = models.CharField(max_length=16, choices=Spares, default=Spares.HELD)
    shared_with = models.ManyToManyField(Team, blank=True, related_name="shared_reservations")
    wanted_generation = models.BigIntegerField(default=0)
    external_id = models.CharField(max_length=255, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("cluster", "decision", "end_at"), name="reservation_by_cluster"),)
        constraints = (
            models.CheckConstraint(name="reservation_ends_after_it_starts", condition=Q(end_at__gt=F("start_at"))),
            models.CheckConstraint(
                name="reservation_on_whole_minutes", condition=Q(start_at__second=0) & Q(end_at__second=0)
            ),
            models.CheckConstraint(
                name="only_a_request_waits_on_an_expiry",
                condition=Q(hold_expires_at__isnull=True) | Q(decision__in=("requested", "counter_offered")),
            ),
        )

    @property
    def public_id(self) -> str:
        return f"R-{self.pk}"

    @property
    def name_on_cluster(self) -> str:
        return f"berth-{self.public_id}"


class Hold(models.Model):
    """One node for one period by one reservation; given back by setting released_at, never deleted.

    A hold counts for [start, min(end, released_at)). Provisional until the reservation is approved.
    """

    reservation = models.ForeignKey(Reservation, models.PROTECT, related_name="holds")
    node = models.ForeignKey(Node, models.PROTECT, related_name="holds")
    period = DateTimeRangeField()
    is_spare = models.BooleanField(default=False)
    is_provisional = models.BooleanField(default=True)
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (GistIndex(fields=("period",), name="hold_period", condition=Q(released_at__isnull=True)),)
        constraints = (
            ExclusionConstraint(
                name="node_held_once",
                expressions=(("node", RangeOperators.EQUAL), ("period", RangeOperators.OVERLAPS)),
                condition=Q(released_at__isnull=True),
            ),
            models.CheckConstraint(name="hold_is_not_empty", condition=Q(period__isempty=False)),
        )


class WaitingAsk(models.Model):
    """An ask that did not fit and waits for capacity."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="waiting_asks")
    team = models.ForeignKey(Team, models.PROTECT, related_name="waiting_asks")
    spec = models.JSONField()
    purpose = models.CharField(max_length=500)
    until_at = models.DateTimeField(null=True, blank=True)
    reservation = models.OneToOneField(Reservation, models.PROTECT, null=True, blank=True, related_name="waited_as")
    ended_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)


class ReservationPolicy(models.Model):
    """One version of the rules against hoarding, per flavor and tier (neither given: all). Null is no limit."""

    name = models.CharField(max_length=63)
    number = models.PositiveIntegerField(default=1)
    flavor = models.ForeignKey(Flavor, models.PROTECT, null=True, blank=True, related_name="reservation_policies")
    tier = models.ForeignKey(Tier, models.PROTECT, null=True, blank=True, related_name="reservation_policies")
    reservable_share_percent = models.PositiveSmallIntegerField(default=30)
    team_share_percent = models.PositiveSmallIntegerField(null=True, blank=True)
    active_count = models.PositiveIntegerField(null=True, blank=True)
    future_count = models.PositiveIntegerField(null=True, blank=True)
    rack_hours_ahead = models.PositiveIntegerField(null=True, blank=True)
    lead_minutes = models.PositiveIntegerField(default=0)
    horizon_days = models.PositiveIntegerField(default=400)
    max_duration_minutes = models.PositiveIntegerField(null=True, blank=True)
    open_asks_per_team = models.PositiveIntegerField(default=1)
    cool_down_minutes = models.PositiveIntegerField(default=0)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("name", "number"), name="reservation_policy_version_once"),
            models.CheckConstraint(
                name="reservable_share_is_a_percentage", condition=Q(reservable_share_percent__lte=100)
            ),
        )
