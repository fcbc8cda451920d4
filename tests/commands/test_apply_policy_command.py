"""Does a policy file come into force whole, once, and with a place for every fault?"""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from allocations.models import Allocation, ApprovalPolicy, Event, Membership, RoleGrant, Team, Tier
from allocations.services import fleet
from console.demo.inventories import ClusterShape, files_of
from reservations.models import ReservationPolicy
from scheduling.inventory import parse

pytestmark = pytest.mark.django_db

POLICY = """\
people:
  - email: lea@x.example
    name: Lea
    roles: [{role: approver, team: acme}]
teams:
  - {path: acme, title: Acme}
  - {path: acme/vision, shares: 30}
memberships:
  - {team: acme/vision, user: Lea@x.example, role: lead}
tiers:
  - {name: burst, preemptible: true}
  - {name: high, priority: 100, preempts: [burst], max_gpus_per_job: unlimited}
allocations:
  - team: acme/vision
    cluster: sol
    flavor: gb200-nvl72
    start_at: 2026-01-01T00:00:00Z
    end_at: "2046-01-01T00:00:00Z"
    guaranteed_gpus: 72
    borrowing_limit_gpus: unlimited
    gpu_hours: 1200000.5
    tier: high
approval_policies:
  - {name: large, position: 10, matches: {min_racks: 6}, steps: [{role: approver, quorum: 2}]}
reservation_policies:
  - {name: fair, reservable_share_percent: 50, max_duration_minutes: 20160}
"""


@pytest.fixture
def path(tmp_path):
    now = timezone.now()
    cluster = fleet.connect_cluster(name="sol", kind="slurm", zone="UTC", actor=None, at=now)
    read = parse("slurm", files_of(ClusterShape("sol", "slurm", "UTC", 1, 2)))
    fleet.import_fleet(cluster=cluster, inventory=read, actor=None, at=now)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


def test_a_policy_is_applied_once_and_again_changes_nothing(path, capsys):
    call_command("apply_policy", str(path))
    assert "9 rows changed, 0 are" in capsys.readouterr().out
    assert Membership.objects.get().user.email == "lea@x.example"
    assert RoleGrant.objects.get().team.path == "acme"
    allocation = Allocation.objects.get()
    assert (allocation.team.path, allocation.guaranteed_gpus, allocation.borrowing_limit_gpus) == (
        "acme/vision",
        72,
        None,
    )
    assert Tier.objects.get(name="high").max_gpus_per_job is None
    assert ApprovalPolicy.objects.get().steps == [{"role": "approver", "quorum": 2}]
    assert ReservationPolicy.objects.get().reservable_share_percent == 50
    events = Event.objects.count()
    call_command("apply_policy", str(path))
    assert "0 rows changed, 9 are as they were" in capsys.readouterr().out
    assert Event.objects.count() == events


def test_a_dry_run_says_the_same_and_writes_nothing(path, capsys):
    events = Event.objects.count()
    call_command("apply_policy", str(path), "--dry-run")
    assert "9 rows would change" in capsys.readouterr().out
    assert (Team.objects.count(), Event.objects.count()) == (0, events)


def test_a_changed_grant_is_followed_by_another_and_stays_so(path, capsys):
    call_command("apply_policy", str(path))
    path.write_text(POLICY.replace("guaranteed_gpus: 72", "guaranteed_gpus: 36"))
    for expected in ("1 rows changed", "0 rows changed"):
        capsys.readouterr()
        call_command("apply_policy", str(path))
        assert expected in capsys.readouterr().out
    assert Allocation.objects.filter(revoked_at=None).get().guaranteed_gpus == 36
    assert Allocation.objects.exclude(revoked_at=None).get().guaranteed_gpus == 72


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shares: 30", "sharez: 30", r"policy\.yaml:7: /teams/1/sharez: unknown key"),
        ("memberships:", "memberz:", r"policy\.yaml:8: /memberz: unknown key"),
        ("shares: 30", "shares: many", r"policy\.yaml:7: /teams/1/shares: a whole number is expected"),
        ("    flavor: gb200-nvl72\n", "", r"policy\.yaml:14: /allocations/0: flavor is missing"),
        ("flavor: gb200-nvl72", "flavor: b300", r"policy\.yaml:16: /allocations/0/flavor: sol has no flavor b300"),
        ("role: lead}", "role: boss}", r"policy\.yaml:9: /memberships/0/role: "),
        ('end_at: "2046-01-01T00:00:00Z"', "end_at: 2046-01-01T00:00:00", r"policy\.yaml:18: /allocations/0/end_at: "),
        ("guaranteed_gpus: 72", "guaranteed_gpus: 720000", r"policy\.yaml:14: /allocations/0: .* too many"),
        ("title: Acme", "title: &a Acme", r"policy\.yaml:6: "),
    ],
)
def test_a_wrong_row_refuses_the_whole_file_with_its_place(path, old, new, said, capsys):
    assert old in POLICY
    path.write_text(POLICY.replace(old, new))
    with pytest.raises(CommandError, match=said) as refused:
        call_command("apply_policy", str(path))
    assert refused.value.returncode == 1
    assert not Team.objects.exists()
