"""What did we just hear about nodes and jobs, and which outages are planned? (writes observations, jobs, outages)

An observation is written only when something changed; the node's row carries the latest one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from allocations.errors import Fault, Invalid, WrongState
from allocations.events import record, record_many
from allocations.models import Cluster, Node, Observation, Outage, RunningJob, User
from allocations.permissions import require
from allocations.services.counters import bump, lock_cluster

HEALTH_FIELDS = ("condition", "is_drained", "reason", "condition_since_at")


class NodeReport(Protocol):
    """What a reading says about one node; scheduling.inventory's NodeRecord is one."""

    @property
    def name(self) -> str: ...
    @property
    def condition(self) -> str: ...
    @property
    def drained(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class JobReport(Protocol):
    """What a reading says about one running job. Without ends_at it blocks its nodes until it is gone."""

    @property
    def job_id(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def username(self) -> str: ...
    @property
    def tier(self) -> str: ...
    @property
    def nodes(self) -> Sequence[str]: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def ends_at(self) -> datetime | None: ...


def observe_nodes(
    *,
    cluster: Cluster,
    records: Iterable[NodeReport],
    source: str = Observation.Source.SCHEDULER,
    actor: User | None,
    at: datetime,
) -> int:
    """Take in what was just read about nodes; says how many changed. Unknown and missing nodes change nothing.

    Per changed node: an observation, an event, the node's row. With any change both counters rise, because what
    healthy capacity can back is pushed. An empty reading is no news at all.
    """
    with transaction.atomic():
        cluster = lock_cluster(cluster)
        nodes = {node.name: node for node in Node.objects.filter(cluster=cluster, gone_at=None)}
        told = [(nodes[report.name], report) for report in records if report.name in nodes]
        changes = [change for node, report in told if (change := take_report(node, report, at)) is not None]
        write_health(cluster, changes, source=source, actor=actor, at=at)
        if changes:
            Node.objects.bulk_create(
                [node for node, _ in changes],
                update_conflicts=True,
                unique_fields=["id"],
                update_fields=HEALTH_FIELDS,
                batch_size=2000,
            )
            bump(cluster, desired=True, snapshot=True)
        if told:
            cluster.observed_at = at
            cluster.save(update_fields=("observed_at",))
    return len(changes)


def take_report(node: Node, report: NodeReport, at: datetime) -> tuple[Node, dict[str, Any]] | None:
    """Put a report into the node's fields, unsaved. The node with what it said before; None when nothing changed."""
    before = {"condition": node.condition, "is_drained": node.is_drained, "reason": node.reason}
    after = {"condition": report.condition, "is_drained": report.drained, "reason": report.reason[:500]}
    if before == after:
        return None
    if node.condition != report.condition or node.condition_since_at is None:
        node.condition_since_at = at
    node.condition, node.is_drained, node.reason = report.condition, report.drained, report.reason[:500]
    return node, before


def write_health(
    cluster: Cluster,
    changes: Sequence[tuple[Node, Mapping[str, Any]]],
    *,
    source: str,
    actor: User | None,
    at: datetime,
) -> None:
    """Observations and events of nodes that were saved or are about to be; two statements whatever their number."""
    Observation.objects.bulk_create(
        (
            Observation(
                cluster=cluster,
                node=node,
                source=source,
                condition=node.condition,
                is_drained=node.is_drained,
                reason=node.reason,
                observed_at=at,
            )
            for node, _ in changes
        ),
        batch_size=2000,
    )
    rows = []
    for node, before in changes:
        after = {"condition": node.condition, "is_drained": node.is_drained, "reason": node.reason}
        said = f"{node.name} is {node.condition}{', drained' if node.is_drained else ''}"
        sentence = f"{said}: {node.reason}" if node.reason else said
        rows.append(
            ("node", f"{cluster.name}/{node.name}", {"before": dict(before), "after": after, "sentence": sentence})
        )
    if rows:
        record_many("node.condition_changed", actor=actor, at=at, cluster=cluster, rows=rows)


def observe_jobs(*, cluster: Cluster, jobs: Iterable[JobReport], at: datetime, actor: User | None = None) -> int:
    """Replace what is known of running jobs by this reading; says how many came, changed or went.

    One event for the whole reading and a new snapshot_version, only when something differs.
    """
    fields = ("account", "username", "tier", "nodes", "started_at", "ends_at")
    with transaction.atomic():
        cluster = lock_cluster(cluster)
        known = {job.job_id: job for job in RunningJob.objects.filter(cluster=cluster)}
        seen = {job.job_id: {field: getattr(job, field) for field in fields} for job in jobs}
        rows: list[RunningJob] = []
        came = changed = 0
        for job_id, facts in seen.items():
            facts["nodes"] = list(facts["nodes"])
            row = known.get(job_id)
            if row is not None and all(getattr(row, field) == value for field, value in facts.items()):
                continue
            came, changed = came + (row is None), changed + (row is not None)
            rows.append(RunningJob(cluster=cluster, job_id=job_id, observed_at=at, **facts))
        went = [job.pk for job_id, job in known.items() if job_id not in seen]
        RunningJob.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["cluster", "job_id"],
            update_fields=[*fields, "observed_at"],
            batch_size=2000,
        )
        RunningJob.objects.filter(pk__in=went).delete()
        if rows or went:
            bump(cluster, snapshot=True)
            after = {"came": came, "changed": changed, "went": len(went), "running": len(seen)}
            record("jobs.observed", subject=("cluster", cluster.name), actor=actor, at=at, cluster=cluster, after=after)
    return came + changed + len(went)


def plan_outage(
    *,
    cluster: Cluster,
    name: str,
    nodes: Iterable[str],
    start_at: datetime,
    end_at: datetime,
    reason: str = "",
    actor: User | None,
    at: datetime,
) -> Outage:
    """Plan [start_at, end_at) in which these nodes (names) are not free. Who holds them then is told by the planner.

    Raises Invalid for a reversed or past period, for no node, and for names that the cluster does not have.
    """
    require(actor, "cluster.operate", cluster)
    if end_at <= start_at:
        raise Invalid(
            "It ends before it starts.", Fault("/end_at", "invalid", "After start_at."), code="period_reversed"
        )
    if end_at <= at:
        raise Invalid("It is over already.", Fault("/end_at", "in_the_past", "In the future."), code="in_the_past")
    names = sorted(set(nodes))
    with transaction.atomic():
        cluster = lock_cluster(cluster)
        found = dict(Node.objects.filter(cluster=cluster, name__in=names, gone_at=None).values_list("name", "pk"))
        missing = [node for node in names if node not in found]
        if missing or not names:
            sentence = f"{cluster.name} has no node {', '.join(missing[:5])}." if missing else "Name at least one node."
            raise Invalid(sentence, Fault("/nodes", "invalid", sentence))
        outage = Outage.objects.create(
            cluster=cluster, name=name, reason=reason, period=DateTimeTZRange(start_at, end_at), created_by=actor
        )
        outage.nodes.set(found.values())
        bump(cluster, desired=True, snapshot=True)
        record(
            "outage.planned",
            subject=("outage", outage.public_id),
            actor=actor,
            at=at,
            cluster=cluster,
            after={"name": name, "nodes": len(names), "start_at": start_at.isoformat(), "end_at": end_at.isoformat()},
            sentence=reason,
        )
    return outage


def cancel_outage(*, outage: Outage, reason: str = "", actor: User | None, at: datetime) -> Outage:
    """Call off an outage, or end one that runs. Raises WrongState when it was cancelled or is over."""
    require(actor, "cluster.operate", outage.cluster)
    with transaction.atomic():
        cluster = lock_cluster(outage.cluster_id)
        outage = Outage.objects.get(pk=outage.pk)
        if outage.cancelled_at is not None or outage.period.upper <= at:
            raise WrongState("This outage is over already.")
        outage.cancelled_at = at
        outage.save(update_fields=("cancelled_at",))
        bump(cluster, desired=True, snapshot=True)
        subject = ("outage", outage.public_id)
        record("outage.cancelled", subject=subject, actor=actor, at=at, cluster=cluster, sentence=reason)
    return outage
