"""Pods in the machine's own network: what they reach there, and how they find each other and the API server."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.local_node.conftest import a_local_node
from tests.e2e.local_node.scenes import (
    MAY_SEE_PODS,
    Scene,
    a_container,
    a_pod_of,
    a_pod_spec,
    a_scene,
    an_idle_pod,
    program,
)

pytestmark = [pytest.mark.kube, pytest.mark.slow]


@pytest.fixture(scope="module", params=["root", "user"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with a_local_node(request.param, "--pod-network=host") as node, a_scene(node, "host-network") as scene:
        scene.apply(an_idle_pod("client"))
        scene.until("condition=Ready", "pod/client")
        yield scene


def test_a_pod_reaches_what_listens_on_the_loopback_of_the_machine(scene: Scene) -> None:
    with a_server_on_the_loopback("here") as port:
        place = f"127.0.0.1:{port}"
        assert scene.program_in("client", "ask", place) == {place: "here"}


def test_the_api_server_connects_to_no_port_of_the_machine_for_a_pod(scene: Scene) -> None:
    with a_server_on_the_loopback("here") as port:
        path = f"/api/v1/namespaces/{scene.namespace}/pods/client:{port}/proxy/"
        told = scene.try_kubectl("get", "--raw", path).stderr
    assert "uses the network of the machine, to which the API server does not connect" in told


def test_pods_and_services_are_found_by_their_names(scene: Scene) -> None:
    port = a_free_port()
    labels = {"app": "web"}
    pod = a_pod_of("web-pod", a_pod_spec(a_container(program("answer", str(port)))), labels)
    ports = [{"port": port, "targetPort": port}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": labels, "ports": ports},
    }
    scene.apply(pod, service)
    scene.until("condition=Ready", "pod/web-pod")

    names = ("web", f"web.{scene.namespace}", f"web.{scene.namespace}.svc.cluster.local", "web-pod")
    places = {f"{name}:{port}": "web-pod" for name in names}
    scene.until_true(lambda: scene.program_in("client", "ask", *places) == places, "all names to lead to the pod")


def test_the_api_server_answers_where_every_pod_looks_for_it(scene: Scene) -> None:
    api = {"name": "API", "value": "https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"}
    spec = a_pod_spec(
        a_container(program("await_pod", "client"), env=[api]), serviceAccountName="waiter", restartPolicy="Never"
    )
    scene.apply(*MAY_SEE_PODS)
    scene.apply(a_pod_of("waiter", spec))
    scene.until("jsonpath={.status.phase}=Succeeded", "pod/waiter")


@contextmanager
def a_server_on_the_loopback(answer: str) -> Iterator[int]:
    """A server of this machine that nobody else reaches; gives its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def a_free_port() -> int:
    """One that was free a moment ago."""
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
        return port
