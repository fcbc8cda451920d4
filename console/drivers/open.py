"""Which driver speaks to an endpoint? (open_driver: the one door)"""

from pathlib import Path

from django.conf import settings

from console.drivers.base import Driver, DriverError, Endpoint
from console.drivers.credentials import Credentials


def open_driver(endpoint: Endpoint, credentials: Credentials | None = None) -> Driver:
    """The driver for this endpoint; without `credentials`, those below BERTH_CREDENTIALS and of the environment.

    Nothing is asked of the cluster yet. Raises DriverError("refused") for an endpoint that cannot work at all, and
    DriverError("credentials") for one whose credential is absent or not allowed. Each driver's client library is
    loaded when it is first wanted: a web process never is the one.
    """
    folder = getattr(settings, "BERTH_CREDENTIALS", None)
    chosen = credentials or Credentials(Path(folder) if folder else None)
    allowed = chosen.with_registered(endpoint.registered)
    if endpoint.driver == "slurm_cli":
        from console.drivers.slurm_cli import SlurmCommands

        return SlurmCommands(endpoint, allowed)
    if endpoint.driver == "kubernetes":
        from console.drivers.kubernetes import KubernetesApi

        return KubernetesApi(endpoint, allowed)
    if endpoint.driver == "files":
        from console.drivers.files import FolderOfFiles

        return FolderOfFiles(endpoint, allowed)
    raise DriverError("refused", f"there is no driver {endpoint.driver!r} for {endpoint.cluster}")
