"""TLS as clusters use it: their own authorities, client certificates, names that differ from the address."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import stat
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web

from shoal.kube.connection import Connection
from shoal.kube.credentials import Both, Signature, bearer_token, certificate_files, client_certificate
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.tls import ClientCertificate, Tls, client_context
from shoal.kube.transport import Request
from tests.support.network.http_servers import serving
from tests.support.network.tls import Authority, Issued

LOOPBACK = ("127.0.0.1",)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def certificate(issued: Issued) -> ClientCertificate:
    return ClientCertificate(issued.chain, issued.key)


async def who(request: web.Request) -> web.Response:
    """Answers with the common name of the client's certificate."""
    assert request.transport is not None
    shown = request.transport.get_extra_info("peercert") or {}
    names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
    return web.Response(text=f"{','.join(names)} {request.headers.get('Authorization', '')}".strip())


@asynccontextmanager
async def transport_to(server: str, **options: Any) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(Connection(server=server, **options))
    try:
        yield transport
    finally:
        await transport.close()


GET = Request(method="GET", path="/api", timeout=10)


def _uvloop() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def test_a_server_of_the_authority_is_trusted(authority: Authority, tmp_path: Path) -> None:
    async with (
        serving(who, tls=authority.server_context(tmp_path, hosts=LOOPBACK)) as server,
        transport_to(server, tls=Tls(authorities=authority.pem)) as transport,
    ):
        assert (await transport.send(GET)).status == 200


