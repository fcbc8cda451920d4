"""How is a connection to a Kubernetes API made from references? (kubeconfig or address and token -> client)

A kubeconfig may name a token or a client certificate, in itself or in its own folder. One that runs a program, asks an
auth provider, carries a password, skips TLS checks, goes through a proxy or points elsewhere is refused.
"""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from console.drivers.base import DriverError, Endpoint
from console.drivers.credentials import Credentials

SECONDS = 10.0
_CLUSTER_KEYS = {"server", "certificate-authority", "certificate-authority-data", "extensions"}
_USER_KEYS = {
    *("token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    "extensions",
}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True)
class _Access:
    """An address and what proves who is who: PEM texts, and a bearer token."""

    server: str
    token: str = ""
    authority: str = ""
    certificate: str = ""
    key: str = ""


def connect(endpoint: Endpoint, credentials: Credentials, seconds: float = SECONDS) -> httpx.Client:
    """A client for the endpoint's API server: no redirects, no proxies of the environment, `seconds` for each wait.

    Raises DriverError("credentials") for what may not be used, and DriverError("refused") for an unusable address.
    """
    access = _from_kubeconfig(endpoint, credentials) if endpoint.kubeconfig else _from_address(endpoint, credentials)
    _check_address(endpoint, access.server)
    try:
        context = _tls(access)
    except (OSError, ValueError):  # ssl.SSLError is an OSError; its text may quote a file, so it is not passed on
        raise DriverError("credentials", f"the certificate or key of {endpoint.cluster} cannot be used") from None
    return httpx.Client(
        base_url=access.server,
        verify=context,
        headers={"Authorization": f"Bearer {access.token}"} if access.token else {},
        timeout=httpx.Timeout(seconds),
        trust_env=False,
    )


def _tls(access: _Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.authority or None)
    if access.certificate:
        with (
            tempfile.TemporaryDirectory() as folder
        ):  # ssl takes a client's key from a file only; mode 0700, gone at once
            certificate, key = Path(folder) / "certificate", Path(folder) / "key"
            certificate.write_text(access.certificate)
            key.write_text(access.key)
            context.load_cert_chain(certificate, key)
    return context


def _from_address(endpoint: Endpoint, credentials: Credentials) -> _Access:
    return _Access(
        server=endpoint.url,
        token=credentials.secret(endpoint.token_reference) if endpoint.token_reference else "",
        authority=credentials.text(credentials.path(endpoint.ca_file)) if endpoint.ca_file else "",
    )


def _from_kubeconfig(endpoint: Endpoint, credentials: Credentials) -> _Access:
    path = credentials.path(endpoint.kubeconfig)
    try:
        document = yaml.safe_load(credentials.text(path))
        context = _named(document, "context", endpoint.context or document["current-context"])
        cluster = _named(document, "cluster", context["cluster"])
        user = _named(document, "user", context["user"])
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        wanted = f"context {endpoint.context}" if endpoint.context else "current context"
        raise DriverError("credentials", f"{endpoint.kubeconfig} is no kubeconfig with a usable {wanted}") from None
    _refuse_unknown(endpoint, "cluster", cluster, _CLUSTER_KEYS)
    _refuse_unknown(endpoint, "user", user, _USER_KEYS)
    token = str(user.get("token") or _file_text(credentials, path, user.get("tokenFile"))).strip()
    credentials.hide(token)
    return _Access(
        server=str(cluster.get("server", "")),
        token=token,
        authority=_pem(endpoint, credentials, path, cluster, "certificate-authority"),
        certificate=_pem(endpoint, credentials, path, user, "client-certificate"),
        key=_pem(endpoint, credentials, path, user, "client-key"),
    )


def _pem(endpoint: Endpoint, credentials: Credentials, path: Path, found: Mapping[str, Any], name: str) -> str:
    """The PEM text under NAME-data, or of the file under NAME."""
    if not found.get(f"{name}-data"):
        return _file_text(credentials, path, found.get(name))
    try:
        return base64.b64decode(str(found[f"{name}-data"]), validate=True).decode()
    except ValueError:
        raise DriverError("credentials", f"{name}-data in {endpoint.kubeconfig} is no text in base64") from None


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


def _file_text(credentials: Credentials, kubeconfig: Path, path: object) -> str:
    """The content of a file in the kubeconfig's own folder; "" where none is named."""
    if not path:
        return ""
    real = (kubeconfig.parent / str(path)).resolve()
    if not real.is_relative_to(kubeconfig.parent):
        raise DriverError("credentials", f"{kubeconfig} names {path}, which lies outside its folder")
    return credentials.text(real)


def _check_address(endpoint: Endpoint, address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in _LOOPBACK:
        return
    raise DriverError("refused", f"the API of {endpoint.cluster} must be https (http is for this machine alone)")
