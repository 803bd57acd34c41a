"""Commands in containers and ports of pods, through the API server to an agent."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from shoal.cluster.apiserver.loopback import LoopbackTransport
from shoal.kube.credentials import bearer_token
from shoal.kube.errors import ApiError, BadRequest, Forbidden, NotFound
from shoal.kube.http import HttpTransport
from shoal.kube.streams import Completed, attach, exec_in_pod, port_forward, run_in_pod
from shoal.kube.transport import Request, WebSocket
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.support.network.http_servers import raw_server, serving
from tests.support.network.sessions import https_session
from tests.support.network.streams import PodServer
from tests.support.network.tls import Authority

POD = "/api/v1/namespaces/default/pods/web"
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
HERE: dict[str, Any] = {"namespace": "default", "pod": "web"}


@pytest.fixture(params=["tls", "socket"])
async def agent(cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[PodServer]:
    """An agent with the pod "web", whose commands and ports are this machine's."""
    server = PodServer()
    socket = cluster.sockets / "a.sock" if request.param == "socket" else None
    tls = None if socket else Authority().server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(server, tls=tls, socket=socket) as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        yield server


async def test_a_command_runs_with_its_input_and_its_exit_code(cluster: Cluster, agent: PodServer) -> None:
    command = ["sh", "-c", "cat; echo oops >&2; exit 3"]
    done = await run_in_pod(cluster.transport, **HERE, command=command, stdin=b"x" * 300_000)
    assert done == Completed(b"x" * 300_000, b"oops\n", 3)
    assert agent.queries == [{"command": command, "input": ["1"], "output": ["1"], "error": ["1"]}]


async def test_a_transport_in_the_same_process_runs_commands_too(cluster: Cluster, agent: PodServer) -> None:
    transport = LoopbackTransport(cluster.server.core.service)
    command = ["sh", "-c", "cat; exit 3"]
    done = await run_in_pod(transport, **HERE, command=command, stdin=b"x" * 300_000)
    assert done == Completed(b"x" * 300_000, b"", 3)
    assert len(agent.queries) == 1
    with pytest.raises(NotFound, match='pods "absent" not found'):
        await run_in_pod(transport, namespace="default", pod="absent", command=command)


async def test_a_terminal_is_resized_and_its_query_says_tty(cluster: Cluster, agent: PodServer) -> None:
    async with exec_in_pod(cluster.transport, **HERE, command=["cat"], stdin=True, tty=True) as session:
        await session.resize(width=80, height=24)
        await session.write(b"hello\n")
        output = await session.read()
        assert output is not None
        assert output.data == b"hello\n"
    assert agent.sizes == [{"Width": 80, "Height": 24}]
    assert agent.queries == [{"command": ["cat"], "input": ["1"], "output": ["1"], "tty": ["1"]}]


async def test_attaching_joins_the_main_process(cluster: Cluster, agent: PodServer) -> None:
    async with attach(cluster.transport, **HERE, stdin=True) as session:
        output = await session.read()
        assert output is not None
        assert output.data == b"attached\n"
        await session.close_stdin()
        assert await session.wait() == 0
    assert agent.queries == [{"input": ["1"], "output": ["1"], "error": ["1"]}]


@pytest.mark.usefixtures("agent")
async def test_a_port_of_a_pod_is_reached(cluster: Cluster) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())

    async with raw_server(shout) as port, port_forward(cluster.transport, **HERE, port=port) as connection:
        await connection.write(b"hello\n")
        assert await connection.read() == b"HELLO\n"


async def test_without_input_an_agent_of_version_4_serves_a_client_of_version_5(
    cluster: Cluster, agent: PodServer
) -> None:
    agent.protocols = (V4,)
    async with opened(cluster, f"{POD}/exec?command=echo&command=hi&stdout=true", V5) as websocket:
        assert websocket.protocol == V5
        said = [message async for message in websocket.messages()]
    assert b"\x01hi\n" in said


async def test_with_input_it_does_not_since_its_end_could_not_be_told(cluster: Cluster, agent: PodServer) -> None:
    agent.protocols = (V4,)
    with pytest.raises(Forbidden):
        await connect(cluster, f"{POD}/exec?command=cat&stdin=true", V5)


