"""Whatever a client sends over a real socket, it gets a 4xx that says why, and the server goes on.

A 5xx is a fault of ours, except where Kubernetes itself answers with one: patches that it cannot carry out have a code
without a reason, and a resourceVersion that is still to come is waited for and then a 504.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.apiserver.hostile import (
    DEFINITIONS,
    GADGET,
    JUNK_PATCHES,
    NAMESPACE,
    OPTION_VALUES,
    OPTIONS,
    PATCH_TYPES,
    VALUES,
    OwnersConnection,
    ask,
    definition,
    good_bodies,
    opened,
    places,
    replaced,
    without,
)
from tests.support.clusters.embedded import running_embedded

BODIES = good_bodies()
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
GADGETS = f"/apis/example.com/v1/namespaces/{NAMESPACE}/gadgets"
TARGETS = {
    CONFIG_MAPS: ("",),
    PODS: ("", "/status", "/ephemeralcontainers", "/resize", "/binding", "/eviction", "/log", "/exec", "/proxy"),
    DEPLOYMENTS: ("", "/status", "/scale"),
    f"/api/v1/namespaces/{NAMESPACE}/services": ("", "/status"),
    GADGETS: ("", "/status", "/scale"),
    "/api/v1/nodes": ("", "/status"),
    f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles": ("",),
    f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts": ("", "/token"),
}
# One kind of each sort, and a few options, in every run; all of them where time does not matter.
SOME_TARGETS = [
    path if path in (CONFIG_MAPS, GADGETS) else pytest.param(path, marks=pytest.mark.slow) for path in TARGETS
]
SOME_OPTIONS = [
    option
    if option in ("continue", "dryRun", "labelSelector", "resourceVersion")
    else pytest.param(option, marks=pytest.mark.slow)
    for option in OPTIONS
]
MiB = 1024 * 1024


@dataclass(frozen=True)
class Victim:
    """The server, one connection to it, and its log."""

    socket: Path
    log: Path
    connection: OwnersConnection

    def answer(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """What it answers, which must be no fault of the server."""
        status, content, _ = ask(self.connection, method, path, body, **headers)
        assert not is_fault(status, content), (method, path[:200], (body or b"")[:300], content[:300])
        return status, content

    def raw(self, sent: bytes, *, then_close: bool = True) -> bytes:
        """Everything that comes back for some bytes, until the server closes the connection or is done answering."""
        with opened(self.socket, patience=10) as client:
            try:
                client.sendall(sent)
                if then_close:
                    client.shutdown(1)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it answered and closed before it had read everything
            received = b""
            try:
                while piece := client.recv(65536):
                    received += piece
                    if not then_close and b"\r\n\r\n" in received:
                        break
            except ConnectionResetError:
                pass
        return received


def is_fault(status: int, content: bytes) -> bool:
    """Whether an answer says that the server failed, rather than the client."""
    if status < 500:
        return False
    told = json.loads(content) if content.startswith(b"{") else {}
    return not (told.get("reason") in (None, "Timeout") and told.get("kind") == "Status")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    data_dir = tmp_path_factory.mktemp("hostile")
    with running_embedded(data_dir):
        connection = OwnersConnection(data_dir / "api.sock")
        victim = Victim(data_dir / "api.sock", data_dir.with_name(f"{data_dir.name}.log"), connection)
        made = [
            ("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
            (f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}}),
            (DEFINITIONS, definition("gadgets", "Gadget")),
            *((path, {**body, "metadata": {"name": "it"}}) for path, body in BODIES.values() if path in TARGETS),
        ]
        for path, body in made:
            deadline = time.monotonic() + 10
            # A new kind is served a moment after its definition was accepted.
            while (status := victim.answer("POST", path, json.dumps(body).encode())[0]) == 404:
                assert time.monotonic() < deadline, path
            assert status in (201, 409), (path, status)
        yield victim
        connection.close()


@pytest.fixture
def victim(running: Victim) -> Iterator[Victim]:
    """It answers after each test as before, and had nothing to write into its log."""
    seen = running.log.stat().st_size
    yield running
    assert running.answer("GET", "/readyz") == (200, b"ok")
    assert running.answer("GET", f"{PODS}/it")[0] == 200
    with running.log.open("rb") as log:
        log.seek(seen)
        assert log.read().decode() == ""


# Bodies


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", BODIES)
def test_any_value_of_any_kind_may_be_anything(victim: Victim, kind: str) -> None:
    path, good = BODIES[kind]
    for at in places(good):
        for value in VALUES.values():
            victim.answer("POST", f"{path}?dryRun=All", replaced(good, at, value), Content_Type="application/json")
        victim.answer("POST", f"{path}?dryRun=All", without(good, at), Content_Type="application/json")


@st.composite
def wrong_bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    """A good body of some kind with one or two places made wrong."""
    path, good = BODIES[draw(st.sampled_from(sorted(BODIES)))]
    at = draw(st.sampled_from(list(places(good))))
    if draw(st.integers(0, 9)) == 0:
        return path, without(good, at)
    body = replaced(good, at, draw(st.sampled_from(list(VALUES.values())) | a_little_json))
    if draw(st.booleans()) and body:
        cut = draw(st.integers(0, len(body)))
        body = body[:cut] + draw(st.binary(max_size=4)) + body[cut + draw(st.integers(0, 4)) :]
    return path, body


a_little_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    wrong=wrong_bodies(),
    method=st.sampled_from(["POST", "PUT", "PATCH"]),
    media=st.sampled_from(["application/json", "application/yaml", *PATCH_TYPES]),
)
def test_a_wrong_body_is_refused_or_taken_but_never_a_fault(
    victim: Victim, wrong: tuple[str, bytes], method: str, media: str
) -> None:
    path, body = wrong
    place = path if method == "POST" else f"{path}/it"
    victim.answer(method, f"{place}?dryRun=All&fieldManager=m", body, Content_Type=media)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk=st.binary(max_size=200), path=st.sampled_from([CONFIG_MAPS, PODS, DEPLOYMENTS, GADGETS]))
def test_junk_as_protobuf_is_refused(victim: Victim, junk: bytes, path: str) -> None:
    media = "application/vnd.kubernetes.protobuf"
    assert victim.answer("POST", f"{path}?dryRun=All", b"k8s\0" + junk, Content_Type=media)[0] in (400, 415, 422)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b"\xff\xfe\0", 400, id="no-text"),
        pytest.param(b"{" * 100_000, 400, id="only-openings"),
        pytest.param(b"[" * 3_000_000, 400, id="three-million-openings"),
        pytest.param(b'{"metadata":{"name":"x"},"data":{"a":"' + b"x" * (2 * MiB) + b'"}}', 422, id="a-large-one"),
        pytest.param(b" " * (3 * MiB), 400, id="just-not-too-long"),
        pytest.param(b" " * (3 * MiB + 1), 413, id="too-long-by-one"),
        pytest.param(b" " * (20 * MiB), 413, id="far-too-long"),
    ],
)
def test_a_body_that_no_kind_has(victim: Victim, body: bytes, status: int) -> None:
    assert victim.answer("POST", CONFIG_MAPS, body, Content_Type="application/json")[0] == status


def test_a_number_of_four_hundred_digits_is_a_wrong_value_wherever_it_stands(victim: Victim) -> None:
    for at in places(GADGET):
        body = replaced(GADGET, at, VALUES["400 digits"])
        assert victim.answer("POST", f"{GADGETS}?dryRun=All", body, Content_Type="application/json")[0] == 400, at


def test_a_definition_with_limits_beyond_numbers_is_refused(victim: Victim) -> None:
    body = json.dumps(definition("widgets", "Widget")).encode().replace(b'"minimum": 0', b'"minimum": ' + b"9" * 400)
    assert victim.answer("POST", f"{DEFINITIONS}?dryRun=All", body, Content_Type="application/json")[0] == 400


def test_warnings_fit_into_a_header(victim: Victim) -> None:
    body = json.dumps({"metadata": {"name": "x"}, **{f"field{n}" + "x" * 300: 1 for n in range(500)}}).encode()
    _, _, headers = ask(victim.connection, "POST", f"{CONFIG_MAPS}?dryRun=All", body, Content_Type="application/json")
    assert 1000 < sum(len(value) for name, value in headers.items() if name == "Warning") < 8192


# Patches


@pytest.mark.parametrize("path", SOME_TARGETS)
def test_a_junk_patch_is_refused_or_changes_what_it_says(victim: Victim, path: str) -> None:
    for subresource in TARGETS[path]:
        for media in PATCH_TYPES:
            options = "dryRun=All&fieldManager=m" + ("&force=true" if "apply" in media else "")
            for junk in JUNK_PATCHES:
                where = f"{path}/it{subresource}?{options}"
                victim.answer("PATCH", where, junk.encode(), Content_Type=media)


@pytest.mark.parametrize("media", ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "x"])
@pytest.mark.parametrize("path", SOME_TARGETS)
def test_a_junk_body_is_refused_by_every_subresource(victim: Victim, path: str, media: str) -> None:
    for subresource in TARGETS[path]:
        for junk in JUNK_PATCHES:
            for method in ("PUT", "POST"):
                victim.answer(method, f"{path}/it{subresource}?dryRun=All", junk.encode(), Content_Type=media)
    for junk in JUNK_PATCHES:
        # A body with options outweighs those of the query, as in Kubernetes: what is there would be deleted.
        victim.answer("DELETE", f"{path}/nope", junk.encode(), Content_Type=media)
        victim.answer("DELETE", f"{path}?labelSelector=no%3Dsuch", junk.encode(), Content_Type=media)


@pytest.mark.parametrize("junk", ["0", "1.5", '"a"', "{}"])
def test_a_json_patch_is_a_list(victim: Victim, junk: str) -> None:
    media = "application/json-patch+json"
    status, content = victim.answer("PATCH", f"{CONFIG_MAPS}/it", junk.encode(), Content_Type=media)
    assert status == 400
    assert "into Go value of type []handlers.jsonPatchOp" in json.loads(content)["message"]


# Queries


@pytest.mark.parametrize("option", SOME_OPTIONS)
def test_an_option_may_have_any_value(victim: Victim, option: str) -> None:
    patch = "application/merge-patch+json"
    for value in OPTION_VALUES:
        for path in (PODS, GADGETS):
            query = f"{option}={value}"
            if option != "watch":
                victim.answer("GET", f"{path}?{query}")
                victim.answer("GET", f"{path}/it?{query}")
            victim.answer("PATCH", f"{path}/it?{query}", b"{}", Content_Type=patch)
            victim.answer("PUT", f"{path}/it?{query}", b"{}", Content_Type="application/json")
            victim.answer("POST", f"{path}?{query}", b"{}", Content_Type="application/json")
            victim.answer("DELETE", f"{path}/nope?{query}")


@pytest.mark.parametrize("option", [option for option in OPTIONS[:10] if option != "resourceVersion"])
def test_a_watch_with_a_wrong_option_is_refused_before_it_begins(victim: Victim, option: str) -> None:
    for value in OPTION_VALUES:
        request = f"GET {PODS}?watch=1&{option}={value} HTTP/1.1\r\nHost: here\r\n\r\n"
        assert victim.raw(request.encode(), then_close=False)[:15] in (
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 400 Ba",
            b"HTTP/1.1 422 Un",
        ), (option, value)


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("limit=" + "9" * 30, id="limit-out-of-range"),
        pytest.param("limit=1_000", id="limit-as-Python-writes-it"),
        pytest.param("limit=%D9%A3", id="limit-in-other-digits"),
        pytest.param("timeoutSeconds=" + "9" * 30, id="timeout-out-of-range"),
        pytest.param("resourceVersion=" + "9" * 30, id="version-out-of-range"),
        pytest.param("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOjV9", id="token-with-a-number"),
        pytest.param("watch=1&labelSelector=a%20in%20(", id="watch-with-half-a-selector"),
        pytest.param("watch=1&fieldSelector=foo.bar%3D1", id="watch-of-no-field"),
    ],
)
def test_a_wrong_option_of_a_list_is_a_bad_request(victim: Victim, query: str) -> None:
    status, content = victim.answer("GET", f"{CONFIG_MAPS}?{query}")
    assert (status, json.loads(content)["reason"]) == (400, "BadRequest")


# HTTP


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/../../etc/passwd",
        "/../../../etc/passwd",
        "/api/v1/namespaces/..%2f..%2fetc",
        "/api/v1/namespaces/a%2fb",
        "/api/v1/namespaces/%00",
        "/api/v1/namespaces/%ff%fe",
        "/api/v1/namespaces/%ed%a0%80",
        "/api/v1/namespaces/%E2%9C%93/pods",
        "/api/v1/namespaces/%0d%0aSet-Cookie:%20x",
        "/api/v1/namespaces/%",
        "/api/v1/namespaces/%zz",
        "//api//v1//nope",
        "//",
        "/api/v1/namespaces/default/pods/../secrets/x",
        "/api/v1/watch/watch/watch",
        "/apis/a/b/c/d/e/f/g/h/i",
        "/api/v1/namespaces/" + "x" * 60_000,
        "/" + "a/" * 30_000,
        "/openapi/v3/..%2f..",
        "/healthz/../..",
        "/readyz/%00",
        "http://[::1/api",
        "*",
    ],
    ids=lambda path: path[:40],
)
def test_no_path_leads_astray(victim: Victim, path: str) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "ZAP"):
        request = f"{method} {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode()
        received = victim.raw(request, then_close=False)
        assert status_of(received) < 500, (method, received[:300])


def test_a_path_that_needs_no_escape_may_have_none(victim: Victim) -> None:
    request = "GET /api/v1/namespaces/ä HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode()
    received = victim.raw(request, then_close=False)
    assert status_of(received) in (400, 404)


HEAD = f"POST {CONFIG_MAPS}?dryRun=All HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n".encode()
GOOD = b'{"metadata":{"name":"x"}}'


@pytest.mark.parametrize(
    ("rest", "statuses"),
    [
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n19\r\n" + GOOD + b"\r\n0\r\n\r\n", {201}, id="chunked"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + GOOD + b"\r\n0\r\n\r\n", {400}, id="no-size"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n-5\r\n\r\n", {400}, id="negative-size"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n", {0, 400}, id="a-chunk-without-end"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n19\r\n{", {0, 400}, id="a-chunk-cut-off"),
        pytest.param(b"Transfer-Encoding: zap\r\n\r\n" + GOOD, {0, 400, 501}, id="an-unknown-encoding"),
        pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", {400}, id="two-lengths"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + GOOD, {400}, id="two-different-lengths"),
        pytest.param(b"Content-Length: -1\r\n\r\n", {400}, id="negative-length"),
        pytest.param(b"Content-Length: x\r\n\r\n", {400}, id="no-length"),
        pytest.param(b"Content-Length: 99999999999999999999999\r\n\r\n", {400, 413}, id="a-length-beyond-numbers"),
        pytest.param(b"Content-Length: 5\r\n\r\n" + GOOD, {400}, id="shorter-than-it-is"),
        pytest.param(b"Content-Length: 500\r\n\r\n" + GOOD, {0, 400}, id="longer-than-it-is"),
        pytest.param(b"Content-Length: 4000000\r\n\r\n", {0, 400, 413}, id="promised-and-never-sent"),
        pytest.param(b"Expect: 100-continue\r\nContent-Length: 25\r\n\r\n" + GOOD, {100, 201}, id="asks-first"),
        pytest.param(b"Expect: zap\r\nContent-Length: 25\r\n\r\n" + GOOD, {201, 417}, id="expects-what-nobody-does"),
        pytest.param(b"X: " + b"y" * 200_000 + b"\r\n\r\n", {400, 431}, id="a-huge-header"),
        pytest.param(b"X: y\r\n" * 50_000 + b"\r\n", {0, 400, 431}, id="fifty-thousand-headers"),
        pytest.param(b"no colon\r\n\r\n", {400}, id="a-header-without-colon"),
        pytest.param(b"X\0Y: z\r\n\r\n", {400}, id="NUL-in-a-header-name"),
        pytest.param(b"X: a\0b\r\n\r\n", {400}, id="NUL-in-a-header"),
        pytest.param(b"Authorization: \xff\xfe\r\nContent-Length: 25\r\n\r\n" + GOOD, {201, 400, 401}, id="no-text"),
        pytest.param(b"Content-Encoding: zap\r\nContent-Length: 25\r\n\r\n" + GOOD, {201, 400, 415}, id="coding"),
        pytest.param(b"Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n" + GOOD, {201}, id="not-gzip-after-all"),
        pytest.param(b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n", {400}, id="an-upgrade-of-nothing"),
    ],
)
def test_http_that_is_broken_is_refused_or_closed(victim: Victim, rest: bytes, statuses: set[int]) -> None:
    received = victim.raw(HEAD + rest, then_close=0 in statuses)
    assert (status_of(received) if received else 0) in statuses, received[:300]


def test_a_bomb_in_gzip_does_not_go_off(victim: Victim) -> None:
    bomb = gzip.compress(b" " * (64 * MiB), 1)
    sent = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
    received = victim.raw(sent, then_close=False)
    assert status_of(received) == 400, received[:300]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0" * 100, id="zeroes"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP-2"),
        pytest.param(b"GET\r\n\r\n", id="no-path"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="another-version"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", id="an-old-version"),
        pytest.param(b"get / http/1.1\r\n\r\n", id="small-letters"),
        pytest.param(b"G" * 100_000, id="a-long-method"),
        pytest.param(b"GET /" + b"x" * 1_000_000, id="a-long-line"),
        pytest.param(b"GET / HTTP/1.1\r\n", id="cut-off"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n" * 50, id="fifty-at-once"),
    ],
)
def test_what_is_no_request_is_refused_or_closed(victim: Victim, sent: bytes) -> None:
    received = victim.raw(sent)
    assert not received or status_of(received) < 500 or status_of(received) == 505, received[:300]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.binary(max_size=300))
def test_any_bytes_are_refused_or_closed(victim: Victim, sent: bytes) -> None:
    received = victim.raw(sent)
    assert not received or status_of(received) < 500 or status_of(received) == 505, received[:300]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Accept", "zap"),
        ("Accept", ";;;,,,=="),
        ("Accept", "application/json;as=Table;v=v9;g=meta.k8s.io"),
        ("Accept", "application/json;q=zap"),
        ("Accept", "application/json;as=" + "x" * 20_000),
        ("Accept-Encoding", ";;,"),
        ("Content-Type", "\t"),
        ("Content-Type", "application/json; charset=zap"),
        ("Authorization", "Basic zap"),
        ("Authorization", "Bearer"),
        ("Authorization", "Bearer " + "x" * 50_000),
        ("Authorization", "Bearer a.b.c"),
        ("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30."),
        ("Impersonate-User", ""),
        ("Impersonate-User", "x" * 20_000),
        ("Impersonate-Group", "nobody"),
        ("Impersonate-Extra-%zz", "a"),
        ("Impersonate-Uid", "a"),
        ("User-Agent", "/" * 20_000),
        ("User-Agent", "\x80\xff"),
    ],
    ids=lambda text: text[:30],
)
def test_a_header_may_say_anything(victim: Victim, name: str, value: str) -> None:
    for path in (CONFIG_MAPS, f"{PODS}/it", "/apis", "/openapi/v3", "/readyz"):
        victim.answer("GET", path, None, **{name: value})
    victim.answer("POST", f"{CONFIG_MAPS}?dryRun=All", GOOD, **{"Content-Type": "application/json", name: value})


def status_of(received: bytes) -> int:
    """The status of the first answer."""
    words = received.split(b" ", 2)
    assert words[0].startswith(b"HTTP/1."), received[:200]
    return int(words[1])
