"""A server with its sockets, and agents for its nodes: everything between kubectl and a container is real."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.apiserver.server import ApiServer, ServerOptions, serving
from shoal.kube.http import HttpTransport
from shoal.kube.transport import Request
from tests.support.clusters.client import transport_to

NODE = "node-a"
NAMESPACE = "default"


class Cluster:
    """An API server, and small things that tests do to it as its administrator."""

    def __init__(self, server: ApiServer, transport: HttpTransport, data_dir: Path) -> None:
        self.server = server
        self.transport = transport
        self.sockets = data_dir / "agents"
        self.sockets.mkdir()

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """One request; its answer is JSON wherever it is not nothing."""
        data = None if body is None else json.dumps(body).encode()
        answer = await self.transport.send(Request(method=method, path=path, body=data, **options))
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, json.loads(answer.body) if is_json else answer.body

    async def refusal(self, path: str, **query: str) -> tuple[int, str, str]:
        """The code, the reason and the message with which a GET is refused."""
        code, status = await self.call("GET", path, query=query)
        assert status["kind"] == "Status", status
        return code, status.get("reason", ""), status["message"]

    async def add_node(self, name: str = NODE, *, url: str = "", labels: dict[str, str] | None = None) -> None:
        """A node whose agent is at this URL (none: nowhere), which may be that of a Unix socket."""
        metadata: dict[str, Any] = {"name": name, "labels": labels or {}}
        status: dict[str, Any] = {}
        if url.startswith("unix://"):
            metadata["annotations"] = {"shoal.dev/agent-socket": url.removeprefix("unix://")}
        elif url:
            host, _, port = url.rpartition("/")[2].rpartition(":")
            status["addresses"] = [
                {"type": "Hostname", "address": "no-such-host.invalid"},
                {"type": "InternalIP", "address": host},
            ]
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": int(port)}}
        code, answer = await self.call("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})
        assert code == 201, answer

    async def add_pod(self, name: str, *, node: str = "", phase: str = "Running", **more: Any) -> None:
        """A pod with the containers named, or one called main."""
        names = more.pop("containers", ["main"])
        init = more.pop("init", [])
        spec: dict[str, Any] = {
            "containers": [{"name": each, "image": "none"} for each in names],
            "initContainers": [{"name": each, "image": "none"} for each in init],
            "automountServiceAccountToken": False,
        }
        if node:
            spec["nodeName"] = node
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        code, answer = await self.call("POST", pods, {"metadata": {"name": name, **more}, "spec": spec})
        assert code == 201, answer
        code, answer = await self.call(
            "PATCH", f"{pods}/{name}/status", {"status": {"phase": phase}}, content_type="application/merge-patch+json"
        )
        assert code == 200, answer


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    data_dir = tmp_path / "data"
    async with (
        serving(ServerOptions(data_dir=data_dir, port=0, durable=False)) as server,
        transport_to(server.kubeconfig) as transport,
    ):
        cluster = Cluster(server, transport, data_dir)
        account = {"metadata": {"name": "default"}}
        await cluster.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        yield cluster