async def test_a_client_that_goes_ends_the_command(cluster: Cluster) -> None:
    ended = asyncio.Event()

    async def talk(websocket: web.WebSocketResponse) -> None:
        async for _ in websocket:
            pass
        ended.set()

    async with an_agent(cluster, talk):
        async with opened(cluster, f"{POD}/exec?command=x&stdin=true", V5):
            assert not ended.is_set()
        async with asyncio.timeout(5):
            await ended.wait()


async def test_an_agent_that_dies_ends_the_clients_connection_at_once(cluster: Cluster) -> None:
    async def talk(websocket: web.WebSocketResponse) -> None:
        await websocket.send_bytes(b"\x01last words")
        assert websocket._req is not None
        assert websocket._req.transport is not None
        websocket._req.transport.close()

    async with (
        an_agent(cluster, talk),
        opened(cluster, f"{POD}/exec?command=x", V5) as websocket,
        asyncio.timeout(5),
    ):
        assert [message async for message in websocket.messages()] == [b"\x01last words"]


async def test_messages_pass_untouched_in_order_both_ways(cluster: Cluster) -> None:
    sizes = [0, 1, 2, 1000, 65_536, 1_000_000, 3]

    async def echo(websocket: web.WebSocketResponse) -> None:
        async for message in websocket:
            await websocket.send_bytes(message.data)

    async with (
        an_agent(cluster, echo, protocols=(TUNNEL,)),
        opened(cluster, f"{POD}/portforward?ports=80", TUNNEL) as websocket,
    ):
        assert websocket.protocol == TUNNEL
        for size in sizes:
            await websocket.send(bytes([size % 256]) * size)
        messages = websocket.messages()
        for size in sizes:
            assert await anext(messages) == bytes([size % 256]) * size


async def test_an_agent_that_reads_nothing_holds_the_client_back(cluster: Cluster) -> None:
    resume = asyncio.Event()
    received = 0

    async def talk(websocket: web.WebSocketResponse) -> None:
        nonlocal received
        await resume.wait()
        async for message in websocket:
            received += len(message.data)

    async with (
        an_agent(cluster, talk),
        opened(cluster, f"{POD}/exec?command=x&stdin=true", V5) as websocket,
    ):
        sent = 0

        async def send() -> None:
            nonlocal sent
            while sent < 256 << 20:
                await websocket.send(bytes(1 << 16))
                sent += 1 << 16

        sending = asyncio.create_task(send())
        before = -1
        async with asyncio.timeout(20):
            while before != sent:
                before = sent
                await asyncio.sleep(0.2)
        assert sent < 64 << 20
        resume.set()
        async with asyncio.timeout(20):
            while received <= before:
                await asyncio.sleep(0.01)
        sending.cancel()


