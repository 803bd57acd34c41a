"""Which hosts and sites a port without credentials answers for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from shoal.cli.processes.allowed_hosts import AllowedHosts, is_loopback, refuse_other_hosts

Port = TestClient[web.Request, web.Application]

LOOPBACK = AllowedHosts.of("127.0.0.1", ["GPU-box.example."])
ANYWHERE = AllowedHosts.of("0.0.0.0", [])


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8099", "LOCALHOST.", "127.0.0.1", "127.0.0.1:1", "[::1]:8099", "gpu-box.example:8099"],
)
def test_this_machine_and_configured_names_are_ours(host: str) -> None:
    assert LOOPBACK.has_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example#localhost",
        "evil.example/localhost",
        "127.0.0.1.evil.example",
        "10.0.0.7",
        "[::2]",
        "[::1",
        "127.1",
        "a@evil.example",
        "",
    ],
)
def test_others_are_not(host: str) -> None:
    assert not LOOPBACK.has_host(host)


def test_who_listens_everywhere_is_found_by_any_address_and_by_no_other_name() -> None:
    assert ANYWHERE.has_host("10.0.0.7:8099")
    assert ANYWHERE.has_host("[fd00::7]:8099")
    assert not ANYWHERE.has_host("evil.example")


def test_an_address_that_is_listened_on_is_ours() -> None:
    assert AllowedHosts.of("10.0.0.7", []).has_host("10.0.0.7:8099")
    assert not AllowedHosts.of("10.0.0.7", []).has_host("10.0.0.8:8099")


@pytest.mark.parametrize(
    ("origin", "is_ours"),
    [
        ("http://localhost:3000", True),
        ("https://gpu-box.example", True),
        ("http://evil.example", False),
        ("null", False),
        ("file://", False),
        ("chrome-extension://localhost", False),
        ("http://[", False),
    ],
)
def test_a_site_of_ours_has_a_host_of_ours(origin: str, is_ours: bool) -> None:
    assert LOOPBACK.has_origin(origin) is is_ours


@pytest.mark.parametrize(
    ("bind", "expected"),
    [("127.0.0.1", True), ("127.0.0.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("", False)],
)
def test_what_only_this_machine_reaches(bind: str, expected: bool) -> None:
    assert is_loopback(bind) is expected


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    async def hello(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Access-Control-Allow-Origin": "*"})
        await response.prepare(request)
        await response.write(b"hello")
        return response

    async def change(request: web.Request) -> web.StreamResponse:
        raise AssertionError("reached")

    app = web.Application()
    app.add_routes([web.get("/", hello), web.post("/", change)])
    refuse_other_hosts(app, LOOPBACK)
    async with TestClient(TestServer(app, host="127.0.0.1")) as client:
        yield client


async def test_a_page_that_rebinds_its_name_is_refused_in_one_sentence(port: Port) -> None:
    answer = await port.get("/", headers={"Host": "evil.example:8099"})
    assert (answer.status, await answer.text()) == (
        403,
        "this port does not answer for the host 'evil.example:8099': use an address of this machine, or allow it with "
        "--allowed-host\n",
    )


async def test_a_page_of_another_site_neither_reads_nor_writes_nor_upgrades(port: Port) -> None:
    foreign = {"Origin": "http://evil.example"}
    socket = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "a" * 24,
    }
    for answer in (
        await port.get("/", headers=foreign),
        await port.get("/", headers=foreign | socket),
        await port.post("/", headers=foreign, data={"form": "field"}),
        await port.options("/", headers=foreign | {"Access-Control-Request-Method": "GET"}),
        await port.post("/", headers={"Origin": "null"}, data={"form": "field"}),
    ):
        assert answer.status == 403
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_only_a_page_of_ours_is_told_that_it_may_read(port: Port) -> None:
    plain = await port.get("/")
    assert (plain.status, "Access-Control-Allow-Origin" in plain.headers) == (200, False)
    own = await port.get("/", headers={"Origin": "http://localhost:3000"})
    assert (own.status, own.headers["Access-Control-Allow-Origin"]) == (200, "http://localhost:3000")
    assert own.headers["Vary"] == "Origin"
