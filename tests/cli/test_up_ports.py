"""The ports of a running Shoal that ask for no credentials: whom they answer, on loopback and beyond it."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from shoal.cluster.keyring import Keyring
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

OPEN = {
    "portal": ["/", "/summary", "/healthz", "/readyz", "/api/v1/visualizer/summary", "/api/v1/scheduler/explain"],
    "visualizer": ["/api/v1/visualizer/jobs", "/api/v1/visualizer/events", "/get-snapshot", "/get-job-order", "/nope"],
    "metrics": ["/metrics"],
    "health": ["/healthz", "/readyz"],
}
PATHS = [(port, path) for port, paths in OPEN.items() for path in paths]
GUARDED = [
    *(f"/api/v1/visualizer/{view}" for view in ("summary", "queues", "jobs", "nodes", "events")),
    "/api/v1/scheduler/explain?kind=pod&name=x",
]
UNKNOWN = (GUARDED[-1], "/nope")
SNAPSHOT = ["/get-snapshot", "/get-job-order", "/nope"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    shoal = Shoal(tmp_path_factory.mktemp("ports") / "data", "--allowed-host=gpu-box.example")
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        yield shoal
    shoal("down")


def asked(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    """The status, the first bytes of the body, and the headers of an answer; a stream is not waited for."""
    split = urlsplit(url)
    tls = ssl._create_unverified_context() if split.scheme == "https" else None
    made = http.client.HTTPSConnection(split.netloc, timeout=30, context=tls) if tls else None
    connection = made or http.client.HTTPConnection(split.netloc, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        body = "" if "event-stream" in (answer.headers.get_content_type() or "") else answer.read(400).decode("latin1")
        return answer.status, body, dict(answer.headers)
    finally:
        connection.close()


@pytest.mark.parametrize(("port", "path"), PATHS)
def test_no_port_answers_for_a_host_that_is_not_ours(running: Shoal, port: str, path: str) -> None:
    status, body, headers = asked(running.endpoints()[port], path, Host="evil.example")
    assert (status, body.startswith("this port does not answer for the host 'evil.example'")) == (403, True)
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(("port", "path"), PATHS)
def test_no_port_answers_pages_of_other_sites(running: Shoal, port: str, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        status, body, headers = asked(running.endpoints()[port], path, method, Origin="http://evil.example")
        assert (status, body.startswith("this port does not answer pages of")) == (403, True), method
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "[::1]", "gpu-box.example:8099"])
@pytest.mark.parametrize("port", OPEN)
def test_every_port_answers_for_this_machine_and_for_configured_names(running: Shoal, port: str, host: str) -> None:
    status, _, headers = asked(running.endpoints()[port], OPEN[port][0], Host=host)
    assert (status, "Access-Control-Allow-Origin" in headers) == (200, False)


def test_a_page_finds_nothing_on_the_api_port_that_it_may_read(running: Shoal) -> None:
    """Its certificate is for none of a site's names; what is answered to nobody in particular is no secret."""
    api = running.endpoints()["api"]
    socket = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "a" * 24,
    }
    origin = {"Origin": "https://evil.example", "Host": "evil.example"}
    for path in ("/version", "/healthz", "/api/v1/pods", "/apis", "/metrics", "/openapi/v3", "/api/v1/namespaces"):
        status, _, headers = asked(api, path, **origin)
        assert status == (200 if path in ("/version", "/healthz") else 403), path
        assert not [name for name in headers if name.lower().startswith("access-control")]
    execute = "/api/v1/namespaces/default/pods/x/exec?command=id&stdout=true"
    for path in (execute, "/api/v1/pods?watch=true"):
        assert asked(api, path, **origin, **socket)[0] == 403
    assert asked(api, "/api/v1/namespaces", "POST", **origin)[0] == 403


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """One that other machines could reach."""
    shoal = Shoal(tmp_path_factory.mktemp("beyond") / "data", "--bind=0.0.0.0")
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        yield shoal
    shoal("down")


def both(shoal: Shoal) -> list[tuple[str, str]]:
    """What shows the scheduler's view, on both ports that show some of it."""
    endpoints = shoal.endpoints()
    return [(endpoints["visualizer"], path) for path in (*GUARDED, *SNAPSHOT)] + [
        (endpoints["portal"], path) for path in GUARDED
    ]


def test_beyond_loopback_the_visualizer_and_the_snapshot_need_a_token(beyond: Shoal) -> None:
    for port, path in both(beyond):
        status, body, headers = asked(port, path)
        assert (status, "a bearer token is needed" in body) == (401, True), path
        assert headers["WWW-Authenticate"].startswith("Bearer")
        assert asked(port, path, Authorization="Bearer nonsense")[0] == 401


def test_beyond_loopback_a_token_of_the_cluster_opens_what_its_user_may_get(beyond: Shoal) -> None:
    admin = (beyond.data_dir / "pki" / "admin.token").read_text()
    for port, path in both(beyond):
        assert asked(port, path, Authorization=f"Bearer {admin}")[0] == (404 if path in UNKNOWN else 200), path
    ann = Keyring(beyond.data_dir / "pki", now=datetime.now(UTC)).user_tokens.token("ann", ())
    view, snapshot = "/api/v1/visualizer/summary", "/get-snapshot"
    port = beyond.endpoints()["visualizer"]
    status, body, _ = asked(port, view, Authorization=f"Bearer {ann}")
    assert (status, 'user "ann" may not get' in body) == (403, True)
    role = {
        "metadata": {"name": "visualizer-reader"},
        "rules": [{"nonResourceURLs": ["/shoal/api/v1/visualizer/*"], "verbs": ["get"]}],
    }
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "visualizer-reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "visualizer-reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "ann"}],
    }
    beyond.admin.request("POST", f"/apis/{group}/v1/clusterroles", role)
    beyond.admin.request("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    wait_until(lambda: asked(port, view, Authorization=f"Bearer {ann}")[0] == 200, "the right to count")
    assert asked(port, snapshot, Authorization=f"Bearer {ann}")[0] == 403


def test_beyond_loopback_the_owner_of_the_data_dir_asks_as_before(beyond: Shoal) -> None:
    assert beyond.status()["ready"]
    explained = beyond("explain", "pod/x")
    assert "token" not in explained.stderr
    assert explained.returncode == 1, "there is no such pod"


def test_beyond_loopback_names_are_refused_and_addresses_answered(beyond: Shoal) -> None:
    portal = beyond.endpoints()["portal"]
    assert asked(portal, "/", Host="evil.example")[0] == 403
    assert asked(portal, "/", Host="10.0.0.7:8099")[0] == 200
