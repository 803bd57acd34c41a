"""What kubectl shows of pods that only seem to run: logs, use, and a plain refusal of all that would need a process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import OWN
from tests.clients.transcript import Place
from tests.support.clusters.engines import Engine
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("kubectl_binary", [OWN], indirect=True)]

NAMESPACE = "simulated"
KUBECTL = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(kubectl_binary: Path, simulated: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KUBECTL]:
    """Runs kubectl, and gives what it printed, errors included; the pod "web" runs."""
    folder = tmp_path_factory.mktemp("kubectl") / "folder"
    folder.mkdir()
    place = Place(kubectl_binary, simulated.kubeconfig, folder, NAMESPACE)

    def run(*words: str, stdin: str = "") -> str:
        done = place.run(*words, stdin=stdin)
        return done.stdout + done.stderr

    run("create", "namespace", NAMESPACE)
    run("run", "web", "--image=nginx", "--port=80", "--annotations=shoal.dev/sim-log=hello\nagain")
    assert "condition met" in run("wait", "pod/web", "--for=condition=Ready", "--timeout=30s")
    yield run
    run("delete", "namespace", NAMESPACE)


def test_logs_say_that_nothing_runs(kubectl: KUBECTL) -> None:
    first, *rest = kubectl("logs", "web").splitlines()
    assert first.startswith(f"simulated: container web of pod {NAMESPACE}/web on node sim-0-")
    assert rest[:2] == ["hello", "again"]
    assert kubectl("logs", "web", "--tail=1", "--limit-bytes=5") != ""
    assert (
        kubectl("logs", "nothere")
        == f'error: error from server (NotFound): pods "nothere" not found in namespace "{NAMESPACE}"\n'
    )
    assert "container nope is not valid for pod web" in kubectl("logs", "web", "-c", "nope")


def test_top_shows_what_pods_and_nodes_are_said_to_use(kubectl: KUBECTL) -> None:
    heading, *nodes = kubectl("top", "nodes").splitlines()
    assert heading.split() == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
    assert [line.split()[0] for line in nodes] == ["sim-0-0", "sim-0-1"]
    # Use is what changed between two readings: a pod that has just begun has none yet.
    wait_until(
        lambda: len(kubectl("top", "pods").splitlines()) == 2 and "web" in kubectl("top", "pods"), "the use of web"
    )
    heading, pod = kubectl("top", "pods").splitlines()
    assert heading.split() == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert pod.split()[0] == "web"
    assert kubectl("top", "pod", "web", "--containers").splitlines()[1].split()[:2] == ["web", "web"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["exec", "web", "--", "ls"], "no command can be run in it", id="exec"),
        pytest.param(["attach", "web"], "there is no process to attach to", id="attach"),
        pytest.param(["port-forward", "pod/web", "0:80"], "nothing listens on its ports", id="port-forward"),
        pytest.param(["cp", "web:/etc/hosts", "hosts"], "no command can be run in it", id="cp"),
    ],
)
def test_what_needs_a_process_is_refused_with_the_reason(words: list[str], why: str, kubectl: KUBECTL) -> None:
    said = kubectl(*words)
    assert f"pod {NAMESPACE}/web is on the simulated node sim-0-" in said
    assert said.endswith(f": {why}\n")


def test_a_claim_gets_a_volume_on_this_machine(kubectl: KUBECTL, simulated: Engine) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    container = {"name": "main", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    objects = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "keeper"},
            "spec": {"containers": [container], "volumes": [volume]},
        },
    ]
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert "condition met" in kubectl("wait", "pod/keeper", "--for=condition=Ready", "--timeout=30s")
    _, shown = kubectl("get", "pvc", "data").splitlines()
    assert shown.split()[1] == "Bound"
    assert "local-path" in shown.split()
    path = "jsonpath={.items[?(@.spec.claimRef.name=='data')].spec.hostPath.path}"
    assert kubectl("get", "pv", "-o", path).startswith(f"{simulated.kubeconfig.parent}/volumes/pvc-")
    kubectl("delete", "pod/keeper", "pvc/data")


def test_an_autoscaler_follows_the_use(kubectl: KUBECTL) -> None:
    kubectl("create", "deployment", "busy", "--image=nginx")
    kubectl("set", "resources", "deployment/busy", "--requests=cpu=100m")
    kubectl(
        "patch",
        "deployment",
        "busy",
        "-p",
        '{"spec":{"template":{"metadata":{"annotations":{"shoal.dev/sim-cpu":"200m"}}}}}',
    )
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/busy", "--timeout=30s")
    kubectl("autoscale", "deployment", "busy", "--min=1", "--max=4", "--cpu=50%")
    assert "condition met" in kubectl(
        "wait", "deployment/busy", "--for=jsonpath={.status.readyReplicas}=4", "--timeout=90s"
    )
