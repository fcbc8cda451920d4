"""Is a report written down only when something changed, and are outages and jobs kept as read?"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from allocations import queries
from allocations.errors import Invalid, WrongState
from allocations.models import Cluster, Event, Node, Observation, RunningJob
from allocations.services import fleet, health
from tests.allocations.fleets import AT, inventory, sol

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Job:
    job_id: str
    nodes: tuple[str, ...]
    account: str = "vision"
    username: str = "mia"
    tier: str = "burst"
    started_at: datetime | None = AT
    ends_at: datetime | None = None


@pytest.fixture
def cluster():
    made = sol()
    fleet.import_fleet(cluster=made, inventory=inventory(), actor=None, at=AT)
    return Cluster.objects.get(pk=made.pk)


def observe(cluster, records):
    return health.observe_nodes(cluster=cluster, records=records, actor=None, at=AT + timedelta(minutes=5))


def test_a_reading_that_says_nothing_new_writes_nothing(cluster):
    events = Event.objects.count()
    assert observe(cluster, inventory().nodes) == 0
    after = Cluster.objects.get(pk=cluster.pk)
    assert (Observation.objects.count(), Event.objects.count()) == (0, events)
    assert (after.snapshot_version, after.desired_generation) == (cluster.snapshot_version, cluster.desired_generation)
    assert after.observed_at == AT + timedelta(minutes=5)


def test_a_drained_node_is_observed_told_and_never_placeable(cluster):
    node = replace(inventory().nodes[0], drained=True, reason="fan")
    assert observe(cluster, [node]) == 1
    row = Node.objects.get(name=node.name)
    assert (row.is_drained, row.reason, row.condition) == (True, "fan", "healthy")
    event = Event.objects.get(verb="node.condition_changed")
    assert (event.before["is_drained"], event.after["is_drained"]) == (False, True)
    assert not queries.is_placeable(row)
    after = Cluster.objects.get(pk=cluster.pk)
    assert after.snapshot_version == cluster.snapshot_version + 1
    assert after.desired_generation == cluster.desired_generation + 1


def test_nodes_nobody_knows_and_an_empty_reading_change_nothing(cluster):
    assert observe(cluster, [replace(inventory().nodes[0], name="stranger", condition="failed")]) == 0
    assert observe(cluster, []) == 0
    assert Cluster.objects.get(pk=cluster.pk).observed_at is None


def test_jobs_come_change_and_go_and_an_equal_reading_is_silent(cluster):
    first = [Job("1", ("sol-gb001",)), Job("2", ("sol-gb002",))]
    assert health.observe_jobs(cluster=cluster, jobs=first, at=AT) == 2
    events = Event.objects.count()
    assert health.observe_jobs(cluster=cluster, jobs=first, at=AT) == 0
    assert Event.objects.count() == events
    second = [replace(first[0], ends_at=AT + timedelta(hours=1)), Job("3", ("sol-gb003",))]
    assert health.observe_jobs(cluster=cluster, jobs=second, at=AT) == 3
    assert set(RunningJob.objects.values_list("job_id", flat=True)) == {"1", "3"}
    assert dict(RunningJob.objects.values_list("job_id", "ends_at")) == {"1": AT + timedelta(hours=1), "3": None}


def test_an_outage_keeps_its_nodes_busy_until_it_is_cancelled(cluster):
    outage = health.plan_outage(
        cluster=cluster,
        name="pump",
        nodes=["sol-gb001"],
        start_at=AT,
        end_at=AT + timedelta(hours=2),
        actor=None,
        at=AT,
    )
    (planned,) = queries.outages(cluster, AT)
    assert (planned.period.lower, planned.period.upper) == (AT, AT + timedelta(hours=2))
    assert [node.name for node in planned.nodes.all()] == ["sol-gb001"]
    health.cancel_outage(outage=outage, actor=None, at=AT)
    assert not queries.outages(cluster, AT)
    with pytest.raises(WrongState):
        health.cancel_outage(outage=outage, actor=None, at=AT)


@pytest.mark.parametrize(("nodes", "hours"), [(["nobody"], 1), ([], 1), (["sol-gb001"], 0), (["sol-gb001"], -1)])
def test_an_outage_of_nothing_or_without_length_is_refused(cluster, nodes, hours):
    with pytest.raises(Invalid):
        health.plan_outage(
            cluster=cluster, name="x", nodes=nodes, start_at=AT, end_at=AT + timedelta(hours=hours), actor=None, at=AT
        )
