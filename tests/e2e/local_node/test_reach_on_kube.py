"""A real kube-apiserver reaches pods of this machine's node: webhooks, and the proxies of pods and Services."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.e2e.local_node.conftest import LocalNode, a_local_node
from tests.e2e.local_node.reach import (
    WEBHOOK,
    a_conversing_pod,
    a_guarded_namespace,
    a_session,
    make_config_map,
    proxied,
)
from tests.e2e.local_node.scenes import PORT, Scene, a_pod_of, a_pod_spec
from tests.support.clusters.both_engines import kube_options
from tests.support.programs.ordinary_user import is_root

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def local_node(binaries: Binaries) -> Iterator[LocalNode]:
    with a_local_node("root" if is_root() else "user", "--sim=1x1", *kube_options(binaries)) as node:
        node.kubectl("cordon", "sim-0-0")  # it would take pods that are to run
        yield node


def test_a_webhook_that_runs_as_a_pod_is_called(scene: Scene) -> None:
    with a_guarded_namespace(scene):
        scene.until_true(
            lambda: "refused by a pod" in make_config_map(scene, "refused", "no")[1], "the webhook to be heard"
        )
        assert make_config_map(scene, "allowed", "yes") == (0, "")
        assert f"as {WEBHOOK}.{scene.namespace}.svc:443" in scene.kubectl("logs", WEBHOOK)


@pytest.mark.parametrize("what", ["pods/web:8080", "services/web:http"])
async def test_a_proxy_passes_requests_and_websockets_on(scene: Scene, what: str) -> None:
    path = proxied(scene, what)

    async with a_session(scene) as session:
        async with session.post(f"{path}/post?a=b", data=b"some words") as answer:
            posted = json.loads(await answer.text())
        async with session.ws_connect(f"{path}/socket") as websocket:
            await websocket.send_str("hello")
            assert await websocket.receive_str(timeout=30) == "hello"

    assert (posted["method"], posted["path"], posted["body"]) == ("POST", "/post?a=b", "some words")
    assert "authorization" not in posted["headers"]
    assert posted["from"] == "10.88.0.1"


def test_a_port_on_which_nothing_listens_is_reported(scene: Scene) -> None:
    scene.apply(a_conversing_pod())
    scene.until("condition=Ready", "pod/web")

    done = scene.try_kubectl("get", "--raw", f"/api/v1/namespaces/{scene.namespace}/pods/web:81/proxy/")

    assert "connection refused" in done.stderr


def test_logs_of_simulated_and_real_pods_still_come(scene: Scene) -> None:
    pretended = a_pod_of("pretended", a_pod_spec({"name": "main", "image": "none"}, nodeName="sim-0-0"))
    scene.apply(pretended, a_conversing_pod())
    scene.until("condition=Ready", "pod/pretended", "pod/web")

    assert "nothing runs here" in scene.kubectl("logs", "pretended")
    refused = scene.try_kubectl("get", "--raw", f"/api/v1/namespaces/{scene.namespace}/pods/pretended:80/proxy/")
    assert "is the address of a simulated pod: nothing listens on its ports" in refused.stderr
    assert scene.run_in("web", "echo", f"{PORT}") == f"{PORT}\n"
