"""Pods, Services and webhooks are reached by the agents of nodes: the server itself dials no address of the cluster."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from shoal.cluster.node.kubelet.wires import accept_bare
from shoal.cluster.upgraded import carry_both_ways
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.support.network.connects import watched_connects
from tests.support.network.http_servers import raw_server, serving
from tests.support.network.tls import Authority

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MERGE = "application/merge-patch+json"
ADDRESS = "10.88.0.7"


class Agent:
    """An agent all of whose pods listen on one port of this machine's loopback, whatever port is asked for."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            wire = await accept_bare(request, {"Upgrade": "tcp"})
            await carry_both_ways(wire, _Streams(reader, writer))
            return wire.response
        finally:
            writer.close()


class _Streams:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def pieces(self) -> AsyncIterator[bytes]:
        while data := await self._reader.read(1 << 16):
            yield data

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def show(request: web.Request) -> web.StreamResponse:
    """Answers with what came."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    seen = {"method": request.method, "path": request.path_qs, "body": await request.text(), "headers": headers}
    return web.json_response(seen, status=203, headers={"X-Said": "yes"})


@asynccontextmanager
async def a_pod(cluster: Cluster, handler: Handler, **options: Any) -> AsyncIterator[Agent]:
    """A running pod ``web`` that answers by a handler, and a Service in front of it."""
    async with serving(handler, **options) as url:
        agent = Agent(int(url.rpartition(":")[2]))
        async with serving(agent.answer, socket=cluster.sockets / "a.sock") as socket:
            await cluster.add_node(url=socket)
            await add_web(cluster)
            yield agent


async def add_web(cluster: Cluster, *, node: str = NODE, phase: str = "Running") -> None:
    await cluster.add_pod("web", node=node, phase=phase, labels={"app": "web"})
    status = {"status": {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}}
    assert (await cluster.call("PATCH", f"{PODS}/web/status", status, content_type=MERGE))[0] == 200
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 443, "targetPort": "x"}]}}
    assert (await cluster.call("POST", SERVICES, service))[0] == 201
    await point_to(cluster, {"ip": ADDRESS, "targetRef": {"kind": "Pod", "name": "web", "namespace": "default"}})


async def point_to(cluster: Cluster, address: dict[str, Any]) -> None:
    """Gives the Service ``web`` one endpoint."""
    subset = {"addresses": [address], "ports": [{"name": "http", "port": 8443}]}
    made = {"metadata": {"name": "web"}, "subsets": [subset]}
    await cluster.call("DELETE", f"{ENDPOINTS}/web")
    code, answer = await cluster.call("POST", ENDPOINTS, made)
    assert code == 201, answer


async def uid_of(cluster: Cluster, pod: str) -> str:
    return str((await cluster.call("GET", f"{PODS}/{pod}"))[1]["metadata"]["uid"])


@pytest.mark.parametrize(
    ("path", "port"),
    [(f"{PODS}/web:8080", 8080), (f"{SERVICES}/web:http", 8443), (f"{SERVICES}/web:443", 8443)],
)
async def test_a_request_reaches_a_pod_by_its_agent_without_credentials(cluster: Cluster, path: str, port: int) -> None:
    async with a_pod(cluster, show) as agent:
        with watched_connects() as connects:
            code, seen = await cluster.call("POST", f"{path}/proxy/a%20b/", {"c": 1}, query={"d": "e f"})

    assert (code, seen["method"], seen["path"], json.loads(seen["body"])) == (203, "POST", "/a%20b/?d=e+f", {"c": 1})
    assert "authorization" not in seen["headers"]
    assert seen["headers"]["host"] == f"{ADDRESS}:{port}"
    assert [asked.rpartition("?")[2] for asked in agent.asked] == [f"port={port}"]
    assert set(connects) == {"127.0.0.1"}  # the agent of this test


async def test_the_agent_is_asked_for_the_very_pod(cluster: Cluster) -> None:
    async with a_pod(cluster, show) as agent:
        await cluster.call("GET", f"{PODS}/web:80/proxy/")
        assert agent.asked == [f"/podConnect/default/web/{await uid_of(cluster, 'web')}?port=80"]


async def test_impersonation_and_tokens_of_browsers_are_not_passed_on(cluster: Cluster) -> None:
    async with a_pod(cluster, show), a_session(cluster) as session:
        headers = {"Impersonate-User": "admin", "Impersonate-Group": "system:masters", "Connection": "close"}
        protocols = "base64url.bearer.authorization.k8s.io.c2VjcmV0, chat"
        async with session.get(
            f"{PODS}/web:80/proxy/", headers=headers | {"Sec-WebSocket-Protocol": protocols}
        ) as answer:
            seen = (await answer.json())["headers"]
    assert [name for name in seen if name.startswith("impersonate")] == []
    assert seen["sec-websocket-protocol"] == "chat"


async def test_an_answer_is_passed_on_as_it_comes(cluster: Cluster) -> None:
    release = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await release.wait()
        await response.write(b"second")
        return response

    async with a_pod(cluster, drip), a_session(cluster) as session, session.get(f"{PODS}/web:80/proxy/") as answer:
        assert await answer.content.readany() == b"first"
        release.set()
        assert await answer.content.read() == b"second"


async def test_a_websocket_is_passed_on(cluster: Cluster) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=["chat"])
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{message.data} back")
        return socket

    async with (
        a_pod(cluster, echo),
        a_session(cluster) as session,
        session.ws_connect(f"{SERVICES}/web:http/proxy/chat", protocols=["chat"]) as socket,
    ):
        assert socket.protocol == "chat"
        for text in ("one", "x" * 200_000):
            await socket.send_str(text)
            assert await socket.receive_str(timeout=30) == f"{text} back"
        await socket.close()
        assert socket.close_code == 1000


async def test_an_upgrade_that_a_pod_refuses_is_its_answer(cluster: Cluster) -> None:
    async with a_pod(cluster, show), a_session(cluster) as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{PODS}/web:80/proxy/")
        assert refused.value.status == 203


async def test_a_pod_is_reached_over_tls_whatever_its_certificate(cluster: Cluster, tmp_path: Path) -> None:
    context = Authority().server_context(tmp_path, hosts=("elsewhere",))
    async with a_pod(cluster, show, tls=context):
        assert (await cluster.call("GET", f"{PODS}/https:web:443/proxy/"))[0] == 203


# Webhooks


async def deny(request: web.Request) -> web.StreamResponse:
    """A webhook that refuses everything."""
    review = await request.json()
    response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": request.headers["Host"]}}
    return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


async def configure(cluster: Cluster, client: dict[str, Any], **more: Any) -> None:
    hook = {
        "name": "x.shoal.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": client,
        **more,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
    }
    code, answer = await cluster.call("POST", HOOKS, {"metadata": {"name": "x"}, "webhooks": [hook]})
    assert code == 201, answer


async def outcome(cluster: Cluster) -> str:
    _, status = await cluster.call("POST", CONFIG_MAPS, {"metadata": {"name": "any"}})
    return str(status["message"])


async def test_a_webhook_behind_a_service_is_called_by_the_agent_and_known_by_its_name(
    cluster: Cluster, tmp_path: Path
) -> None:
    authority = Authority()
    bundle = base64.b64encode(authority.pem).decode()
    context = authority.server_context(tmp_path, hosts=("web.default.svc",))
    async with a_pod(cluster, deny, tls=context) as agent:
        await configure(cluster, {"service": {"namespace": "default", "name": "web"}, "caBundle": bundle})
        with watched_connects() as connects:
            told = [await outcome(cluster) for _ in range(2)]
    assert told == ['admission webhook "x.shoal.test" denied the request: web.default.svc:443'] * 2
    assert len(agent.asked) == 1  # the connection is kept
    assert ADDRESS not in connects


async def test_a_webhook_behind_a_service_needs_a_certificate_for_its_name(cluster: Cluster, tmp_path: Path) -> None:
    authority = Authority()
    bundle = base64.b64encode(authority.pem).decode()
    context = authority.server_context(tmp_path, hosts=("other.default.svc",))
    async with a_pod(cluster, deny, tls=context):
        await configure(cluster, {"service": {"namespace": "default", "name": "web"}, "caBundle": bundle})
        assert "wanted to match web.default.svc" in await outcome(cluster)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ({"ip": "192.0.2.7"}, "that are pods: the API server connects to pods alone"),
        ({"ip": ADDRESS}, "that are pods: the API server connects to pods alone"),
        (
            {"ip": "10.88.0.8", "targetRef": {"kind": "Pod", "name": "web", "namespace": "default"}},
            "that are pods: the API server connects to pods alone",
        ),
    ],
    ids=["outside", "no-pod-named", "address-of-another"],
)
async def test_an_endpoint_that_is_no_pod_of_the_service_is_never_dialled(
    cluster: Cluster, address: dict[str, Any], why: str
) -> None:
    async with a_pod(cluster, show) as agent:
        await point_to(cluster, address)
        await configure(cluster, {"service": {"namespace": "default", "name": "web"}})
        with watched_connects() as connects:
            assert f'no endpoints available for service "web" {why}' in await outcome(cluster)
            assert (await cluster.refusal(f"{SERVICES}/web:http/proxy/"))[0] == 503
    assert (agent.asked, address["ip"] in connects) == ([], False)


async def test_a_service_with_an_external_name_is_never_dialled(cluster: Cluster) -> None:
    service = {"metadata": {"name": "out"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    assert (await cluster.call("POST", SERVICES, service))[0] == 201
    await configure(cluster, {"service": {"namespace": "default", "name": "out"}})
    assert 'service "out" has the type ExternalName: ' in await outcome(cluster)


@pytest.mark.parametrize("host", ["10.88.0.7", "10.96.0.1", "[::ffff:10.88.0.7]"])
async def test_a_webhook_whose_url_is_an_address_of_the_cluster_is_never_dialled(cluster: Cluster, host: str) -> None:
    await configure(cluster, {"url": f"https://{host}:8443/x"})
    with watched_connects() as connects:
        assert "is an address of a pod or a Service" in await outcome(cluster)
    assert connects == []


async def test_a_webhook_whose_agent_is_down_is_reported(cluster: Cluster) -> None:
    await cluster.add_node(url=f"unix://{cluster.sockets}/a.sock")
    await add_web(cluster)
    await configure(cluster, {"service": {"namespace": "default", "name": "web", "path": "/x"}})
    assert (await outcome(cluster)).endswith(
        'failed to call webhook: Post "https://web.default.svc:443/x?timeout=10s": '
        'the agent of node "node-a" cannot be reached: No such file or directory'
    )


async def test_a_webhook_of_a_pod_that_says_nothing_is_given_up_in_its_time(cluster: Cluster) -> None:
    async def nothing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with raw_server(nothing) as port:
        agent = Agent(port)
        async with serving(agent.answer, socket=cluster.sockets / "a.sock") as url:
            await cluster.add_node(url=url)
            await add_web(cluster)
            await configure(cluster, {"service": {"namespace": "default", "name": "web"}}, timeoutSeconds=1)
            assert (await outcome(cluster)).endswith("context deadline exceeded")


# What keeps a pod from being reached


async def refused_pod(cluster: Cluster) -> str:
    code, reason, message = await cluster.refusal(f"{PODS}/web:80/proxy/")
    assert (code, reason) == (503, "ServiceUnavailable")
    return message.removeprefix("error trying to reach service: ")


async def test_a_pod_that_does_not_run_is_not_reached(cluster: Cluster) -> None:
    await cluster.add_node(url=f"unix://{cluster.sockets}/a.sock")
    await add_web(cluster, phase="Pending")
    assert await refused_pod(cluster) == 'pod "default/web" is not running: its phase is Pending'


async def test_a_pod_without_a_node_is_not_reached(cluster: Cluster) -> None:
    await add_web(cluster, node="")
    assert await refused_pod(cluster) == 'pod "default/web" is not running: it is assigned to no node'


async def test_a_pod_whose_agent_is_down_is_not_reached(cluster: Cluster) -> None:
    await cluster.add_node(url=f"unix://{cluster.sockets}/a.sock")
    await add_web(cluster)
    assert await refused_pod(cluster) == 'the agent of node "node-a" cannot be reached: No such file or directory'


async def test_a_pod_whose_agent_is_silent_is_given_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.cluster.apiserver.nodes.pod_connections._ANSWERS_WITHIN", 0.2)

    async def nothing(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(nothing, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await add_web(cluster)
        told = await refused_pod(cluster)
    assert told == 'the agent of node "node-a" cannot be reached: it did not answer within 0.2 s'


@pytest.mark.parametrize(
    "said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching"], ids=["nothing", "no-http", "half"]
)
async def test_an_agent_that_breaks_off_is_reported(cluster: Cluster, said: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    path = cluster.sockets / "a.sock"
    async with await asyncio.start_unix_server(speak, path):
        await cluster.add_node(url=f"unix://{path}")
        await add_web(cluster)
        assert await refused_pod(cluster) == "the agent of the node broke off its answer, or does not answer in HTTP"


async def test_a_pod_may_have_the_longest_of_names(cluster: Cluster) -> None:
    name = f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}"
    async with a_pod(cluster, show) as agent:
        await cluster.add_pod(name, node=NODE)
        assert (await cluster.call("GET", f"{PODS}/{name}:80/proxy/"))[0] == 203
        assert agent.asked == [f"/podConnect/default/{name}/{await uid_of(cluster, name)}?port=80"]


async def test_an_agents_refusal_is_passed_on(cluster: Cluster) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "message": "x" * 20_000 + " is simulated"}, status=503)

    async with serving(refuse, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await add_web(cluster)
        assert (await refused_pod(cluster)).endswith("x is simulated")


async def test_a_pod_of_an_agent_elsewhere_is_not_dialled(cluster: Cluster) -> None:
    await cluster.add_node(url="https://192.0.2.1:10250")
    await add_web(cluster)
    with watched_connects() as connects:
        assert 'the agent of node "node-a" at https://192.0.2.1:10250 carries no connections' in await refused_pod(
            cluster
        )
    assert {"192.0.2.1", ADDRESS} & set(connects) == set()


async def test_a_pod_that_does_not_speak_http_is_reported(cluster: Cluster) -> None:
    async def mumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"what?\r\n\r\n")

    async with raw_server(mumble) as port:
        agent = Agent(port)
        async with serving(agent.answer, socket=cluster.sockets / "a.sock") as url:
            await cluster.add_node(url=url)
            await add_web(cluster)
            assert "did not answer in HTTP" in await refused_pod(cluster)


async def test_an_agent_at_an_address_of_the_cluster_is_never_dialled(cluster: Cluster) -> None:
    await cluster.add_node(url="https://10.88.0.9:10250")
    await cluster.add_pod("there", node=NODE)
    with watched_connects() as connects:
        code, _, message = await cluster.refusal(f"{PODS}/there/log")
    assert (code, "connections to 10.88.0.9 are not allowed" in message) == (500, True)
    assert "10.88.0.9" not in connects


@asynccontextmanager
async def a_session(cluster: Cluster) -> AsyncIterator[aiohttp.ClientSession]:
    """Plain HTTP as the server's owner, over its socket."""
    connector = aiohttp.UnixConnector(str(cluster.sockets.parent / "api.sock"))
    async with aiohttp.ClientSession(base_url="http://localhost", connector=connector) as session:
        yield session
