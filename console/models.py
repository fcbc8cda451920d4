"""What the front room keeps: endpoints, plans and steps, what was seen, and what goes out to people and programs."""

from typing import TYPE_CHECKING

from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q

from allocations.models import Cluster, Team, User

if TYPE_CHECKING:
    from console.sessions import SessionStore


class ClusterEndpoint(models.Model):
    """How a cluster is reached, and where its push stands. Credentials are references, never values.

    Modes are per object class ("*" for all others): observe | propose | enforce. `lease_until` and
    `attempt` fence pushes: whoever holds the newest attempt may write.
    """

    class Driver(models.TextChoices):
        SLURM_CLI = "slurm_cli"
        SLURMRESTD = "slurmrestd"
        KUBERNETES = "kubernetes"
        FILES = "files"

    class State(models.TextChoices):
        IDLE = "idle"
        PENDING = "pending"
        APPLYING = "applying"
        CONVERGING = "converging"
        VERIFIED = "verified"
        WAITING = "waiting"
        DRIFTED = "drifted"
        FAILED = "failed"
        UNREACHABLE = "unreachable"

    cluster = models.OneToOneField(Cluster, models.PROTECT, related_name="endpoint")
    driver = models.CharField(max_length=16, choices=Driver)
    options = models.JSONField(default=dict, blank=True)
    credential = models.CharField(max_length=500, blank=True)
    modes = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=State, default=State.IDLE)
    sentence = models.CharField(max_length=1000, blank=True)
    failures = models.PositiveIntegerField(default=0)
    next_push_at = models.DateTimeField(null=True, blank=True)
    attempt = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_holder = models.CharField(max_length=255, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    verified_at = models.DateTimeField(null=True, blank=True)
    tried_generation = models.BigIntegerField(default=-1)
    version_seen = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ("cluster",)


class PushPlan(models.Model):
    """One ordered difference that was or will be applied to a cluster."""

    class State(models.TextChoices):
        DRY_RUN = "dry_run"
        WAITING = "waiting"
        APPROVED = "approved"
        APPLYING = "applying"
        APPLIED = "applied"
        VERIFIED = "verified"
        FAILED = "failed"
        SUPERSEDED = "superseded"
        DISCARDED = "discarded"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="plans")
    generation = models.BigIntegerField()
    attempt = models.BigIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State)
    is_drift = models.BooleanField(default=False)
    compromises = models.JSONField(default=list)
    gate_reasons = models.JSONField(default=list)
    fingerprint = models.CharField(max_length=64, blank=True)
    approved_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    sentence = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("cluster", "-id"), name="plan_by_cluster"),)

    @property
    def public_id(self) -> str:
        return f"P-{self.pk}"


class PushStep(models.Model):
    """One create, update or delete of a plan, with what a person could paste instead and what came of it."""

    class State(models.TextChoices):
        PLANNED = "planned"
        APPLYING = "applying"
        APPLIED = "applied"
        VERIFIED = "verified"
        FAILED = "failed"
        SKIPPED = "skipped"

    plan = models.ForeignKey(PushPlan, models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    verb = models.CharField(max_length=8)
    object_class = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    changes = models.JSONField(default=list)
    commands = models.JSONField(default=list)
    state = models.CharField(max_length=16, choices=State, default=State.PLANNED)
    output = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("plan", "number")
        constraints = (models.UniqueConstraint(fields=("plan", "number"), name="step_number_once_per_plan"),)


class ObservedObject(models.Model):
    """One object as last read on a cluster, ours or somebody else's."""

    class State(models.TextChoices):
        IN_STEP = "in_step"
        DRIFTED = "drifted"
        MISSING = "missing"
        UNWANTED = "unwanted"
        FOREIGN = "foreign"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="observed_objects")
    object_class = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    attributes = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=State)
    changes = models.JSONField(default=list)
    observed_at = models.DateTimeField()
    since_at = models.DateTimeField()

    class Meta:
        ordering = ("cluster", "object_class", "name")
        constraints = (
            models.UniqueConstraint(fields=("cluster", "object_class", "name"), name="object_observed_once"),
        )


