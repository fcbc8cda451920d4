"""Who lives in the demo? (an organisation's tree of teams, its people, what each team was granted, the rules)"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from allocations import queries as ledger
from allocations.models import Cluster, Flavor, Team, Tier, User
from allocations.services import approvals, grants, teams
from reservations.services import grants as upper_grants
from reservations.services.policies import set_reservation_policy

# (path, title, shares): parents first.
TEAMS = (
    ("acme", "Acme Research", 1),
    ("acme/vision", "Vision", 30),
    ("acme/vision/pretrain", "Vision pretraining", 20),
    ("acme/vision/tracking", "Tracking", 10),
    ("acme/llm", "Language models", 50),
    ("acme/llm/pretrain", "Language pretraining", 30),
    ("acme/llm/post-training", "Post-training", 15),
    ("acme/llm/eval", "Evaluation", 5),
    ("acme/speech", "Speech", 15),
    ("acme/robotics", "Robotics", 10),
    ("acme/infra", "Infrastructure", 5),
)
# The people whose passwords are printed: (address, name, what they are for).
SIGN_INS = (
    ("lead@demo.berth", "Lea Lindqvist", "lead of acme/vision: asks for racks"),
    ("approver@demo.berth", "Amir Haddad", "approver: decides what is asked"),
    ("operator@demo.berth", "Oona Virtanen", "operator: runs the clusters"),
    ("auditor@demo.berth", "Aude Marchand", "auditor: reads everything, writes nothing"),
    ("admin@demo.berth", "Adaeze Obi", "admin: gives roles"),
)
LEADS = (
    ("ada@berth.example", "Ada Okonkwo", "acme/llm"),
    ("bo@berth.example", "Bo Nyström", "acme/speech"),
    ("chen@berth.example", "Chen Wei", "acme/robotics"),
    ("dora@berth.example", "Dóra Kiss", "acme/infra"),
    ("lead@demo.berth", "Lea Lindqvist", "acme/vision"),
)
MEMBERS = (
    ("emil@berth.example", "Emil Brandt", "acme/vision/pretrain"),
    ("farah@berth.example", "Farah Aziz", "acme/vision/tracking"),
    ("goro@berth.example", "Goro Tanaka", "acme/llm/pretrain"),
    ("hana@berth.example", "Hana Novák", "acme/llm/post-training"),
    ("ivo@berth.example", "Ivo Petrov", "acme/llm/eval"),
    ("jun@berth.example", "Jun Park", "acme/speech"),
    ("kai@berth.example", "Kai Moana", "acme/robotics"),
)
# Part of a flavor's healthy GPUs, in thousandths, that each team is guaranteed; and tier.
GUARANTEES = (
    ("acme/llm", 330, "high"),
    ("acme/vision", 250, "high"),
    ("acme/speech", 80, "standard"),
    ("acme/robotics", 40, "standard"),
    ("acme/infra", 0, "standard"),
)
TIERS: tuple[dict[str, Any], ...] = (
    {"name": "burst", "priority": 10, "preemptible": True, "notice_minutes": 5},
    {"name": "standard", "priority": 50, "preempts": ["burst"], "protected_minutes": 30},
    {"name": "high", "priority": 100, "preempts": ["burst"], "protected_minutes": 60, "max_walltime_minutes": 10080},
)


@dataclass(frozen=True, slots=True)
class Cast:
    """Everybody and every team, by address and by path."""

    people: dict[str, User]
    teams: dict[str, Team]

    def lead_of(self, path: str) -> User:
        """The demo lead of the team or of the nearest team above it."""
        address = {team: address for address, _, team in LEADS}
        while path not in address:
            path = path.rpartition("/")[0]
        return self.people[address[path]]


def settle(passwords: dict[str, str], at: datetime) -> Cast:
    """Make teams, people and roles. `passwords` by address; people without one cannot sign in."""
    rows: dict[str, Team] = {}
    for path, title, shares in TEAMS:
        parent, _, name = path.rpartition("/")
        rows[path] = teams.add_team(name=name, parent=rows.get(parent), title=title, shares=shares, actor=None, at=at)
    people: dict[str, User] = {}
    for email, name, _ in (*SIGN_INS, *LEADS, *MEMBERS):
        if email not in people:
            people[email] = teams.add_person(
                email=email, name=name, password=passwords.get(email), is_demo=True, actor=None, at=at
            )
    for members, role in ((LEADS, "lead"), (MEMBERS, "member")):
        for email, _, path in members:
            teams.set_member(team=rows[path], user=people[email], role=role, actor=None, at=at)
    for role in ("approver", "operator", "auditor", "admin"):
        teams.grant_role(user=people[f"{role}@demo.berth"], role=role, actor=None, at=at)
    return Cast(people, rows)


def lay_down_rules(at: datetime) -> dict[str, Tier]:
    """Tiers, the approval policies, and the rule against hoarding; returns tiers by name."""
    tiers = {row["name"]: grants.set_tier(**row, actor=None, at=at) for row in TIERS}
    approvals.set_policy(
        name="large",
        position=10,
        matches={"kind": "reservation", "min_racks": 6},
        steps=[{"role": "approver", "quorum": 1}, {"role": "operator", "quorum": 1}],
        hold_minutes=2880,
        actor=None,
        at=at,
    )
    approvals.set_policy(name="standard", position=100, matches={"kind": "reservation"}, actor=None, at=at)
    set_reservation_policy(
        name="fair-use",
        reservable_share_percent=70,
        team_share_percent=50,
        open_asks_per_team=5,
        horizon_days=180,
        max_duration_minutes=14 * 1440,
        actor=None,
        at=at,
    )
    return tiers


def grant_all(cast: Cast, tiers: dict[str, Tier], at: datetime, cluster: Cluster | None = None) -> None:
    """Give each team its part of every flavor that has GPUs (of one cluster, if named), for half a year."""
    flavors = Flavor.objects.filter(gpus_per_node__gt=0).select_related("cluster").order_by("cluster_id", "name")
    for flavor in flavors.filter(cluster=cluster) if cluster else flavors:
        healthy = ledger.healthy_gpus([flavor])[flavor.pk]
        for path, thousandths, tier in GUARANTEES:
            whole_nodes = healthy * thousandths // 1000 // flavor.gpus_per_node
            guaranteed = whole_nodes * flavor.gpus_per_node
            upper_grants.grant(
                team=cast.teams[path],
                flavor=flavor,
                start_at=at,
                end_at=at + timedelta(days=240),
                guaranteed_gpus=guaranteed,
                borrowing_limit_gpus=max(guaranteed // 2, 8 * flavor.gpus_per_node),
                lending_limit_gpus=guaranteed // 2,
                gpu_hours=max(guaranteed, 288) * 24 * 120,
                max_walltime_minutes=7 * 1440,
                tier=tiers[tier],
                actor=None,
                at=at,
            )
