"""Into pods through an API server: it checks, chooses the way and passes on; only the kubelet is ours.

The node declares what kubelets declare since 1.36, so the API server hands WebSockets on to it as they are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.kube.errors import BadRequest, NotFound
from shoal.kube.http import HttpTransport
from shoal.kube.streams import Completed, attach, exec_in_pod, follow_logs, forward_port, port_forward, run_in_pod
from shoal.kube.transport import Request
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import transport_to
from tests.support.clusters.engines import Engine
from tests.support.network.http_servers import raw_server, serving
from tests.support.network.streams import PodServer
from tests.support.network.tls import Authority

TOKENLESS: dict[str, Any] = {"automountServiceAccountToken": False}


@pytest.fixture
async def transport(engine: Engine) -> AsyncIterator[HttpTransport]:
    async with transport_to(engine.kubeconfig) as transport:
        yield transport


@pytest.fixture
async def kubelet(transport: HttpTransport, namespace: str, tmp_path: Path) -> AsyncIterator[PodServer]:
    """A node whose kubelet is ours, and a pod "b" on it that runs."""
    server = PodServer()
    context = Authority().server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(server, tls=context) as url:
        await create(transport, "/api/v1/nodes", {"metadata": {"name": namespace}})
        node_status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": int(url.rpartition(":")[2])}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        }
        await set_status(transport, f"/api/v1/nodes/{namespace}", node_status)
        await create(transport, f"/api/v1/namespaces/{namespace}/pods", pod_manifest("b", node=namespace, **TOKENLESS))
        await set_status(transport, f"/api/v1/namespaces/{namespace}/pods/b", {"phase": "Running"})
        yield server
    await transport.send(Request(method="DELETE", path=f"/api/v1/nodes/{namespace}"))


async def create(transport: HttpTransport, path: str, body: dict[str, Any]) -> None:
    answer = await transport.send(Request(method="POST", path=path, body=json.dumps(body).encode()))
    assert answer.status == 201, answer.body


async def set_status(transport: HttpTransport, path: str, status: dict[str, Any]) -> None:
    body = json.dumps({"status": status}).encode()
    content_type = "application/merge-patch+json"
    request = Request(method="PATCH", path=f"{path}/status", body=body, content_type=content_type)
    answer = await transport.send(request)
    assert answer.status == 200, answer.body


async def test_a_command_runs_through_the_api_server(
    kubelet: PodServer, transport: HttpTransport, namespace: str
) -> None:
    text = b"0123456789abcdef" * 10_000
    command = ["sh", "-c", "cat; echo err >&2; exit 3"]
    done = await run_in_pod(transport, namespace=namespace, pod="b", command=command, stdin=text)
    assert done == Completed(text, b"err\n", 3)
    assert kubelet.queries == [{"command": command, "input": ["1"], "output": ["1"], "error": ["1"]}]


async def test_a_terminal_works_through_the_api_server(
    kubelet: PodServer, transport: HttpTransport, namespace: str
) -> None:
    async with exec_in_pod(
        transport, namespace=namespace, pod="b", container="main", command=["cat"], stdin=True, tty=True
    ) as session:
        await session.resize(width=80, height=24)
        await session.write(b"hello")
        output = await session.read()
        assert output is not None
        assert output.data == b"hello"
        await session.close_stdin()
        assert await session.wait() == 0
    assert kubelet.sizes == [{"Width": 80, "Height": 24}]


async def test_a_process_is_joined_through_the_api_server(
    kubelet: PodServer, transport: HttpTransport, namespace: str
) -> None:
    async with attach(transport, namespace=namespace, pod="b") as session:
        assert await session.run() == Completed(b"attached\n", b"", 0)


async def test_logs_come_through_the_api_server(kubelet: PodServer, transport: HttpTransport, namespace: str) -> None:
    kubelet.log = b"one\ntwo\n"
    lines = follow_logs(transport, namespace=namespace, pod="b", tail_lines=2, timestamps=True)
    assert [line async for line in lines] == [b"one", b"two", b"live"]
    assert kubelet.queries == [{"follow": ["true"], "tailLines": ["2"], "timestamps": ["true"]}]


async def test_a_port_is_reached_through_the_api_server(
    kubelet: PodServer, transport: HttpTransport, namespace: str
) -> None:
    async def greeter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello " + await reader.readline())
        await writer.drain()

    async with raw_server(greeter) as port:
        async with port_forward(transport, namespace=namespace, pod="b", port=port) as connection:
            await connection.write(b"one\n")
            assert await connection.read() == b"hello one\n"
            assert await connection.read() == b""
        async with forward_port(transport, namespace=namespace, pod="b", port=port) as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"two\n")
            assert await reader.read() == b"hello two\n"
            writer.close()


async def test_the_api_servers_refusals_are_errors_with_its_words(transport: HttpTransport, namespace: str) -> None:
    await create(transport, f"/api/v1/namespaces/{namespace}/pods", pod_manifest("waiting", **TOKENLESS))
    with pytest.raises(BadRequest, match="does not have a host assigned"):
        await run_in_pod(transport, namespace=namespace, pod="waiting", command=["true"])
    with pytest.raises(BadRequest, match="container nope is not valid for pod waiting"):
        await run_in_pod(transport, namespace=namespace, pod="waiting", container="nope", command=["true"])
    with pytest.raises(NotFound, match='pods "missing" not found'):
        async with port_forward(transport, namespace=namespace, pod="missing", port=80):
            pass
    with pytest.raises(NotFound, match='pods "missing" not found'):
        await anext(follow_logs(transport, namespace=namespace, pod="missing"))
