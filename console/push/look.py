"""How does a cluster compare with what it should hold now? (gather, read, settle, render, diff; nothing written)"""

from dataclasses import dataclass
from datetime import datetime

from console.drivers import Driver
from console.models import ClusterEndpoint
from console.push import desired as gathering
from scheduling.desired import DesiredState
from scheduling.dialects import Capabilities, Dialect, dialect
from scheduling.plan import Observed, Plan, Rendered, diff
from scheduling.settle import Converging, settle


@dataclass(frozen=True)
class Look:
    """One comparison of a cluster with what it should hold."""

    state: DesiredState
    rendered: Rendered
    observed: Observed
    plan: Plan
    converging: tuple[Converging, ...] = ()

    @property
    def aim(self) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        """What the comparison was made for: equal as long as neither a change nor a start or end came between."""
        minute, reservations = self.state.at_minute, self.state.reservations
        running = tuple(each.id for each in reservations if each.start_minute <= minute < each.end_minute)
        return self.state.generation, tuple(each.id for each in reservations), running


def look(endpoint: ClusterEndpoint, driver: Driver, at: datetime) -> Look:
    """Read the cluster and compare. No lock is held and no transaction is open while the cluster is asked."""
    speech = dialect(endpoint.cluster.kind)
    state = gathering.gather(cluster_id=endpoint.cluster_id, at=at)
    observed = _read(speech, driver, state)
    settled = settle(state, observed)
    rendered = speech.render(settled.desired, _capabilities(state, observed))
    return Look(state, rendered, observed, diff(rendered, observed), settled.converging)


def _read(speech: Dialect, driver: Driver, state: DesiredState) -> Observed:
    return speech.parse(driver.read(), installation=state.installation, label_prefix=state.label_prefix)


def _capabilities(state: DesiredState, observed: Observed) -> Capabilities:
    return Capabilities(
        kind=state.kind,
        version=tuple(observed.facts.get("version", ())),
        native_cluster=str(observed.facts.get("native_cluster", "")),
    )
