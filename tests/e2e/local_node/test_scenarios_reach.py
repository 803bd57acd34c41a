"""The API server reaches pods of this machine's node: webhooks, and the proxies of pods and Services."""

from __future__ import annotations

import json

import pytest

from tests.e2e.local_node.reach import (
    WEBHOOK,
    a_conversing_pod,
    a_guarded_namespace,
    a_session,
    make_config_map,
    proxied,
)
from tests.e2e.local_node.scenes import PORT, Scene, an_idle_pod

pytestmark = [pytest.mark.kube, pytest.mark.slow]


def test_a_webhook_that_runs_as_a_pod_is_called(scene: Scene) -> None:
    with a_guarded_namespace(scene):
        scene.until_true(lambda: make_config_map(scene, "refused", "no")[0] == 1, "the webhook to be heard")
        assert "refused by a pod" in make_config_map(scene, "refused", "no")[1]
        assert make_config_map(scene, "allowed", "yes") == (0, "")
        assert f"as {WEBHOOK}.{scene.namespace}.svc:443" in scene.kubectl("logs", WEBHOOK)


def test_a_webhook_with_a_certificate_for_another_name_is_not_believed(scene: Scene) -> None:
    with a_guarded_namespace(scene, names=("someone.else.svc",)):
        scene.until_true(
            lambda: "x509: certificate is" in make_config_map(scene, "any", "yes")[1],
            "the certificate to be refused",
        )


def test_a_webhook_whose_pod_is_gone_is_reported_at_once(scene: Scene) -> None:
    with a_guarded_namespace(scene):
        scene.kubectl("delete", "pod", WEBHOOK, "--force", "--grace-period=0")
        scene.until_true(
            lambda: f'no endpoints available for service "{WEBHOOK}"' in make_config_map(scene, "any", "yes")[1],
            "the missing endpoint to be reported",
        )


@pytest.mark.parametrize("what", ["pods/web", "pods/web:8080", "services/web:http", "services/web:80"])
async def test_a_proxy_passes_requests_on_without_credentials(scene: Scene, what: str) -> None:
    path = proxied(scene, what)

    async with a_session(scene) as session:
        async with session.get(f"{path}/hello?a=b", headers={"X-Mine": "kept"}) as answer:
            seen = json.loads(await answer.text())
        async with session.post(f"{path}/post", data=b"some words") as answer:
            posted = json.loads(await answer.text())

    assert (seen["method"], seen["path"], seen["headers"]["x-mine"]) == ("GET", "/hello?a=b", "kept")
    assert "authorization" not in seen["headers"]
    assert (posted["method"], posted["body"]) == ("POST", "some words")
    assert seen["from"] == "10.88.0.1"


async def test_a_proxy_passes_answers_on_as_they_come(scene: Scene) -> None:
    scene.apply(a_conversing_pod())
    scene.until("condition=Ready", "pod/web")
    path = f"/api/v1/namespaces/{scene.namespace}/pods/web:{PORT}/proxy"

    async with a_session(scene) as session, session.get(f"{path}/stream") as answer:
        assert await answer.content.readline() == b"first\n"
        async with session.get(f"{path}/release") as released:
            assert released.status == 200
        assert await answer.content.readline() == b"second\n"
        assert await answer.content.read() == b""


@pytest.mark.parametrize("what", ["pods/web:8080", "services/web:80"])
async def test_a_proxy_passes_websockets_on(scene: Scene, what: str) -> None:
    path = proxied(scene, what)

    async with a_session(scene) as session, session.ws_connect(f"{path}/socket") as websocket:
        for text in ("hello", "again"):
            await websocket.send_str(text)
            assert await websocket.receive_str(timeout=30) == text


def test_a_pod_in_the_network_of_the_node_is_reached(scene: Scene) -> None:
    scene.apply(a_conversing_pod(hostNetwork=True))
    scene.until("condition=Ready", "pod/web")

    seen = json.loads(scene.kubectl("get", "--raw", f"/api/v1/namespaces/{scene.namespace}/pods/web:{PORT}/proxy/here"))

    assert seen["path"] == "/here"


def test_a_port_on_which_nothing_listens_is_reported(scene: Scene) -> None:
    scene.apply(an_idle_pod("idle"))
    scene.until("condition=Ready", "pod/idle")

    done = scene.try_kubectl("get", "--raw", f"/api/v1/namespaces/{scene.namespace}/pods/idle:81/proxy/")

    assert done.returncode == 1
    assert "connection refused" in done.stderr
