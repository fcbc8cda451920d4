"""How is a cluster reached, and who said so? Making and changing endpoints; opening their drivers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from allocations.errors import Invalid, WrongState
from allocations.events import record
from allocations.models import Cluster, User
from allocations.services import fleet
from console.drivers import Driver, Endpoint, open_driver
from console.models import ClusterEndpoint

MODES = ("observe", "propose", "enforce")
_KINDS_OF = {
    "slurm_cli": {"slurm", "slinky"},
    "slurmrestd": {"slurm", "slinky"},
    "kubernetes": {"kueue", "volcano", "kai", "yunikorn", "slinky"},
    "files": {"slurm", "kueue", "volcano", "kai", "yunikorn", "slinky"},
}


@transaction.atomic
def connect(
    *,
    name: str,
    kind: str,
    driver: str,
    options: Mapping[str, Any],
    zone: str | None = None,
    modes: Mapping[str, str] | None = None,
    actor: User | None,
    at: datetime,
) -> ClusterEndpoint:
    """Make or change a cluster's endpoint; without modes it is in observe mode for every object class, and new in UTC.

    An endpoint that is changed is looked at before it is written to: what it points at may be another cluster now.

    Raises Invalid for an unknown kind, driver, zone or mode, and WrongState when a cluster of that name is of
    another kind: a kind is for life, because what stands on the cluster is in its words.
    """
    if driver not in _KINDS_OF:
        raise Invalid(f"There is no driver {driver}: use {', '.join(_KINDS_OF)}.")
    if kind not in _KINDS_OF[driver]:
        raise Invalid(f"The driver {driver} does not reach a {kind} cluster.")
    known = Cluster.objects.filter(name=name).first()
    zone = zone or (known.zone if known else "UTC")
    for mode in (modes or {}).values():
        if mode not in MODES:
            raise Invalid(f"There is no mode {mode}: use {', '.join(MODES)}.")
    if known is not None and known.kind != kind:
        raise WrongState(f"{name} is a {known.kind} cluster: connect the {kind} one under another name.")
    cluster = fleet.connect_cluster(name=name, kind=kind, zone=zone, actor=actor, at=at)
    found = ClusterEndpoint.objects.select_for_update().filter(cluster=cluster).first()
    endpoint = found or ClusterEndpoint(cluster=cluster)
    before = _facts(endpoint) if found else None
    endpoint.driver, endpoint.options = driver, dict(options)
    endpoint.modes = dict(modes or {"*": MODES[0]})
    endpoint.next_push_at = at
    if before != _facts(endpoint):
        endpoint.save()
        record(
            "cluster.connected",
            subject=("cluster", cluster.name),
            actor=actor,
            at=at,
            cluster=cluster,
            before=before,
            after=_facts(endpoint),
        )
    return endpoint


def _facts(endpoint: ClusterEndpoint) -> dict[str, Any]:
    return {"driver": endpoint.driver, "options": endpoint.options, "modes": endpoint.modes}


def driver_of(endpoint: ClusterEndpoint) -> Driver:
    """The driver that speaks to this endpoint. Raises DriverError when its credentials cannot be read."""
    cluster = endpoint.cluster
    return open_driver(
        Endpoint(
            cluster=cluster.name,
            kind=cluster.kind,
            driver=endpoint.driver,
            label_prefix=settings.BERTH_LABEL_PREFIX,
            **endpoint.options,
        )
    )


def mode_of(endpoint: ClusterEndpoint, object_class: str) -> str:
    """observe, propose or enforce for one object class; "*" speaks for the classes not named."""
    return str(endpoint.modes.get(object_class, endpoint.modes.get("*", "observe")))
