"""What reaches a server of a request, and what comes back."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.kube.connection import Connection, Impersonation
from shoal.kube.credentials import Signature, anonymous, basic, bearer_token, token_file
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.http.transport import request_url
from shoal.kube.transport import Request
from tests.support.network.http_servers import Handler, serving


@asynccontextmanager
async def talking_to(handler: Handler, **options: Any) -> AsyncIterator[HttpTransport]:
    socket = options.pop("socket", None)
    limit = options.pop("limit", 100)
    async with serving(handler, socket=socket) as server:
        transport = HttpTransport(Connection(server=server, **options), limit=limit)
        try:
            yield transport
        finally:
            await transport.close()


class Recorder:
    """Answers 200 and remembers what was asked."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(await request.read())
        return web.Response(body=b'{"kind":"Answer"}', headers={"X-Seen": "yes"})


async def test_a_request_arrives_as_it_was_described() -> None:
    seen = Recorder()
    async with talking_to(seen, credentials=bearer_token("secret")) as transport:
        answer = await transport.send(
            Request(
                method="PATCH",
                path="/apis/example.org/v1/namespaces/a/things/b",
                query={"fieldManager": "me"},
                body=b'{"x":1}',
                content_type="application/merge-patch+json",
            )
        )
    (request,) = seen.requests
    assert (request.method, request.path, dict(request.query)) == (
        "PATCH",
        "/apis/example.org/v1/namespaces/a/things/b",
        {"fieldManager": "me"},
    )
    assert seen.bodies == [b'{"x":1}']
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["User-Agent"] == f"shoal/{shoal.__version__}"
    assert (answer.status, answer.body, answer.headers["x-seen"]) == (200, b'{"kind":"Answer"}', "yes")


async def test_a_request_without_a_body_claims_no_content_type() -> None:
    seen = Recorder()
    async with talking_to(seen) as transport:
        await transport.send(Request(method="GET", path="/api"))
    assert "Content-Type" not in seen.requests[0].headers


async def test_requests_that_follow_each_other_do_not_share_headers() -> None:
    seen = Recorder()
    async with talking_to(seen) as transport:
        await transport.send(Request(method="POST", path="/a", body=b"{}", content_type="application/json"))
        await transport.send(Request(method="PATCH", path="/a", body=b"{}", content_type="application/json-patch+json"))
        await transport.send(Request(method="GET", path="/a", accept="text/plain"))
    assert [request.headers.get("Content-Type") for request in seen.requests] == [
        "application/json",
        "application/json-patch+json",
        None,
    ]
    assert seen.requests[2].headers["Accept"] == "text/plain"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("app=web,tier in (a, b),!gone", id="label-selector"),
        pytest.param("a+b&c=d%20e#f?", id="reserved-characters"),
        pytest.param("größe-模型", id="beyond-ascii"),
        pytest.param("", id="empty"),
        pytest.param("line\r\nbreak", id="line-break"),
    ],
)
async def test_query_values_arrive_unchanged(value: str) -> None:
    seen = Recorder()
    async with talking_to(seen) as transport:
        await transport.send(Request(method="GET", path="/api", query={"labelSelector": value}))
    assert seen.requests[0].query["labelSelector"] == value


async def test_a_query_may_repeat_a_name() -> None:
    seen = Recorder()
    async with talking_to(seen) as transport:
        await transport.send(Request(method="GET", path="/api", query=(("command", "sh"), ("command", "-c"))))
    assert seen.requests[0].query.getall("command") == ["sh", "-c"]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        pytest.param("/api/v1/nodes/system:node:a", "/api/v1/nodes/system:node:a", id="colons-stay"),
        pytest.param("/api/v1/nodes/a%2Fb", "/api/v1/nodes/a%2Fb", id="what-is-encoded-stays"),
        pytest.param("/api/v1/nodes/a b?c#d", "/api/v1/nodes/a%20b%3Fc%23d", id="what-is-not-is-encoded"),
        pytest.param("/api/v1/ü", "/api/v1/%C3%BC", id="beyond-ascii"),
        pytest.param("/api\r\nX-Evil: 1", "/api%0D%0AX-Evil:%201", id="line-breaks-make-no-headers"),
    ],
)
async def test_a_path_is_sent_encoded_once(path: str, sent: str) -> None:
    seen = Recorder()
    async with talking_to(seen) as transport:
        await transport.send(Request(method="GET", path=path))
    assert seen.requests[0].rel_url.raw_path == sent


@given(
    query=st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))),
    path=st.text(st.characters(exclude_characters="%", codec="utf-8")),
)
def test_any_path_and_query_can_be_read_back_from_the_url(query: dict[str, str], path: str) -> None:
    url = request_url("https://host:6443/prefix", Request(method="GET", path="/" + path, query=query))
    assert str(url).isascii()
    assert dict(parse_qsl(url.raw_query_string, keep_blank_values=True)) == query
    assert unquote(url.raw_path) == f"/prefix/{path}"


async def test_a_server_may_have_a_path_of_its_own_before_the_apis() -> None:
    seen = Recorder()
    async with serving(seen) as server:
        transport = HttpTransport(Connection(server=f"{server}/k8s/clusters/c-1/"))
        await transport.send(Request(method="GET", path="/api/v1/pods"))
        await transport.close()
    assert seen.requests[0].path == "/k8s/clusters/c-1/api/v1/pods"


