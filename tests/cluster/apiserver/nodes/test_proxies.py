"""nodes/proxy, pods/proxy and services/proxy."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from aiohttp import web

from shoal.cluster.apiserver.outbound import proxied_socket
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.support.network.connects import watched_connects
from tests.support.network.http_servers import serving

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"


async def test_a_nodes_agent_is_asked_what_the_path_says(cluster: Cluster) -> None:
    seen: list[Any] = []

    async def agent(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.path_qs, await request.text(), request.headers.get("Authorization")))
        return web.json_response({"kind": "PodList"}, status=202, headers={"X-Said": "yes"})

    async with serving(agent, socket=cluster.sockets / "a.sock") as url:
        await cluster.add_node(url=url)
        assert await cluster.call("GET", f"/api/v1/nodes/{NODE}/proxy/pods/", query={"a": "b c"}) == (
            202,
            {"kind": "PodList"},
        )
        assert (await cluster.call("POST", f"/api/v1/nodes/{NODE}/proxy/x", {"y": 1}))[0] == 202
    assert seen == [("GET", f"/pods/?a=b+c&node={NODE}", "", None), ("POST", f"/x?node={NODE}", '{"y": 1}', None)]


async def test_a_path_that_is_only_the_proxy_is_sent_to_its_root(cluster: Cluster) -> None:
    await cluster.add_node(url=f"unix://{cluster.sockets}/a.sock")
    code, _ = await cluster.call("GET", f"/api/v1/nodes/{NODE}/proxy")
    assert code == 301


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/api/v1/nodes/none/proxy/", (404, "NotFound", 'nodes "none" not found')),
        ("/api/v1/nodes/ftp:a:b/proxy/", (400, "BadRequest", 'invalid node request "ftp:a:b"')),
        (f"/api/v1/nodes/{NODE}/proxy/", (400, "BadRequest", "address not allowed")),
        (f"/api/v1/nodes/{NODE}:80/proxy/", (400, "BadRequest", "address not allowed")),
        (f"{PODS}/web:x/proxy/", (400, "BadRequest", 'invalid port "x"')),
        (f"{PODS}/local/proxy/", (400, "BadRequest", "address not allowed")),
        ("/api/v1/nodes/named/proxy/", (400, "BadRequest", "address not allowed")),
        (f"{PODS}/none/proxy/", (404, "NotFound", 'pods "none" not found')),
        (f"{SERVICES}/none/proxy/", (404, "NotFound", 'services "none" not found')),
        (f"{SERVICES}/web:81/proxy/", (503, "ServiceUnavailable", 'no service port 81 found for service "web"')),
        (f"{SERVICES}/web:80/proxy/", (503, "ServiceUnavailable", 'no endpoints available for service "web:80"')),
    ],
)
async def test_what_is_not_to_be_reached_is_refused_in_kubernetes_words(
    cluster: Cluster, path: str, seen: tuple[int, str, str]
) -> None:
    await cluster.add_node(url="https://127.0.0.1:1")
    await cluster.add_node("named", url="https://localhost:1")
    await cluster.add_pod("web", node=NODE)
    await cluster.add_pod("local", node=NODE)
    status = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    await cluster.call("PATCH", f"{PODS}/local/status", status, content_type="application/merge-patch+json")
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
    assert (await cluster.call("POST", SERVICES, service))[0] == 201
    assert await cluster.refusal(path) == seen


@pytest.mark.parametrize(
    "address",
    [
        "::ffff:127.0.0.1",
        "::1",
        "::",
        "0.0.0.0",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "localhost",
        "10.88.0.1",
        "10.96.0.1",
        "::ffff:10.88.0.7",
    ],
)
@pytest.mark.parametrize("port", ["", ":80"])
async def test_a_node_at_an_address_that_is_not_its_own_is_refused(cluster: Cluster, address: str, port: str) -> None:
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    assert (await cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": NODE}, "status": status}))[0] == 201
    with watched_connects() as connects:
        seen = await cluster.refusal(f"/api/v1/nodes/{NODE}{port}/proxy/")
    assert seen == (400, "BadRequest", "address not allowed")
    assert connects == []  # the connection to the server is kept from the request before


async def test_a_name_that_comes_to_mean_this_machine_is_refused_when_it_is_dialled() -> None:
    entry = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80))
    with pytest.raises(OSError, match="address not allowed"):
        proxied_socket(entry)


async def test_a_node_without_a_network_has_no_ports(cluster: Cluster) -> None:
    await cluster.add_node(url=f"unix://{cluster.sockets}/a.sock")
    code, _, message = await cluster.refusal(f"/api/v1/nodes/{NODE}:80/proxy/")
    assert (code, message) == (503, 'node "node-a" has no ports but that of its agent: leave the port out')
