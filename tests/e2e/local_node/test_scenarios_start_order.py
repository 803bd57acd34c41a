"""A pod that starts after another, on this machine: the init container is the real program, in a real container."""

from __future__ import annotations

import pytest

from shoal.api.grove import names
from shoal.gangs.plan import Parent
from shoal.gangs.settings import GangSettings
from shoal.gangs.startup.container import start_container
from tests.e2e.local_node.scenes import Object, Scene, a_container, a_pod_of, a_pod_spec

pytestmark = [pytest.mark.kube, pytest.mark.slow]

MAY_WATCH_PODS: list[Object] = [
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}},
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "web-ic-sat", "annotations": {"kubernetes.io/service-account.name": "web"}},
        "type": "kubernetes.io/service-account-token",
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "web"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "web"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"},
        "subjects": [{"kind": "ServiceAccount", "name": "web"}],
    },
]


def labels(clique: str) -> dict[str, str]:
    return {names.GANG_LABEL: "web-0", names.CLIQUE_LABEL: clique}


@pytest.mark.parametrize("user", [None, 1234], ids=["as root", "as somebody"])
def test_a_pod_waits_until_those_that_start_first_are_ready(scene: Scene, user: int | None) -> None:
    if user is not None and not scene.node.is_root:
        pytest.skip("a node of an ordinary user has no other users")
    start_up = start_container(
        [Parent(clique="web-0-db", min_available=1)], GangSettings(start_image="grove-initc:1.0"), "web"
    )
    assert start_up is not None
    waits = a_pod_spec(a_container(["sleep", "infinity"]), initContainers=[start_up.init_container])
    waits["volumes"] += start_up.volumes
    waits["securityContext"] = {"runAsUser": user}
    scene.apply(*MAY_WATCH_PODS, a_pod_of("api", waits, labels("web-0-api")))
    said = "waiting for web-0-db: 0 of 1 ready\n"
    scene.until_true(
        lambda: scene.try_kubectl("logs", "api", "-c", "grove-initc").stdout == said, "the pod to say whom it waits for"
    )
    assert scene.of("pod/api", ".status.phase") == "Pending"
    assert scene.of("pod/api", ".status.initContainerStatuses[0].state.running.startedAt")
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    scene.apply(
        a_pod_of("db", a_pod_spec(a_container(["sleep", "infinity"], readinessProbe=probe)), labels("web-0-db"))
    )
    scene.until("jsonpath={.status.phase}=Running", "pod/db")
    assert scene.of("pod/api", ".status.phase") == "Pending", "a parent that runs is not ready yet"
    scene.run_in("db", "touch", "/tmp/ready")
    scene.until("condition=Ready", "pod/api")
    assert scene.kubectl("logs", "api", "-c", "grove-initc") == f"{said}ready: web-0-db\n"
    assert scene.of("pod/api", ".status.initContainerStatuses[0].state.terminated.exitCode") == "0"
    assert scene.of("pod/api", ".status.initContainerStatuses[0].restartCount") == "0"


def test_a_waiting_pod_is_gone_at_once_when_it_is_deleted(scene: Scene) -> None:
    start_up = start_container([Parent(clique="web-0-db", min_available=1)], GangSettings(), "web")
    assert start_up is not None
    grace = 30
    waits = a_pod_spec(a_container(["true"]), initContainers=[start_up.init_container])
    waits |= {"terminationGracePeriodSeconds": grace, "volumes": [*waits["volumes"], *start_up.volumes]}
    scene.apply(*MAY_WATCH_PODS, a_pod_of("api", waits, labels("web-0-api")))
    scene.until_true(
        lambda: "waiting for" in scene.try_kubectl("logs", "api", "-c", "grove-initc").stdout, "the pod to wait"
    )
    scene.kubectl("delete", "pod", "api", "--wait=true", f"--timeout={grace // 2}s")
