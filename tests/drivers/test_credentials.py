"""Are secrets read by reference only, from where they may lie, and never told?"""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.drivers.base import DriverError, Endpoint
from console.drivers.credentials import Credentials
from console.drivers.kube_access import connect

SECRET = "s3cret-of-luna"


def refusal(deed: Any) -> DriverError:
    with pytest.raises(DriverError) as caught:
        deed()
    assert caught.value.code == "credentials"
    assert SECRET not in f"{caught.value.sentence}{caught.value.raw}"
    return caught.value


def test_a_variable_and_a_file_below_the_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "luna.token").write_text(f"{SECRET}\n")
    credentials = Credentials(tmp_path, {"LUNA": SECRET})
    assert credentials.secret("env:LUNA") == SECRET
    assert credentials.secret("file:luna.token") == SECRET
    assert credentials.secret(f"file:{tmp_path}/luna.token") == SECRET


@pytest.mark.parametrize("reference", ["env:", "file:", "", SECRET, "env:NOT_SET", "file:not-there", "http://x"])
def test_what_is_no_reference_or_absent_is_named_without_its_value(tmp_path: Path, reference: str) -> None:
    refusal(lambda: Credentials(tmp_path, {}).secret(reference))


def test_a_file_elsewhere_needs_to_be_registered_and_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    folder, outside = tmp_path / "credentials", tmp_path / "outside.token"
    folder.mkdir()
    outside.write_text(SECRET)
    (folder / "link").symlink_to(outside)
    credentials = Credentials(folder, {})
    refusal(lambda: credentials.secret(f"file:{outside}"))
    refusal(lambda: credentials.secret("file:link"))
    refusal(lambda: credentials.secret("file:../outside.token"))
    assert credentials.with_registered([str(outside)]).secret(f"file:{outside}") == SECRET


def test_a_secret_never_passes_scrubbing(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path, {"LUNA": SECRET})
    credentials.secret("env:LUNA")
    told = credentials.scrubbed(f"sent {SECRET}; Authorization: Bearer eyJhbGciOi.x; SLURM_JWT=abc.def")
    assert told == "sent ***; Authorization: Bearer ***; SLURM_JWT=***"


def kubeconfig(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Endpoint:
    content = {
        "current-context": "a",
        "clusters": [{"name": "c", "cluster": {"server": "https://luna.example", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    }
    (folder / "config").write_text(yaml.safe_dump(content))
    return Endpoint("luna", "kueue", "kubernetes", kubeconfig=str(folder / "config"))


def opened(endpoint: Endpoint) -> None:
    connect(endpoint, Credentials(None, {"LUNA": SECRET}, endpoint.registered)).close()


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {"command": "/bin/true", "apiVersion": "client.authentication.k8s.io/v1beta1"}},
        {"auth-provider": {"name": "gcp"}},
        {"username": "a", "password": SECRET},
        {"tokenFile": "../token"},
        {"client-certificate": "/etc/ssl/certs/ca-certificates.crt", "client-key": "key"},
        {"token": SECRET, "as": "somebody"},
    ],
)
def test_a_kubeconfig_that_runs_or_reaches_out_is_refused(tmp_path: Path, user: dict[str, Any]) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "token").write_text(SECRET)
    refusal(lambda: opened(kubeconfig(tmp_path / "inside", user)))


def test_a_kubeconfig_may_not_skip_checks_or_go_through_a_proxy(tmp_path: Path) -> None:
    refusal(lambda: opened(kubeconfig(tmp_path, {"token": SECRET}, {"insecure-skip-tls-verify": True})))
    refusal(lambda: opened(kubeconfig(tmp_path, {"token": SECRET}, {"proxy-url": "http://proxy"})))


def test_a_certificate_that_is_none_is_a_matter_of_credentials(tmp_path: Path) -> None:
    garbage = base64.b64encode(b"no certificate").decode()
    refusal(lambda: opened(kubeconfig(tmp_path, {"token": SECRET}, {"certificate-authority-data": garbage})))


@pytest.mark.parametrize("text", ["", "[]", "a: [", "current-context: x", "{current-context: a, contexts: [1]}"])
def test_what_is_no_kubeconfig_is_said_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    endpoint = Endpoint("luna", "kueue", "kubernetes", kubeconfig=str(tmp_path / "config"))
    assert "is no kubeconfig" in refusal(lambda: opened(endpoint)).sentence


def test_a_token_in_the_kubeconfig_or_beside_it_is_taken(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    opened(kubeconfig(tmp_path, {"token": SECRET}))
    opened(kubeconfig(tmp_path, {"tokenFile": "token"}))
    opened(Endpoint("luna", "kueue", "kubernetes", url="https://luna.example", credential="env:LUNA"))
    opened(Endpoint("luna", "kueue", "kubernetes", url="https://luna.example", token_file=str(tmp_path / "token")))


@pytest.mark.parametrize("url", ["http://luna.example", "ftp://127.0.0.1", "", "https://"])
def test_a_token_goes_over_tls_or_stays_on_this_machine(url: str) -> None:
    with pytest.raises(DriverError, match="must be https"):
        opened(Endpoint("luna", "kueue", "kubernetes", url=url, credential="env:LUNA"))
