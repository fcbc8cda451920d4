"""Every row of the ledger room, by family."""

from allocations.models.approvals import ApprovalCase, ApprovalPolicy, ApprovalStep, Decision
from allocations.models.events import Event, EventSeal
from allocations.models.fleet import Block, Cluster, Flavor, GpuModel, Level, Node, Rack
from allocations.models.grants import Allocation, Tier
from allocations.models.health import Observation, Outage, RunningJob
from allocations.models.ledger import Charge, JobRecord
from allocations.models.requests import AllocationRequest, Comment, RequestVersion
from allocations.models.sync import SyncSource
from allocations.models.teams import (
    ClusterUsername,
    Delegation,
    Elevation,
    Invitation,
    Membership,
    RoleGrant,
    Team,
    User,
)

__all__ = [
    "Allocation",
    "AllocationRequest",
    "ApprovalCase",
    "ApprovalPolicy",
    "ApprovalStep",
    "Block",
    "Charge",
    "Cluster",
    "ClusterUsername",
    "Comment",
    "Decision",
    "Delegation",
    "Elevation",
    "Event",
    "EventSeal",
    "Flavor",
    "GpuModel",
    "Invitation",
    "JobRecord",
    "Level",
    "Membership",
    "Node",
    "Observation",
    "Outage",
    "Rack",
    "RequestVersion",
    "RoleGrant",
    "RunningJob",
    "SyncSource",
    "Team",
    "Tier",
    "User",
]
