"""Logs through the API server, from an agent over TLS or over a Unix socket."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.nodes.logs import log_query
from shoal.cluster.apiserver.refusals import Refused
from shoal.kube.streams import follow_logs, log_chunks
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.support.network.http_servers import serving
from tests.support.network.streams import PodServer
from tests.support.network.tls import Authority

POD = "/api/v1/namespaces/default/pods/web"


@pytest.mark.parametrize("over", ["tls", "socket"])
async def test_a_log_comes_through_with_the_options_of_the_agent(cluster: Cluster, tmp_path: Path, over: str) -> None:
    agent = PodServer()
    agent.log = b"one\ntwo\n"
    socket = cluster.sockets / "a.sock" if over == "socket" else None
    tls = None if socket else Authority().server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(agent, tls=tls, socket=socket) as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        lines = [
            line
            async for line in follow_logs(
                cluster.transport,
                namespace="default",
                pod="web",
                timestamps=True,
                tail_lines=5,
                since_time="2026-01-01T01:00:00+01:00",
            )
        ]
    assert lines == [b"one", b"two", b"live"]
    sent = {"follow": ["true"], "timestamps": ["true"], "tailLines": ["5"], "sinceTime": ["2026-01-01T00:00:00Z"]}
    assert agent.queries == [sent]


async def test_a_followed_log_arrives_while_it_is_written_and_ends_at_the_agent_with_its_reader(
    cluster: Cluster,
) -> None:
    more, gone = asyncio.Event(), asyncio.Event()

    async def agent(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            await answer.write(b"first\n")
            await more.wait()
            await answer.write(b"second\n")
            await asyncio.Event().wait()
        finally:
            gone.set()
        return answer

    async with serving(agent, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        async with aclosing(log_chunks(cluster.transport, namespace="default", pod="web")) as chunks:
            assert await anext(chunks) == b"first\n"
            assert not gone.is_set()
            more.set()
            assert await anext(chunks) == b"second\n"
        async with asyncio.timeout(5):
            await gone.wait()


async def test_a_reader_who_stops_reading_holds_the_agent_back(cluster: Cluster) -> None:
    sent = 0

    async def agent(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        while sent < 512 << 20:
            await answer.write(bytes(1 << 16))
            sent += 1 << 16
        return answer

    async with serving(agent, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        async with aclosing(log_chunks(cluster.transport, namespace="default", pod="web")) as chunks:
            await anext(chunks)
            before = -1
            async with asyncio.timeout(20):
                while before != sent:
                    before = sent
                    await asyncio.sleep(0.2)
            assert sent < 64 << 20


async def test_a_pod_that_is_on_no_node_has_no_log_yet(cluster: Cluster) -> None:
    await cluster.add_pod("web")
    code, _ = await cluster.call("GET", f"{POD}/log")
    assert code == 204


async def test_what_cannot_be_found_is_named_as_kubernetes_names_it(cluster: Cluster) -> None:
    await cluster.add_node("addressless")
    await cluster.add_node("dead", url="https://127.0.0.1:1")
    for pod, node in (("lost", "gone"), ("dark", "addressless"), ("cut-off", "dead")):
        await cluster.add_pod(pod, node=node)
    pods = POD.removesuffix("/web")
    assert await cluster.refusal(f"{pods}/nope/log") == (404, "NotFound", 'pods "nope" not found')
    assert await cluster.refusal(f"{pods}/lost/log") == (404, "NotFound", 'pods "gone" not found')
    none = "no preferred addresses found; known addresses: []"
    assert await cluster.refusal(f"{pods}/dark/log") == (500, "", none)
    code, reason, message = await cluster.refusal(f"{pods}/cut-off/log")
    assert (code, reason) == (500, "")
    assert message.startswith("error dialing backend: https://127.0.0.1:1 cannot be reached: Connection refused")


async def test_containers_are_chosen_as_kubernetes_chooses_them(cluster: Cluster) -> None:
    default = {"kubectl.kubernetes.io/default-container": "b"}
    await cluster.add_pod("web", containers=["a", "b"], init=["i"], annotations=default)
    bad = (400, "BadRequest")
    message = "a container name must be specified for pod web, choose one of: [i a b]"
    assert await cluster.refusal(f"{POD}/log") == (*bad, message)
    assert await cluster.refusal(f"{POD}/log", container="z") == (*bad, "container z is not valid for pod web")
    assert (await cluster.call("GET", f"{POD}/log", query={"container": "i"}))[0] == 204


@pytest.mark.parametrize(
    ("code", "body", "seen"),
    [
        (400, "no", (400, "BadRequest", "no")),
        (403, "no", (403, "Forbidden", "no ( pods/log web)")),
        (404, "no", (404, "NotFound", "the server could not find the requested resource ( pods/log web)")),
        (500, "no", (500, "InternalError", "Internal error occurred: no")),
        (
            503,
            "no",
            (503, "ServiceUnavailable", "the server is currently unable to handle the request ( pods/log web)"),
        ),
        (302, "", (500, "", 'Get "/elsewhere": redirects forbidden')),
        (
            404,
            '{"kind":"Status","reason":"NotFound","message":"no such run","code":404}',
            (404, "NotFound", "no such run"),
        ),
    ],
    ids=["400", "403", "404", "500", "503", "redirect", "status"],
)
async def test_an_agents_refusal_means_what_it_means_in_kubernetes(
    cluster: Cluster, code: int, body: str, seen: tuple[int, str, str]
) -> None:
    async def agent(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body, headers={"Location": "/elsewhere"} if code == 302 else {})

    async with serving(agent, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        assert await cluster.refusal(f"{POD}/log") == seen


@pytest.mark.parametrize(
    ("query", "passed"),
    [
        ({}, {}),
        ({"follow": ""}, {"follow": "true"}),
        ({"follow": "no"}, {"follow": "true"}),
        ({"follow": "False", "previous": "0", "timestamps": "1"}, {"timestamps": "true"}),
        (
            {"tailLines": "0", "limitBytes": "1", "sinceSeconds": "1"},
            {"tailLines": "0", "limitBytes": "1", "sinceSeconds": "1"},
        ),
        ({"sinceTime": ""}, {"sinceTime": "0001-01-01T00:00:00Z"}),
        ({"bogus": "1", "container": "c"}, {}),
    ],
    ids=["none", "bare-flag", "any-value", "false", "numbers", "no-time", "unknown"],
)
def test_options_are_read_as_kubernetes_reads_them(query: dict[str, str], passed: dict[str, str]) -> None:
    assert log_query(a_call(query), "web") == passed


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"tailLines": "-1"}, 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"},
            422,
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ({"stream": "Stdout"}, 422, "stream: Forbidden: may not be specified"),
        (
            {"tailLines": "-1", "limitBytes": "-5"},
            422,
            "[tailLines: Invalid value: -1: must be greater than or equal to 0, "
            "limitBytes: Invalid value: -5: must be greater than 0]",
        ),
        ({"tailLines": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"tailLines": ""}, 400, 'strconv.ParseInt: parsing "": invalid syntax'),
        ({"limitBytes": "9" * 20}, 400, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ({"sinceTime": "x"}, 400, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_wrong_options_are_refused_in_kubernetes_words(query: dict[str, str], code: int, message: str) -> None:
    with pytest.raises(Refused) as refused:
        log_query(a_call(query), "web")
    said = f'PodLogOptions "web" is invalid: {message}' if code == 422 else message
    assert (refused.value.status.code, refused.value.status.message) == (code, said)


def a_call(query: dict[str, Any]) -> Call:
    return Call(method="GET", path="", query={name: [value] for name, value in query.items()})