@pytest.mark.parametrize(
    ("hosts", "trusts", "says"),
    [
        pytest.param(
            LOOPBACK, "another", "not trusted: .*self.signed|not trusted: unable to get", id="other-authority"
        ),
        pytest.param(LOOPBACK, "system", "not trusted: ", id="only-the-systems-authorities"),
        pytest.param(("10.9.8.7",), "its own", "not trusted: IP address mismatch", id="other-address"),
    ],
)
async def test_a_server_that_does_not_prove_itself_is_not_talked_to(
    authority: Authority, tmp_path: Path, hosts: tuple[str, ...], trusts: str, says: str
) -> None:
    asked = []

    async def never(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response()

    pem = {"another": Authority("another").pem, "system": None, "its own": authority.pem}[trusts]
    async with (
        serving(never, tls=authority.server_context(tmp_path, hosts=hosts)) as server,
        transport_to(server, tls=Tls(authorities=pem), credentials=bearer_token("t")) as transport,
    ):
        with pytest.raises(ConnectionFault, match=f"{server} shows a certificate that is {says}") as caught:
            await transport.send(GET)
    assert caught.value.lasting
    assert not caught.value.sent
    assert asked == []


async def test_an_authority_that_stands_under_another_is_trusted_by_itself(
    authority: Authority, tmp_path: Path
) -> None:
    """As in Go: whoever is in the bundle is trusted, with or without those above."""
    below = Authority("below", under=authority)
    async with (
        serving(who, tls=below.server_context(tmp_path, hosts=LOOPBACK)) as server,
        transport_to(server, tls=Tls(authorities=below.pem)) as transport,
    ):
        assert (await transport.send(GET)).status == 200


async def test_insecure_trusts_anyone(authority: Authority, tmp_path: Path) -> None:
    async with (
        serving(who, tls=authority.server_context(tmp_path, hosts=("elsewhere",))) as server,
        transport_to(server, tls=Tls(insecure=True)) as transport,
    ):
        assert (await transport.send(GET)).status == 200


async def test_the_servers_name_may_differ_from_its_address(authority: Authority, tmp_path: Path) -> None:
    context = authority.server_context(tmp_path, hosts=("kubernetes.default",))
    named: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    async with serving(who, tls=context) as server:
        tls = Tls(authorities=authority.pem, server_name="kubernetes.default")
        async with transport_to(server, tls=tls) as transport:
            assert (await transport.send(GET)).status == 200
    assert named == ["kubernetes.default"]


async def test_a_client_signs_in_with_its_certificate(authority: Authority, tmp_path: Path) -> None:
    admin = client_certificate(certificate(authority.issue("admin")))
    context = authority.server_context(tmp_path, hosts=LOOPBACK, clients=True)
    async with (
        serving(who, tls=context) as server,
        transport_to(server, tls=Tls(authorities=authority.pem), credentials=admin) as transport,
    ):
        assert (await transport.send(GET)).body == b"admin"


async def test_a_token_and_a_certificate_go_together(authority: Authority, tmp_path: Path) -> None:
    both = Both(bearer_token("t"), client_certificate(certificate(authority.issue("admin"))))
    context = authority.server_context(tmp_path, hosts=LOOPBACK, clients=True)
    async with (
        serving(who, tls=context) as server,
        transport_to(server, tls=Tls(authorities=authority.pem), credentials=both) as transport,
    ):
        assert (await transport.send(GET)).body == b"admin Bearer t"


async def test_a_server_that_insists_on_a_certificate_refuses_one_without(authority: Authority, tmp_path: Path) -> None:
    context = authority.server_context(tmp_path, hosts=LOOPBACK, clients=True)
    async with (
        serving(who, tls=context) as server,
        transport_to(server, tls=Tls(authorities=authority.pem)) as transport,
    ):
        with pytest.raises(ConnectionFault, match=server):
            await transport.send(GET)


class Rotating:
    """Credentials whose certificate a test replaces."""

    def __init__(self, issued: Issued) -> None:
        self.signature = Signature(certificate=certificate(issued))

    async def sign(self) -> Signature:
        return self.signature

    async def refresh(self, refused: Signature) -> bool:
        return self.signature is not refused


async def test_after_a_rotation_nothing_goes_out_under_the_old_certificate(
    authority: Authority, tmp_path: Path
) -> None:
    credentials = Rotating(authority.issue("first"))
    context = authority.server_context(tmp_path, hosts=LOOPBACK, clients=True)
    async with (
        serving(who, tls=context) as server,
        transport_to(server, tls=Tls(authorities=authority.pem), credentials=credentials) as transport,
    ):
        before = [(await transport.send(GET)).body for _ in range(3)]
        credentials.signature = Signature(certificate=certificate(authority.issue("second")))
        after = [(await transport.send(GET)).body for _ in range(3)]
        async with transport.stream(GET) as stream:
            streamed = await stream.read()
    assert before == [b"first"] * 3
    assert [*after, streamed] == [b"second"] * 4


async def test_certificate_files_that_are_replaced_are_used_after_a_refusal(
    authority: Authority, tmp_path: Path
) -> None:
    chain, key = authority.issue("old").write(tmp_path, "client")
    allowed = "old"

    async def door(request: web.Request) -> web.Response:
        answer = await who(request)
        return answer if answer.text == allowed else web.Response(status=401)

    context = authority.server_context(tmp_path, hosts=LOOPBACK, clients=True)
    async with serving(door, tls=context) as server:
        credentials = certificate_files(chain, key)
        async with transport_to(server, tls=Tls(authorities=authority.pem), credentials=credentials) as transport:
            assert (await transport.send(GET)).body == b"old"
            authority.issue("new").write(tmp_path, "client")
            allowed = "new"
            assert (await transport.send(GET)).body == b"new"


def test_a_private_key_is_on_disk_for_a_moment_and_for_its_owner_alone(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, path: str, *args: Any, **options: Any) -> None:
        modes.append(stat.S_IMODE(Path(path).stat().st_mode))
        load(context, path, *args, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    client_context(Tls(authorities=authority.pem), certificate(authority.issue("admin")))
    assert modes == [0o600]
    assert list(tmp_path.iterdir()) == []


async def test_a_server_certificate_that_has_ended_is_named_as_the_cause(authority: Authority, tmp_path: Path) -> None:
    chain, key = authority.issue("server", hosts=LOOPBACK, lifetime=timedelta(minutes=-5)).write(tmp_path, "ended")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    async with (
        serving(who, tls=context) as server,
        transport_to(server, tls=Tls(authorities=authority.pem)) as transport,
    ):
        with pytest.raises(ConnectionFault, match="certificate has expired"):
            await transport.send(GET)


@pytest.mark.parametrize("runner", [pytest.param(asyncio.Runner, id="asyncio"), pytest.param(_uvloop, id="uvloop")])
def test_a_closed_transport_leaves_nothing_open_though_the_server_never_closes_tls(
    runner: Callable[[], asyncio.Runner], authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_open: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: left_open.append(told.exc_value))
    context = authority.server_context(tmp_path, hosts=LOOPBACK)
    with socket.create_server(("127.0.0.1", 0)) as listening, runner() as loop:
        accepting = threading.Thread(target=_begins_an_answer, args=(listening, context, done := threading.Event()))
        accepting.start()

        async def give_up_a_watch() -> None:
            server = f"https://127.0.0.1:{listening.getsockname()[1]}"
            async with (
                transport_to(server, tls=Tls(authorities=authority.pem)) as transport,
                transport.stream(GET) as stream,
            ):
                assert await anext(stream.chunks()) == b"one"

        loop.run(give_up_a_watch())
    gc.collect()
    done.set()
    accepting.join()
    assert left_open == []


def _begins_an_answer(listening: socket.socket, context: ssl.SSLContext, done: threading.Event) -> None:
    opened, _ = listening.accept()
    with context.wrap_socket(opened, server_side=True) as speaking:
        speaking.recv(10_000)
        speaking.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        done.wait(30)
