"""Which proxy leads to a server (Go's rules), and that requests really go through it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from shoal.kube.connection import Connection, Impersonation
from shoal.kube.credentials import bearer_token
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.http.proxies import ProxyError, environment_proxy, is_direct, parse_proxy
from shoal.kube.tls import Tls
from shoal.kube.transport import Request
from tests.support.network.http_servers import connect_proxy, serving, socks_proxy
from tests.support.network.tls import Authority

GET = Request(method="GET", path="/api/v1/pods", query={"limit": "1"}, timeout=10)


async def answer(request: web.Request) -> web.Response:
    return web.Response(text=f"{request.path_qs} {request.headers.get('Authorization', '')}")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


# The rules


@pytest.mark.parametrize(
    ("no_proxy", "host", "port", "direct"),
    [
        pytest.param("", "api.example.com", 443, False, id="nothing-said"),
        pytest.param("", "localhost", 443, True, id="localhost-always"),
        pytest.param("", "127.8.9.1", 443, True, id="loopback-always"),
        pytest.param("", "::1", 443, True, id="loopback-6-always"),
        pytest.param("*", "api.example.com", 443, True, id="all"),
        pytest.param("a.com, *", "10.0.0.1", 443, True, id="all-among-others"),
        pytest.param("example.com", "example.com", 443, True, id="domain-itself"),
        pytest.param("example.com", "api.example.com", 443, True, id="domain-covers-below"),
        pytest.param("example.com", "badexample.com", 443, False, id="domain-not-a-suffix-of-a-word"),
        pytest.param(".example.com", "example.com", 443, False, id="dot-not-itself"),
        pytest.param(".example.com", "api.example.com", 443, True, id="dot-below"),
        pytest.param("*.example.com", "example.com", 443, False, id="star-not-itself"),
        pytest.param("*.example.com", "api.example.com", 443, True, id="star-below"),
        pytest.param("EXAMPLE.com", "Api.Example.COM", 443, True, id="case-does-not-matter"),
        pytest.param("example.com:6443", "example.com", 6443, True, id="domain-port"),
        pytest.param("example.com:6443", "example.com", 443, False, id="domain-other-port"),
        pytest.param("10.0.0.1", "10.0.0.1", 443, True, id="address"),
        pytest.param("10.0.0.1", "10.0.0.10", 443, False, id="other-address"),
        pytest.param("10.0.0.1:6443", "10.0.0.1", 6443, True, id="address-port"),
        pytest.param("10.0.0.1:6443", "10.0.0.1", 443, False, id="address-other-port"),
        pytest.param("10.0.0.0/8", "10.200.3.4", 443, True, id="network"),
        pytest.param("10.0.0.0/8", "11.0.0.1", 443, False, id="outside-the-network"),
        pytest.param("10.0.0.0/8", "ten.example.com", 443, False, id="network-covers-no-name"),
        pytest.param("fd00::/8", "fd00::1", 443, True, id="network-6"),
        pytest.param("[fd00::1]:6443", "fd00::1", 6443, True, id="address-6-port"),
        pytest.param("[fd00::1]:6443", "fd00::1", 443, False, id="address-6-other-port"),
        pytest.param("fd00::1", "fd00::1", 443, True, id="address-6"),
        pytest.param("1.1", "10.0.1.1", 443, False, id="suffix-of-an-address-is-none"),
        pytest.param(" , ,example.com", "example.com", 443, True, id="blanks-are-skipped"),
        pytest.param(":443", "example.com", 443, False, id="port-alone-is-nothing"),
    ],
)
def test_who_is_reached_without_a_proxy(no_proxy: str, host: str, port: int, direct: bool) -> None:
    assert is_direct(host, port, no_proxy) is direct


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        pytest.param("https://a.com", {"HTTPS_PROXY": "http://p:1"}, "http://p:1", id="https"),
        pytest.param("https://a.com", {"HTTP_PROXY": "http://p:1"}, None, id="https-ignores-http"),
        pytest.param("http://a.com", {"HTTP_PROXY": "http://p:1"}, "http://p:1", id="http"),
        pytest.param("https://a.com", {"https_proxy": "p:1"}, "http://p:1", id="lower-case-and-no-scheme"),
        pytest.param(
            "https://a.com", {"HTTPS_PROXY": "http://big:1", "https_proxy": "http://small:1"}, "http://big:1", id="both"
        ),
        pytest.param("https://a.com", {"HTTPS_PROXY": "http://p"}, "http://p:80", id="default-port"),
        pytest.param("https://a.com", {"HTTPS_PROXY": "socks5://p"}, "socks5://p:1080", id="socks"),
        pytest.param("https://a.com", {"HTTPS_PROXY": "p:1", "NO_PROXY": "a.com"}, None, id="no-proxy"),
        pytest.param("https://a.com:6443", {"HTTPS_PROXY": "p:1", "no_proxy": "a.com:443"}, "http://p:1", id="port"),
        pytest.param("https://a.com", {"HTTPS_PROXY": "p:1", "NO_PROXY": "a.com:443"}, None, id="implied-port"),
        pytest.param("https://a.com", {"ALL_PROXY": "p:1"}, None, id="all-proxy-is-not-gos"),
        pytest.param("https://127.0.0.1:6443", {"HTTPS_PROXY": "p:1"}, None, id="this-machine"),
        pytest.param("unix:///run/s", {"HTTP_PROXY": "p:1"}, None, id="unix-socket"),
        pytest.param("https://a.com", {"HTTPS_PROXY": "ftp://p:1"}, None, id="unusable-is-none"),
        pytest.param("http://a.com", {"HTTP_PROXY": "p:1", "REQUEST_METHOD": "GET"}, None, id="cgi"),
        pytest.param("https://a.com", {}, None, id="nothing-said"),
    ],
)
def test_what_the_environment_says(server: str, environ: dict[str, str], proxy: str | None) -> None:
    found = environment_proxy(server, environ)
    assert (found.url if found else None) == proxy


def test_a_proxys_password_is_kept_out_of_its_url_and_its_text() -> None:
    proxy = parse_proxy("http://ann:s%40cret@p:3128")
    assert (proxy.username, proxy.password, proxy.url) == ("ann", "s@cret", "http://p:3128")
    assert "s@cret" not in repr(proxy)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        pytest.param("ftp://p:1", 'scheme is "ftp"', id="scheme"),
        pytest.param("http://", "names no host", id="no-host"),
        pytest.param("http://p:x1", "not a URL", id="port"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_explained(url: str, says: str) -> None:
    with pytest.raises(ProxyError, match=says):
        parse_proxy(url)


# HTTP proxies


async def send(transport: HttpTransport) -> str:
    try:
        return (await transport.send(GET)).body.decode()
    finally:
        await transport.close()


async def test_https_is_tunnelled_and_the_proxy_learns_no_secret(authority: Authority, tmp_path: Path) -> None:
    tls = authority.server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(answer, tls=tls) as server, connect_proxy(password="s@cret") as proxy:
        transport = HttpTransport(
            Connection(
                server=server,
                proxy=f"http://ann:s%40cret@127.0.0.1:{proxy.port}",
                tls=Tls(authorities=authority.pem),
                credentials=bearer_token("token"),
                impersonation=Impersonation(user="bob"),
            )
        )
        first = (await transport.send(GET)).body.decode()
        second = await send(transport)
    assert first == second == "/api/v1/pods?limit=1 Bearer token"
    ((line, headers),) = proxy.requests
    assert line == f"CONNECT {server.removeprefix('https://')} HTTP/1.1"
    assert "authorization" not in headers
    assert "impersonate-user" not in headers


async def test_the_name_of_the_server_is_checked_through_a_tunnel_too(authority: Authority, tmp_path: Path) -> None:
    tls = authority.server_context(tmp_path, hosts=("kubernetes.default",))
    async with serving(answer, tls=tls) as server, connect_proxy() as proxy:
        connection: dict[str, Any] = {"server": server, "proxy": f"http://127.0.0.1:{proxy.port}"}
        named = Tls(authorities=authority.pem, server_name="kubernetes.default")
        assert await send(HttpTransport(Connection(**connection, tls=named)))
        with pytest.raises(ConnectionFault, match="not trusted"):
            await send(HttpTransport(Connection(**connection, tls=Tls(authorities=authority.pem))))


async def test_plain_http_is_handed_to_the_proxy() -> None:
    async with serving(answer) as server, connect_proxy(password="x") as proxy:
        connection = Connection(server=server, proxy=f"http://ann:x@127.0.0.1:{proxy.port}")
        assert await send(HttpTransport(connection)) == "/api/v1/pods?limit=1 "
    assert proxy.requests[0][0] == f"GET {server}/api/v1/pods?limit=1 HTTP/1.1"


async def test_a_proxy_that_refuses_is_named_as_the_cause(authority: Authority, tmp_path: Path) -> None:
    tls = authority.server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(answer, tls=tls) as server, connect_proxy(password="right") as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        transport = HttpTransport(Connection(server=server, proxy=f"http://ann:wr0ng@127.0.0.1:{proxy.port}"))
        with pytest.raises(ConnectionFault, match=f"through {url}.*the proxy answered 407") as caught:
            await send(transport)
    assert not caught.value.sent
    assert "wr0ng" not in str(caught.value)


async def test_a_proxy_that_is_not_there_is_named_as_the_cause() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionFault, match="through the proxy: Connection refused") as caught:
        await send(HttpTransport(Connection(server="https://api.example.com", proxy=url)))
    assert not caught.value.sent


async def test_the_environments_proxy_is_used_unless_it_is_ruled_out() -> None:
    async with serving(answer) as server, connect_proxy(resolve=lambda _: "127.0.0.1") as proxy:
        name = server.replace("127.0.0.1", "only-there.invalid")
        environ = {"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}"}
        assert await send(HttpTransport(Connection(server=name), environ=environ)) == "/api/v1/pods?limit=1 "
        with pytest.raises(ConnectionFault, match="does not resolve"):
            await send(HttpTransport(Connection(server=name), environ=environ | {"NO_PROXY": ".invalid"}))
        assert await send(HttpTransport(Connection(server=server), environ=environ)) == "/api/v1/pods?limit=1 "
    assert len(proxy.requests) == 1


async def test_websockets_are_tunnelled_too(authority: Authority, tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        async for message in websocket:
            await websocket.send_bytes(message.data)
        return websocket

    tls = authority.server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(echo, tls=tls) as server, connect_proxy() as proxy, socks_proxy() as socks:
        for url in (f"http://127.0.0.1:{proxy.port}", f"socks5://127.0.0.1:{socks.port}"):
            transport = HttpTransport(Connection(server=server, proxy=url, tls=Tls(authorities=authority.pem)))
            async with transport.websocket(GET, ()) as websocket:
                await websocket.send(b"hello")
                assert await anext(websocket.messages()) == b"hello"
            await transport.close()
    assert len(proxy.requests) == len(socks.targets) == 1


# SOCKS


async def test_a_socks_proxy_resolves_the_name_itself(authority: Authority, tmp_path: Path) -> None:
    tls = authority.server_context(tmp_path, hosts=("only-there.internal",))
    async with serving(answer, tls=tls) as server, socks_proxy(password="pw", resolve=lambda _: "127.0.0.1") as proxy:
        port = int(server.rpartition(":")[2])
        transport = HttpTransport(
            Connection(
                server=f"https://only-there.internal:{port}",
                proxy=f"socks5://ann:pw@127.0.0.1:{proxy.port}",
                tls=Tls(authorities=authority.pem),
            )
        )
        await transport.send(GET)
        assert await send(transport) == "/api/v1/pods?limit=1 "
    assert proxy.targets == [("only-there.internal", port)]


async def test_a_socks_proxy_reaches_an_address_without_tls() -> None:
    async with serving(answer) as server, socks_proxy() as proxy:
        transport = HttpTransport(Connection(server=server, proxy=f"socks5://127.0.0.1:{proxy.port}"))
        assert await send(transport) == "/api/v1/pods?limit=1 "
    assert proxy.targets == [("127.0.0.1", int(server.rpartition(":")[2]))]


@pytest.mark.parametrize(
    ("password", "refuse", "says"),
    [
        pytest.param("pw", 0, "wants a user name and a password", id="password-wanted"),
        pytest.param("", 5, "the connection was refused", id="refused-beyond"),
        pytest.param("", 2, "its rules forbid it", id="forbidden"),
    ],
)
async def test_a_socks_proxy_that_refuses_says_why(password: str, refuse: int, says: str) -> None:
    async with socks_proxy(password=password, refuse=refuse) as proxy:
        url = f"socks5://127.0.0.1:{proxy.port}"
        with pytest.raises(ConnectionFault, match=says) as caught:
            await send(HttpTransport(Connection(server="https://api.example.com", proxy=url)))
    assert not caught.value.sent


async def test_a_wrong_password_is_refused_by_a_socks_proxy() -> None:
    async with socks_proxy(password="right") as proxy:
        url = f"socks5://ann:wrong@127.0.0.1:{proxy.port}"
        with pytest.raises(ConnectionFault, match="refused the user name or the password"):
            await send(HttpTransport(Connection(server="https://api.example.com", proxy=url)))


async def test_an_untrusted_server_behind_a_socks_proxy_is_named_as_such(authority: Authority, tmp_path: Path) -> None:
    tls = authority.server_context(tmp_path, hosts=("127.0.0.1",))
    async with serving(answer, tls=tls) as server, socks_proxy() as proxy:
        url = f"socks5://127.0.0.1:{proxy.port}"
        with pytest.raises(ConnectionFault, match="certificate that is not trusted"):
            await send(HttpTransport(Connection(server=server, proxy=url)))
