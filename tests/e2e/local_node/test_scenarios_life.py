"""Pods that wait for others through the API, and pods that take the place of others while they are asked."""

from __future__ import annotations

import json

import pytest

from tests.e2e.local_node.scenes import (
    MAY_SEE_PODS,
    Object,
    Scene,
    a_container,
    a_pod_of,
    a_pod_spec,
    a_service,
    a_set,
    an_answering_container,
    an_answering_pod,
    program,
)

pytestmark = [pytest.mark.kube, pytest.mark.slow]


def a_waiting_pod(name: str, account: str) -> Object:
    init = a_container(program("await_pod", "database")) | {"name": "wait"}
    return a_pod_of(
        name,
        a_pod_spec(a_container(["sleep", "infinity"]), initContainers=[init], serviceAccountName=account),
    )


def test_an_init_container_waits_for_another_pod_through_the_api(scene: Scene) -> None:
    scene.apply(*MAY_SEE_PODS)
    scene.apply(a_waiting_pod("app", "waiter"))
    scene.until_true(
        lambda: "not there yet" in scene.try_kubectl("logs", "app", "-c", "wait").stdout, "it to ask for the database"
    )

    scene.apply(an_answering_pod("database"))
    scene.until("condition=Ready", "pod/app")

    assert scene.kubectl("logs", "app", "-c", "wait").splitlines()[-1] == "ready"


def test_an_init_container_may_ask_the_api_for_no_more_than_its_account_may(scene: Scene) -> None:
    pod = a_waiting_pod("app", "default")
    pod["spec"]["restartPolicy"] = "Never"
    scene.apply(pod)
    scene.until("jsonpath={.status.phase}=Failed", "pod/app")

    said = scene.kubectl("logs", "app", "-c", "wait")
    account = f"system:serviceaccount:{scene.namespace}:default"
    assert f'403 pods "database" is forbidden: User "{account}" cannot get resource "pods"' in said


def test_a_deployment_is_replaced_under_load_and_no_request_fails(scene: Scene) -> None:
    answering = an_answering_container(lifecycle={"preStop": {"sleep": {"seconds": 2}}})
    spec = a_pod_spec(answering, terminationGracePeriodSeconds=30)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 3}}
    scene.apply(a_service("web"), a_set("Deployment", "web", 3, spec, strategy=strategy))
    scene.until("condition=Available", "deployment/web")
    before = set(scene.names_of("app=web"))
    scene.apply(a_pod_of("client", a_pod_spec(a_container(program("ask", "*web:80")), restartPolicy="Never")))
    scene.until("condition=Ready", "pod/client")

    scene.kubectl("rollout", "restart", "deployment/web")
    scene.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    scene.until_true(lambda: not before & set(scene.names_of("app=web")), "those from before to be gone")
    scene.run_in("client", "touch", "/tmp/enough")
    scene.until("jsonpath={.status.phase}=Succeeded", "pod/client")

    heard = json.loads(scene.kubectl("logs", "client"))["*web:80"]
    after = set(scene.names_of("app=web"))
    assert heard.keys() <= before | after, f"requests failed: {heard}"
    assert heard.keys() & before
    assert heard.keys() >= after
