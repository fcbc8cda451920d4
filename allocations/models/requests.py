"""What was asked: allocation requests, each version of them, and what people said about them."""

from django.db import models
from django.db.models import Q

from allocations.models.teams import Team, User


class AllocationRequest(models.Model):
    """The ask. It points to its approval case, never the reverse."""

    class Kind(models.TextChoices):
        NEW = "new"
        RENEWAL = "renewal"
        CHANGE = "change"
        EXTENSION = "extension"
        TRANSFER = "transfer"
        BOOST = "boost"
        SHARES = "shares"

    team = models.ForeignKey(Team, models.PROTECT, related_name="allocation_requests")
    kind = models.CharField(max_length=16, choices=Kind)
    decision = models.CharField(max_length=16, default="draft")
    allocation = models.ForeignKey(
        "allocations.Allocation", models.PROTECT, null=True, blank=True, related_name="requests"
    )
    awarded = models.ForeignKey(
        "allocations.Allocation", models.PROTECT, null=True, blank=True, related_name="awarded_by"
    )
    approval_case = models.OneToOneField(
        "allocations.ApprovalCase", models.PROTECT, null=True, blank=True, related_name="+"
    )
    version = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    @property
    def public_id(self) -> str:
        return f"Q-{self.pk}"


class RequestVersion(models.Model):
    """One version of what is asked, kept whole. Append-only."""

    request = models.ForeignKey(AllocationRequest, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    asked = models.JSONField()
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("request", "number"), name="request_version_once"),)


class Comment(models.Model):
    """What somebody wrote about a request or a reservation, to all or among reviewers."""

    request = models.ForeignKey(AllocationRequest, models.PROTECT, null=True, blank=True, related_name="comments")
    approval_case = models.ForeignKey(
        "allocations.ApprovalCase", models.PROTECT, null=True, blank=True, related_name="comments"
    )
    author = models.ForeignKey(User, models.PROTECT, related_name="+")
    text = models.CharField(max_length=4000)
    reviewers_only = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.CheckConstraint(
                name="comment_has_a_subject", condition=Q(request__isnull=False) | Q(approval_case__isnull=False)
            ),
        )
