"""Where agents are found, and whom the server believes."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509

from shoal.api.meta import now
from shoal.cluster.apiserver.nodes.agents import preferred_address
from shoal.cluster.apiserver.refusals import Refused
from shoal.kube.certificates import KeyPair, load_into, make_serving
from tests.cluster.apiserver.nodes.conftest import NODE, Cluster
from tests.support.network.http_servers import serving
from tests.support.network.tls import Authority

LOG = "/api/v1/namespaces/default/pods/web/log"


def test_the_best_address_is_taken_and_none_is_told() -> None:
    named = {"type": "Hostname", "address": "a"}
    inner, outer = {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "8.8.8.8"}
    assert preferred_address([outer, named, inner, {"type": "InternalIP", "address": "10.0.0.2"}]) == "10.0.0.1"
    assert preferred_address([outer, named]) == "a"
    assert preferred_address([outer]) == "8.8.8.8"
    with pytest.raises(Refused, match=r"no preferred addresses found; known addresses: \[\{Odd x\}\]"):
        preferred_address([{"type": "Odd", "address": "x"}])


async def test_the_agent_sees_a_client_certificate_of_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    subjects: list[str] = []
    tls = Authority().server_context(tmp_path, hosts=("127.0.0.1",))
    tls.load_verify_locations(cadata=cluster.server.core.credentials.authority.decode())
    tls.verify_mode = ssl.CERT_REQUIRED

    async def agent(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        der = request.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        subjects.append(x509.load_der_x509_certificate(der).subject.rfc4514_string())
        return web.Response(text="hello")

    async with serving(agent, tls=tls) as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        assert await cluster.call("GET", LOG) == (200, b"hello")
    assert subjects == ["CN=kube-apiserver-kubelet-client,O=system:masters"]


async def test_an_agent_that_once_had_a_certificate_of_the_cluster_must_keep_to_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    async def agent(_: web.Request) -> web.StreamResponse:
        return web.Response(text="hello", headers={"Connection": "close"})

    folder = tmp_path / "data" / "pki"
    authority = KeyPair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_into(tls, make_serving(authority, ["127.0.0.1"], now=now(), lifetime=timedelta(hours=1)))
    async with serving(agent, tls=tls) as url:
        await cluster.add_node(url=url)
        await cluster.add_pod("web", node=NODE)
        assert await cluster.call("GET", LOG) == (200, b"hello")
        chain, key = Authority().issue("stranger", hosts=("127.0.0.1",)).write(tmp_path, "stranger")
        tls.load_cert_chain(chain, key)
        code, _, message = await cluster.refusal(LOG)
        assert (code, "certificate that is not trusted" in message) == (500, True)
        assert await cluster.call("GET", LOG, query={"insecureSkipTLSVerifyBackend": "true"}) == (200, b"hello")


@pytest.mark.parametrize("place", ["elsewhere", "through-a-link", "above", "the-servers-own"])
async def test_a_socket_outside_the_agents_folder_is_not_talked_to(
    cluster: Cluster, tmp_path: Path, place: str
) -> None:
    asked: list[Any] = []

    async def agent(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        return web.Response(text="secret")

    outside = tmp_path / "o.sock"
    async with serving(agent, socket=outside):
        path = {
            "elsewhere": outside,
            "through-a-link": cluster.sockets / "link.sock",
            "above": cluster.sockets / ".." / ".." / "o.sock",
            "the-servers-own": cluster.server.socket,
        }[place]
        if place == "through-a-link":
            path.symlink_to(outside)
        await cluster.add_node(url=f"unix://{path}")
        await cluster.add_pod("web", node=NODE)
        code, _, message = await cluster.refusal(LOG)
    assert (code, asked) == (500, [])
    assert "must be in" in message
