"""What kubectl and API servers make of a kubeconfig, and that we make the same of it."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.kubernetes import RealKubernetes
from shoal.kube.connection import Connection
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.in_cluster import in_cluster_connection
from shoal.kube.kubeconfig import load_connection
from shoal.kube.transport import Request
from tests.support.clusters.engines import Engine
from tests.support.network.kubeconfigs import a_kubeconfig, write
from tests.support.programs.kubectl import Kubectl


@asynccontextmanager
async def signed_in(connection: Connection) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(connection)
    try:
        yield transport
    finally:
        await transport.close()


async def who_am_i(connection: Connection) -> dict[str, Any]:
    """Whom the API server takes us for."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with signed_in(connection) as transport:
        answer = await transport.send(Request(method="POST", path=path, body=json.dumps(review).encode(), timeout=30))
    assert answer.status == 201, answer.body
    found: dict[str, Any] = json.loads(answer.body)["status"]["userInfo"]
    return found


def config(engine: Engine, path: Path, user: dict[str, Any], **cluster: Any) -> Connection:
    entry = {"server": engine.server, "certificate-authority": str(engine.ca_file)} | cluster
    return load_connection(write(path, a_kubeconfig(cluster=entry, user=user)), environ={})


async def test_the_clusters_own_kubeconfig_signs_in(engine: Engine) -> None:
    assert "system:masters" in (await who_am_i(load_connection(engine.kubeconfig)))["groups"]


async def test_a_client_certificate_signs_in(engine: Engine, tmp_path: Path) -> None:
    pair = engine.certificate_for("ann", ["staff"])
    (tmp_path / "ann.crt").write_bytes(pair.certificate)
    user = {"client-certificate": "ann.crt", "client-key-data": b64encode(pair.key).decode()}
    found = await who_am_i(config(engine, tmp_path / "config", user))
    assert (found["username"], found["groups"]) == ("ann", ["staff", "system:authenticated"])


async def test_an_exec_plugin_signs_in(engine: Engine, tmp_path: Path) -> None:
    pair = engine.certificate_for("eve")
    status = {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    write(tmp_path / "answer.json", json.dumps(answer))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print(open({str(tmp_path / 'answer.json')!r}).read())"],
        "interactiveMode": "Never",
    }
    assert (await who_am_i(config(engine, tmp_path / "config", {"exec": plugin})))["username"] == "eve"


async def test_impersonation_is_understood_to_the_last_character(engine: Engine, tmp_path: Path) -> None:
    user = {
        "token": engine.admin_token,
        "as": "bob",
        "as-uid": "u-7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"example.org/scope %": ["a", "b"]},
    }
    found = await who_am_i(config(engine, tmp_path / "config", user))
    assert (found["username"], found["uid"]) == ("bob", "u-7")
    assert set(found["groups"]) == {"dev", "ops", "system:authenticated"}
    assert found["extra"] == {"example.org/scope %": ["a", "b"]}


async def test_a_pod_signs_in_with_its_mounted_token(engine: Engine, namespace: str, tmp_path: Path) -> None:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = engine.admin.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token", request)
    (tmp_path / "token").write_text(token["status"]["token"])
    (tmp_path / "ca.crt").write_bytes(engine.ca_file.read_bytes())
    host, _, port = engine.server.removeprefix("https://").rpartition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    connection = in_cluster_connection(environ=environ, service_account=tmp_path)
    assert (await who_am_i(connection))["username"] == f"system:serviceaccount:{namespace}:default"


async def test_a_wrong_token_is_refused_and_a_wrong_authority_not_trusted(engine: Engine, tmp_path: Path) -> None:
    async with signed_in(config(engine, tmp_path / "config", {"token": "wrong"})) as transport:
        assert (await transport.send(Request(method="GET", path="/api/v1/pods", timeout=30))).status == 401
    untrusting = config(engine, tmp_path / "config", {"token": "x"}, **{"certificate-authority": None})
    async with signed_in(untrusting) as transport:
        with pytest.raises(ConnectionFault, match="not trusted"):
            await transport.send(Request(method="GET", path="/api/v1/pods", timeout=30))


def entries(**named: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "cluster": cluster} for name, cluster in named.items()]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([a_kubeconfig(name="one"), a_kubeconfig(name="two")], id="two-whole-files"),
        pytest.param(
            [
                {"clusters": entries(dev={"server": "https://first"}), "current-context": ""},
                a_kubeconfig(cluster={"server": "https://second", "proxy-url": "http://p:1"}),
            ],
            id="an-entry-is-taken-whole-from-the-first",
        ),
        pytest.param(
            [{"users": [{"name": "dev", "user": {"token": "first"}}]}, a_kubeconfig(user={"username": "nora"})],
            id="the-user-of-another-file",
        ),
        pytest.param(
            [a_kubeconfig(context={"namespace": "a"}), a_kubeconfig(context={"namespace": "b"})], id="the-first-context"
        ),
        pytest.param([{"current-context": "two"}, a_kubeconfig(name="one"), a_kubeconfig(name="two")], id="current"),
        pytest.param(
            [a_kubeconfig(cluster={"server": "https://h", "tls-server-name": "name", "disable-compression": True})],
            id="settings",
        ),
    ],
)
def test_files_are_merged_as_the_real_kubectl_merges_them(
    kubectl: Kubectl, tmp_path: Path, files: list[dict[str, Any]]
) -> None:
    written = [write(tmp_path / str(number), content) for number, content in enumerate(files)]
    environ = {"KUBECONFIG": ":".join(map(str, written))}
    done = subprocess.run(
        [str(kubectl.binary), "config", "view", "--minify", "--raw", "-o", "json"],
        env=environ | {"HOME": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    theirs = json.loads(done.stdout)
    cluster, user = theirs["clusters"][0]["cluster"], (theirs.get("users") or [{"user": {}}])[0]["user"]
    ours = load_connection(environ=environ)
    assert ours.server == cluster["server"]
    assert ours.proxy == cluster.get("proxy-url")
    assert ours.tls.server_name == cluster.get("tls-server-name")
    assert ours.compression != cluster.get("disable-compression", False)
    assert ours.namespace == theirs["contexts"][0]["context"].get("namespace", "default")
    kind = "a token" if "token" in user else f"user {user['username']}" if "username" in user else "anonymous"
    assert repr(ours.credentials) == f"<{kind}>"


def test_kubectl_and_we_reach_the_same_server_by_the_same_file(kube: RealKubernetes, kubectl: Kubectl) -> None:
    raw = json.loads(kubectl("config", "view", "--raw", "-o", "json"))["clusters"][0]["cluster"]
    ours = load_connection(kube.kubeconfig)
    assert ours.server == raw["server"]
    assert ours.tls.authorities is not None
    assert b64encode(ours.tls.authorities).decode() == raw["certificate-authority-data"]
