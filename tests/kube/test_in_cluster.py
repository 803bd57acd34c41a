"""The account of a pod: environment variables and a mounted directory, both laid out here as Kubernetes does."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.kube.connection import Connection
from shoal.kube.in_cluster import NotInCluster, in_cluster_connection
from tests.support.network.tls import Authority

AUTHORITY = Authority()
ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    (tmp_path / "namespace").write_text("team-a\n")
    return tmp_path


def connect(account: Path, **environ: str) -> Connection:
    return in_cluster_connection(environ=ENVIRON | environ, service_account=account)


async def test_a_pod_finds_its_server_its_token_and_its_namespace(account: Path) -> None:
    connection = connect(account)
    assert connection.server == "https://10.96.0.1:443"
    assert connection.tls.authorities == AUTHORITY.pem
    assert connection.namespace == "team-a"
    assert (await connection.credentials.sign()).headers == {"Authorization": "Bearer first"}


def test_an_ipv6_address_is_put_into_brackets(account: Path) -> None:
    assert connect(account, KUBERNETES_SERVICE_HOST="fd00::1").server == "https://[fd00::1]:443"


async def test_a_rotated_token_is_used_after_a_refusal(account: Path) -> None:
    credentials = connect(account).credentials
    refused = await credentials.sign()
    (account / "token").write_text("second")
    assert await credentials.refresh(refused)
    assert (await credentials.sign()).headers == {"Authorization": "Bearer second"}


def test_the_namespace_may_be_told_by_the_environment_or_be_the_default(account: Path) -> None:
    assert connect(account, POD_NAMESPACE="told").namespace == "told"
    (account / "namespace").unlink()
    assert connect(account).namespace == "default"


def test_without_an_authority_the_systems_are_trusted(account: Path) -> None:
    (account / "ca.crt").unlink()
    assert connect(account).tls.authorities is None


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        pytest.param(
            "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set", id="host"
        ),
        pytest.param("KUBERNETES_SERVICE_PORT", "are not set", id="port"),
    ],
)
def test_outside_a_pod_the_environment_says_so(account: Path, missing: str, says: str) -> None:
    with pytest.raises(NotInCluster, match=says):
        connect(account, **{missing: ""})


def test_a_pod_without_a_token_is_told_why(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(NotInCluster, match=r"token does not exist .*automountServiceAccountToken: false"):
        connect(account)


def test_an_authority_that_is_none_is_an_error(account: Path) -> None:
    (account / "ca.crt").write_text("hello")
    with pytest.raises(NotInCluster, match=r"ca\.crt: the certificate authority is not PEM"):
        connect(account)