async def test_basic_credentials_are_sent_as_such() -> None:
    seen = Recorder()
    async with talking_to(seen, credentials=basic("ann", "s:cret")) as transport:
        await transport.send(Request(method="GET", path="/api"))
    assert seen.requests[0].headers["Authorization"] == "Basic YW5uOnM6Y3JldA=="


async def test_impersonation_is_said_in_headers() -> None:
    seen = Recorder()
    whom = Impersonation(user="bob", uid="7", groups=("dev", "ops"), extra={"example.org/Scope %": ("a", "b")})
    async with talking_to(seen, impersonation=whom) as transport:
        await transport.send(Request(method="GET", path="/api"))
    headers = seen.requests[0].headers
    assert headers["Impersonate-User"] == "bob"
    assert headers["Impersonate-Uid"] == "7"
    assert headers.getall("Impersonate-Group") == ["dev", "ops"]
    assert headers.getall("Impersonate-Extra-example.org%2FScope%20%25") == ["a", "b"]


async def test_compressed_answers_are_asked_for_and_read() -> None:
    async def compressed(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=gzip.compress(b"x" * 200_000), headers={"Content-Encoding": "gzip"})

    async with talking_to(compressed) as transport:
        answer = await transport.send(Request(method="GET", path="/api"))
    assert answer.body == b"x" * 200_000


@pytest.mark.parametrize("is_local", [pytest.param(False, id="switched-off"), pytest.param(True, id="unix-socket")])
async def test_compression_is_not_asked_for_where_it_only_costs(is_local: bool, tmp_path: Path) -> None:
    seen = Recorder()
    options: dict[str, Any] = {"socket": tmp_path / "s"} if is_local else {"compression": False}
    async with talking_to(seen, **options) as transport:
        await transport.send(Request(method="GET", path="/api"))
    assert seen.requests[0].headers["Accept-Encoding"] == "identity"


async def test_a_body_of_megabytes_arrives_whole() -> None:
    async def measure(request: web.Request) -> web.Response:
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
        return web.Response(text=f"{request.headers['Content-Length']} {size}")

    async with talking_to(measure) as transport:
        answer = await transport.send(Request(method="POST", path="/api", body=b"x" * 3_000_000))
    assert answer.body == b"3000000 3000000"


async def test_a_unix_socket_is_a_server_like_any_other(tmp_path: Path) -> None:
    seen = Recorder()
    async with talking_to(seen, socket=tmp_path / "api.sock", credentials=bearer_token("t")) as transport:
        answer = await transport.send(Request(method="GET", path="/api/v1/pods", query={"limit": "1"}))
    assert answer.status == 200
    assert seen.requests[0].path_qs == "/api/v1/pods?limit=1"
    assert seen.requests[0].headers["Authorization"] == "Bearer t"


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async def away(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "https://evil.example/login"})

    async with talking_to(away) as transport:
        answer = await transport.send(Request(method="GET", path="/api"))
    assert answer.status == 302


async def test_cookies_are_not_kept() -> None:
    seen: list[str | None] = []

    async def sets_one(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "session=1"})

    async with talking_to(sets_one) as transport:
        await transport.send(Request(method="GET", path="/api"))
        await transport.send(Request(method="GET", path="/api"))
    assert seen == [None, None]


class Doorman:
    """Lets one token in."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.refused = 0

    async def __call__(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return web.Response(text="welcome")
        self.refused += 1
        return web.Response(status=401, text="who are you?")


async def test_a_rotated_token_is_picked_up_after_a_refusal_and_nobody_notices(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    door = Doorman("old")
    async with talking_to(door, credentials=token_file(path)) as transport:
        assert (await transport.send(Request(method="GET", path="/api"))).status == 200
        path.write_text("new\n")
        door.token = "new"
        assert (await transport.send(Request(method="GET", path="/api"))).body == b"welcome"
    assert door.refused == 1


@pytest.mark.parametrize(
    "credentials", [pytest.param(bearer_token("x"), id="fixed"), pytest.param(anonymous(), id="none")]
)
async def test_a_refusal_that_nothing_can_be_done_about_is_the_answer(credentials: Any) -> None:
    door = Doorman("right")
    async with talking_to(door, credentials=credentials) as transport:
        answer = await transport.send(Request(method="GET", path="/api"))
    assert (answer.status, answer.body, door.refused) == (401, b"who are you?", 1)


async def test_fresh_credentials_are_tried_once_and_no_more() -> None:
    class AlwaysFresh:
        def __init__(self) -> None:
            self.count = 0

        async def sign(self) -> Signature:
            return Signature({"Authorization": f"Bearer {self.count}"})

        async def refresh(self, refused: Signature) -> bool:
            self.count += 1
            return True

    door = Doorman("unknown")
    async with talking_to(door, credentials=AlwaysFresh()) as transport:
        answer = await transport.send(Request(method="GET", path="/api"))
    assert (answer.status, door.refused) == (401, 2)


async def test_a_closed_transport_sends_nothing() -> None:
    seen = Recorder()
    async with talking_to(seen) as transport:
        await transport.send(Request(method="GET", path="/api"))
        await transport.close()
        with pytest.raises(ConnectionFault, match="is closed") as caught:
            await transport.send(Request(method="GET", path="/api"))
        await transport.close()
    assert not caught.value.sent
    assert len(seen.requests) == 1
