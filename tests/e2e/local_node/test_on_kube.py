"""This machine's node behind a real kube-apiserver and kube-controller-manager: ``shoal up --engine kube``.

What kubectl shows of logs and streams is what it shows with the embedded server, in the rows of ``table/``. They are
played by WebSocket, which kube-apiserver translates for agents, and by SPDY, which it passes on as it is.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from shoal.api.meta import parse_time
from shoal.cluster.keyring import Keyring
from shoal.cluster.kubernetes import Binaries
from shoal.kube.certificates import KeyPair, load_into
from tests.e2e.local_node.conftest import LocalNode, a_local_node
from tests.e2e.local_node.rows import Row, play, rows_of
from tests.e2e.local_node.scenes import PORT, Scene, a_pod_of, a_pod_spec, a_service, an_answering_pod, an_idle_pod
from tests.support.clusters.both_engines import kube_options
from tests.support.programs.kubectl import Kubectl
from tests.support.programs.ordinary_user import is_root
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BY_SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
PLAYED: list[tuple[Row, dict[str, str]]] = [
    *((row, {}) for row in rows_of("logs", "streams", "volumes")),
    *((msgspec.structs.replace(row, claim=f"spdy: {row.claim}"), BY_SPDY) for row in rows_of("streams")),
]
AT_ONCE = 4

ASK = """
import json, ssl, sys, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
headers = {"Authorization": "Bearer " + open(folder + "token").read()}
trusting = ssl.create_default_context(cafile=folder + "ca.crt")
answers = {}
for url in sys.argv[1:]:
    try:
        urllib.request.urlopen(urllib.request.Request(url, headers=headers), context=trusting, timeout=10)
        answers[url] = 200
    except urllib.error.HTTPError as error:
        answers[url] = error.code
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def local_node(binaries: Binaries) -> Iterator[LocalNode]:
    with a_local_node("root" if is_root() else "user", "--sim=1x1", *kube_options(binaries)) as node:
        node.kubectl("cordon", "sim-0-0")  # it would take pods that are to run
        yield node


@pytest.fixture(scope="module")
def played(local_node: LocalNode) -> Iterator[dict[str, Future[None]]]:
    """All rows, under way."""
    rows = [row for row, _ in PLAYED if local_node.is_root or not row.root_only]
    kubectl = local_node.kubectl
    kubectl.apply(*(one for row in rows for one in row.manifests()))
    accounts = [f"{row.namespace}/default" for row in rows]
    wait_until(lambda: set(accounts) <= accounts_of(kubectl), "the accounts without which no pod is made")
    kubectl.apply(*(pod for row in rows for pod in row.pods()))
    path = f"{kubectl.binary.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECACHEDIR": str(kubectl.cache)}
    folder = local_node.folder / "rows"
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            row.claim: pool.submit(play, row, kubectl.kubeconfig, folder / row.namespace, environment | protocol)
            for row, protocol in PLAYED
            if row in rows
        }
        pool.shutdown(cancel_futures=True)


def accounts_of(kubectl: Kubectl) -> set[str]:
    everywhere = kubectl.json("get", "serviceaccounts", "--all-namespaces")["items"]
    return {f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in everywhere}


@pytest.mark.parametrize("row", [row for row, _ in PLAYED], ids=lambda row: row.claim)
def test_what_kubectl_shows_is_the_same(row: Row, local_node: LocalNode, played: dict[str, Future[None]]) -> None:
    if row.root_only and not local_node.is_root:
        pytest.skip(f"an ordinary user does not get this: {row.root_only}")
    problem = played[row.claim].exception()
    if isinstance(problem, AssertionError):
        pytest.fail(str(problem), pytrace=False)
    if problem is not None:
        raise problem


def test_a_pod_reaches_the_api_server_with_its_token_under_all_its_names(scene: Scene) -> None:
    scene.apply(an_idle_pod("client"))
    scene.kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    scene.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={scene.namespace}:default")
    scene.until("condition=Ready", "pod/client")
    mine, others = (f"api/v1/namespaces/{name}/pods" for name in (scene.namespace, "kube-system"))
    names = ("kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes.default", "10.96.0.1")
    allowed, forbidden = [f"https://{name}/{mine}" for name in names], f"https://kubernetes.default/{others}"

    answers = json.loads(scene.run_in("client", "python3", "-c", ASK, *allowed, forbidden))

    assert answers == {**dict.fromkeys(allowed, 200), forbidden: 403}


def test_a_service_leads_to_its_pods(scene: Scene) -> None:
    scene.apply(an_idle_pod("client"), an_answering_pod("shop-1", {"app": "shop"}), a_service("shop"))
    scene.until("condition=Ready", "pod", "--all")

    scene.until_true(
        lambda: (
            scene.program_in("client", "ask", "shop:80", f"shop-1:{PORT}")
            == {"shop:80": "shop-1", f"shop-1:{PORT}": "shop-1"}
        ),
        "the pod to answer in the name of the service",
    )


def test_a_simulated_pod_tells_what_it_would_have_done(scene: Scene) -> None:
    scene.apply(a_pod_of("pretended", a_pod_spec({"name": "main", "image": "none"}, nodeName="sim-0-0")))
    scene.until("condition=Ready", "pod/pretended")

    assert "nothing runs here" in scene.kubectl("logs", "pretended")
    assert "no command can be run in it" in scene.try_kubectl("exec", "pretended", "--", "true").stderr


@pytest.mark.parametrize("node", ["local", "sim-0-0"])
def test_nobody_but_the_api_server_uses_an_agent(local_node: LocalNode, node: str) -> None:
    pki = local_node.shoal.data_dir / "pki"
    port = local_node.kubectl("get", "node", node, "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}")
    moment = datetime.now(UTC)
    someone = Keyring(pki, now=moment).client("alice", ["people"], now=moment)

    assert status_of(f"https://127.0.0.1:{port}/pods", pki / "ca.crt", None) == 401
    assert status_of(f"https://127.0.0.1:{port}/pods", pki / "ca.crt", someone) == 403


def test_an_agent_that_dies_is_found_again_where_it_was(local_node: LocalNode, scene: Scene) -> None:
    scene.apply(an_idle_pod("lasting"))
    scene.until("condition=Ready", "pod/lasting")

    os.kill(local_node.shoal.part("node")["pid"], signal.SIGKILL)

    scene.until_true(
        lambda: scene.try_kubectl("exec", "lasting", "--", "echo", "here").stdout == "here\n",
        "commands to be run again",
    )


def test_a_simulated_node_is_never_taken_for_lost(local_node: LocalNode) -> None:
    """Nobody renews a lease of its name: after 50 s a controller that knows no other would take it for lost."""

    def ages() -> tuple[float, float]:
        """For how long the node has been there, and for how long it has been as it is."""
        node = local_node.kubectl.json("get", "node", "sim-0-0")
        ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
        moments = (node["metadata"]["creationTimestamp"], ready["lastTransitionTime"])
        created, settled = ((datetime.now(UTC) - parse_time(moment)).total_seconds() for moment in moments)
        return created, settled

    wait_until(lambda: ages()[0] > 70, "the node to be old enough", within=120)
    created, settled = ages()
    assert created - settled < 10


def status_of(url: str, authority: Path, certificate: KeyPair | None) -> int:
    """How a server answers whoever has this certificate."""
    context = ssl.create_default_context(cafile=authority)
    if certificate is not None:
        load_into(context, certificate)
    try:
        with urllib.request.urlopen(url, context=context, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