@pytest.mark.parametrize(
    ("code", "text", "seen"),
    [
        (404, "pod does not exist", (404, "NotFound", "pod does not exist")),
        (500, "container is not running", (500, "InternalError", "container is not running")),
        (200, "hello", (500, "", "invalid upgrade response: status code 200")),
        (403, "", (403, "Forbidden", "the agent of the node answered 403 and did not say why")),
    ],
    ids=["404", "500", "no-upgrade", "wordless"],
)
async def test_an_agents_refusal_is_told_over_websocket_and_to_those_who_fall_back_to_spdy(
    cluster: Cluster, code: int, text: str, seen: tuple[int, str, str]
) -> None:
    async def agent(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=text)

    async with serving(agent, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        with pytest.raises(ApiError) as refused:
            await connect(cluster, f"{POD}/exec?command=x", V5)
        assert (refused.value.code, refused.value.reason, refused.value.message) == seen
        if code >= 400 and text:
            assert await spdy(cluster, f"{POD}/exec?command=x") == seen


async def test_spdy_is_refused_with_what_to_do_and_runs_nothing(cluster: Cluster, agent: PodServer) -> None:
    code, reason, message = await spdy(cluster, f"{POD}/exec?command=touch&command=never&stdout=true")
    assert (code, reason) == (400, "BadRequest")
    assert "connect by WebSocket" in message
    assert not Path("never").exists()


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
async def test_an_agent_that_cannot_be_reached_is_named(cluster: Cluster, subresource: str) -> None:
    await cluster.add_node(url="https://127.0.0.1:1")
    await cluster.add_pod("web", node=NODE)
    with pytest.raises(ApiError, match=r"error dialing backend: https://127.0.0.1:1 cannot be reached") as refused:
        await connect(cluster, f"{POD}/{subresource}", V4)
    assert refused.value.code == 500
    assert "error dialing backend" in (await spdy(cluster, f"{POD}/{subresource}"))[2]


async def test_what_stands_against_a_connection_is_said_in_kubernetes_words(cluster: Cluster) -> None:
    await cluster.add_pod("unplaced")
    await cluster.add_pod("two", containers=["a", "b"])
    await cluster.add_pod("lost", node="gone")
    pods = POD.removesuffix("/web")
    for subresource in ("exec", "portforward"):
        with pytest.raises(BadRequest, match="pod unplaced does not have a host assigned"):
            await connect(cluster, f"{pods}/unplaced/{subresource}", V4)
        with pytest.raises(NotFound, match='pods "nope" not found'):
            await connect(cluster, f"{pods}/nope/{subresource}", V4)
        with pytest.raises(NotFound, match='pods "gone" not found'):
            await connect(cluster, f"{pods}/lost/{subresource}", V4)
    with pytest.raises(BadRequest, match=r"a container name must be specified for pod two, choose one of: \[a b\]"):
        await connect(cluster, f"{pods}/two/attach", V4)
    with pytest.raises(BadRequest, match='parsing "x": invalid syntax'):
        await connect(cluster, f"{pods}/two/portforward?ports=80&ports=x", V4)


@pytest.mark.usefixtures("agent")
async def test_a_request_that_is_no_upgrade_or_offers_nothing_known_is_refused(cluster: Cluster) -> None:
    for method in ("GET", "POST"):
        code, status = await cluster.call(method, f"{POD}/exec", query={"command": "x"})
        assert (code, status["message"]) == (400, "Upgrade request required")
    with pytest.raises(BadRequest, match=r"offer one of v5.channel.k8s.io"):
        await connect(cluster, f"{POD}/exec?command=x", "nonsense")


@pytest.mark.usefixtures("agent")
async def test_a_websocket_needs_the_right_to_create(cluster: Cluster) -> None:
    reader = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]}
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    }
    access = "/apis/rbac.authorization.k8s.io/v1"
    assert (await cluster.call("POST", f"{access}/clusterroles", reader))[0] == 201
    assert (await cluster.call("POST", f"{access}/clusterrolebindings", binding))[0] == 201
    token = cluster.server.core.credentials.user_tokens.token("ann", ())
    with pytest.raises(Forbidden, match='cannot create resource "pods/exec"'):
        await connect(cluster, f"{POD}/exec?command=x", V5, token=token)


# An agent of few words, and a client without opinions


Talk = Callable[[web.WebSocketResponse], Awaitable[None]]


@asynccontextmanager
async def an_agent(cluster: Cluster, talk: Talk, *, protocols: tuple[str, ...] = (V5, V4)) -> AsyncIterator[None]:
    """An agent with the pod "web" that takes any WebSocket and lets a function talk."""

    async def answer(request: web.Request) -> web.StreamResponse:
        websocket = web.WebSocketResponse(protocols=protocols)
        await websocket.prepare(request)
        await talk(websocket)
        await websocket.close()
        return websocket

    async with serving(answer, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        yield


@asynccontextmanager
async def opened(cluster: Cluster, path: str, protocol: str, *, token: str = "") -> AsyncIterator[WebSocket]:
    """A WebSocket to the API server with one subprotocol; a refusal is the ApiError that it means."""
    connection = cluster.transport.connection
    if token:
        connection = dataclasses.replace(connection, credentials=bearer_token(token))
    path, _, query = path.partition("?")
    request = Request(method="GET", path=path, query=tuple(parse_qsl(query)), timeout=10)
    transport = HttpTransport(connection)
    try:
        async with transport.websocket(request, (protocol,)) as websocket:
            yield websocket
    finally:
        await transport.close()


async def connect(cluster: Cluster, path: str, protocol: str, *, token: str = "") -> None:
    async with opened(cluster, path, protocol, token=token):
        pass


async def spdy(cluster: Cluster, path: str) -> tuple[int, str, str]:
    """What an old kubectl is told."""
    server, token = cluster.server.url, cluster.server.core.credentials.admin_token
    headers = {"Authorization": f"Bearer {token}", "Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    async with https_session(trusting=False) as session, session.post(server + path, headers=headers) as answer:
        status = await answer.json()
        return answer.status, status.get("reason", ""), status["message"]