class OwnedObject(models.Model):
    """An object that this Berth made or adopted. Cluster mark and this row must agree before a delete."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="owned_objects")
    object_class = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    generation = models.BigIntegerField()
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("cluster", "object_class", "name"), condition=Q(deleted_at__isnull=True), name="owned_once"
            ),
        )


class PersonSession(AbstractBaseSession):
    """A browser's session, with whose it is beside what Django keeps in it, so that a person can see and end theirs."""

    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="browser_sessions")

    @classmethod
    def get_session_store_class(cls) -> "type[SessionStore]":
        from console.sessions import SessionStore

        return SessionStore


class ApiToken(models.Model):
    """A bearer token, kept as SHA-256; the prefix is shown. It never can more than its owner can now."""

    owner = models.ForeignKey(User, models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, default="pat")
    prefix = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    source = models.ForeignKey("allocations.SyncSource", models.PROTECT, null=True, blank=True, related_name="+")
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)


class IdempotencyKey(models.Model):
    """A committed write and its answer, so that the same call again answers the same. Kept 7 days."""

    token = models.ForeignKey(ApiToken, models.CASCADE, related_name="+")
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=500)
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    answer = models.JSONField()
    etag = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("token", "method", "path", "key"), name="idempotency_key_once"),)


class Quote(models.Model):
    """A signed preview: holds nothing, works once, lives 10 minutes."""

    token_hash = models.CharField(max_length=64, unique=True)
    owner = models.ForeignKey(User, models.PROTECT, related_name="+")
    preview = models.JSONField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)


class Webhook(models.Model):
    """Where events are sent, signed. Secrets are encrypted with keys from outside the database."""

    owner = models.ForeignKey(User, models.PROTECT, related_name="webhooks")
    url = models.URLField(max_length=500)
    kinds = models.JSONField(default=list)
    secrets = models.JSONField(default=list)
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    @property
    def public_id(self) -> str:
        return f"W-{self.pk}"


class Delivery(models.Model):
    """One item on its way to a webhook or a mailbox, with every try."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, null=True, blank=True, related_name="deliveries")
    notice = models.ForeignKey("console.Notice", models.CASCADE, null=True, blank=True, related_name="deliveries")
    body = models.JSONField(default=dict)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    last_answer = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)


class Notice(models.Model):
    """Something a person should know (for information) or must do (needs you, until done)."""

    user = models.ForeignKey(User, models.CASCADE, related_name="notices")
    event = models.ForeignKey("allocations.Event", models.PROTECT, related_name="+")
    needs_you = models.BooleanField(default=False)
    sentence = models.CharField(max_length=500)
    href = models.CharField(max_length=500)
    done_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "event"), name="notice_once_per_person_and_event"),)


class NoticeChoice(models.Model):
    """How a person wants to hear of a kind of event."""

    user = models.ForeignKey(User, models.CASCADE, related_name="notice_choices")
    kind = models.CharField(max_length=64)
    channel = models.CharField(max_length=16)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "kind", "channel"), name="notice_choice_once"),)


class WhatIfRun(models.Model):
    """A simulation somebody asked for, and its result."""

    owner = models.ForeignKey(User, models.PROTECT, related_name="what_if_runs")
    team = models.ForeignKey(Team, models.PROTECT, null=True, blank=True, related_name="+")
    asked = models.JSONField()
    result = models.JSONField(null=True, blank=True)
    state = models.CharField(max_length=16, default="queued")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)


class Operation(models.Model):
    """A one-shot job: the row is the truth, a message only wakes. Lease and attempt fence workers."""

    owner = models.ForeignKey(User, models.PROTECT, null=True, related_name="operations")
    kind = models.CharField(max_length=64)
    payload = models.JSONField(default=dict)
    state = models.CharField(max_length=16, default="queued")
    progress_percent = models.PositiveSmallIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    available_at = models.DateTimeField()
    result = models.JSONField(null=True, blank=True)
    error = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)


class FeedCursor(models.Model):
    """How far a reader of events has come: everything up to (transaction_id, event_id) was handled."""

    name = models.CharField(max_length=63, unique=True)
    transaction_id = models.BigIntegerField(default=0)
    event_id = models.BigIntegerField(default=0)


class Heartbeat(models.Model):
    """When a part of the console last showed itself: worker, beat."""

    part = models.CharField(max_length=32, unique=True)
    at = models.DateTimeField()


class Installation(models.Model):
    """One row: the id that this Berth writes on clusters, so that two of them never claim each other's objects."""

    code = models.CharField(max_length=16, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
