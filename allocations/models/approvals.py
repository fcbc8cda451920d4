"""How asks are decided: policies, one case per ask, its ordered steps, and decisions that are never changed."""

from django.db import models
from django.db.models import Q

from allocations.models.teams import User


class ApprovalPolicy(models.Model):
    """One version of a rule: which asks it matches, and the steps they need. Version n+1 replaces n, both stay."""

    name = models.CharField(max_length=63)
    number = models.PositiveIntegerField(default=1)
    position = models.PositiveIntegerField(default=100)
    matches = models.JSONField(default=dict, blank=True)
    steps = models.JSONField(default=list, blank=True)
    automatic = models.CharField(max_length=8, blank=True, choices=(("approve", "approve"), ("refuse", "refuse")))
    reason = models.CharField(max_length=500, blank=True)
    hold_minutes = models.PositiveIntegerField(default=1440)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("position", "name")
        constraints = (
            models.UniqueConstraint(fields=("name", "number"), name="policy_version_once"),
            models.UniqueConstraint(
                fields=("name",), condition=Q(retired_at__isnull=True), name="one_policy_version_in_force"
            ),
        )


class ApprovalCase(models.Model):
    """One ask's path, copied from the policy in force when it was submitted."""

    policy = models.ForeignKey(ApprovalPolicy, models.PROTECT, null=True, related_name="cases")
    requester = models.ForeignKey(User, models.PROTECT, related_name="+")
    subject_version = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)


class ApprovalStep(models.Model):
    """One ordered hurdle: a role and how many of its holders must say yes."""

    case = models.ForeignKey(ApprovalCase, models.PROTECT, related_name="steps")
    number = models.PositiveSmallIntegerField()
    role = models.CharField(max_length=16)
    quorum = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ("case", "number")
        constraints = (
            models.UniqueConstraint(fields=("case", "number"), name="step_number_once_per_case"),
            models.CheckConstraint(name="quorum_is_at_least_one", condition=Q(quorum__gte=1)),
        )


class Decision(models.Model):
    """One person's recorded verdict on one step. Append-only; unique per step and approver."""

    class Verdict(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"
        ASK_CHANGES = "ask_changes"
        OFFER = "offer"

    step = models.ForeignKey(ApprovalStep, models.PROTECT, related_name="decisions")
    approver = models.ForeignKey(User, models.PROTECT, related_name="decisions")
    on_behalf_of = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    verdict = models.CharField(max_length=16, choices=Verdict)
    reason = models.CharField(max_length=2000, blank=True)
    counter_offer = models.JSONField(null=True, blank=True)
    subject_version = models.PositiveIntegerField(default=1)
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ("decided_at", "id")
        constraints = (models.UniqueConstraint(fields=("step", "approver"), name="one_decision_per_step_and_approver"),)

    @property
    def public_id(self) -> str:
        return f"D-{self.pk}"
