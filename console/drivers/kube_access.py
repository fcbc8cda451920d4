"""How is a connection to a Kubernetes API made from references? (kubeconfig or address and token -> client)

lightkube turns a configuration into a TLS client; what may stand in the configuration is decided here. A kubeconfig is
refused that runs a program, asks an auth provider, carries a password, skips TLS checks or points outside its folder.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import yaml
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster, Context, User

from console.drivers.base import DriverError, Endpoint
from console.drivers.credentials import Credentials

SECONDS = 10.0
_CLUSTER_KEYS = {"server", "certificate-authority", "certificate-authority-data", "extensions"}
_USER_KEYS = {
    *("token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    "extensions",
}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def connect(endpoint: Endpoint, credentials: Credentials, seconds: float = SECONDS) -> httpx2.Client:
    """A client for the endpoint's API server: no redirects, no proxies of the environment, `seconds` for each wait.

    Raises DriverError("credentials") for what may not be used, and DriverError("refused") for an unusable address.
    """
    config = _from_kubeconfig(endpoint, credentials) if endpoint.kubeconfig else _from_address(endpoint, credentials)
    _check_address(endpoint, config.cluster.server)
    timeout = httpx2.Timeout(seconds)
    try:
        return Client(config, ConnectionParams(timeout=timeout, trust_env=False))
    except (OSError, ValueError) as error:  # a certificate or key that is none
        raise DriverError(
            "credentials", f"the certificate or key of {endpoint.cluster} cannot be used: {error}"
        ) from None


def _from_address(endpoint: Endpoint, credentials: Credentials) -> SingleConfig:
    token = credentials.secret(endpoint.token_reference) if endpoint.token_reference else None
    authority = str(credentials.path(endpoint.ca_file)) if endpoint.ca_file else None
    return SingleConfig(
        context_name=endpoint.cluster,
        context=Context(cluster=endpoint.cluster),
        cluster=Cluster(server=endpoint.url, certificate_auth=authority),
        user=User(token=token),
    )


def _from_kubeconfig(endpoint: Endpoint, credentials: Credentials) -> SingleConfig:
    path = credentials.path(endpoint.kubeconfig)
    try:
        document = yaml.safe_load(credentials.text(path))
        context_name = endpoint.context or document["current-context"]
        context = _named(document, "context", context_name)
        cluster = _named(document, "cluster", context["cluster"])
        user = _named(document, "user", context["user"])
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        wanted = f"context {endpoint.context}" if endpoint.context else "current context"
        raise DriverError("credentials", f"{endpoint.kubeconfig} is no kubeconfig with a usable {wanted}") from None
    _refuse_unknown(endpoint, "cluster", cluster, _CLUSTER_KEYS)
    _refuse_unknown(endpoint, "user", user, _USER_KEYS)
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = credentials.text(Path(_beside(path, user["tokenFile"]))).strip()
    if token:
        credentials.hide(token)
    return SingleConfig(
        context_name=context_name,
        context=Context(cluster=context["cluster"], user=context["user"]),
        cluster=Cluster(
            server=str(cluster.get("server", "")),
            certificate_auth=_beside(path, cluster.get("certificate-authority")),
            certificate_auth_data=cluster.get("certificate-authority-data"),
        ),
        user=User(
            token=token,
            client_cert=_beside(path, user.get("client-certificate")),
            client_cert_data=user.get("client-certificate-data"),
            client_key=_beside(path, user.get("client-key")),
            client_key_data=user.get("client-key-data"),
        ),
        fname=path,
    )


def _named(document: dict[str, Any], what: str, name: str) -> dict[str, Any]:
    found = next(each for each in [*document[f"{what}s"], {"name": name}] if each["name"] == name)
    content = found[what]
    if not isinstance(content, dict):
        raise TypeError(what)
    return content


def _refuse_unknown(endpoint: Endpoint, what: str, found: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(found) - known)
    if unknown:
        told = f"the {what} in {endpoint.kubeconfig} uses {', '.join(unknown)}, which is not allowed"
        raise DriverError("credentials", f"{told}: name a token or a client certificate")


def _beside(kubeconfig: Path, path: str | None) -> str | None:
    """A file in the kubeconfig's own folder; None for none."""
    if not path:
        return None
    real = (kubeconfig.parent / path).resolve()
    if not real.is_relative_to(kubeconfig.parent):
        raise DriverError("credentials", f"{kubeconfig} names {path}, which lies outside its folder")
    return str(real)


def _check_address(endpoint: Endpoint, address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in _LOOPBACK:
        return
    raise DriverError("refused", f"the API of {endpoint.cluster} must be https (http is for this machine alone)")
