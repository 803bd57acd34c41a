"""Pods that do not want to go: they go, when their grace is over."""

from __future__ import annotations

import secrets

import pytest

from tests.e2e.local_node.processes import running
from tests.e2e.local_node.scenes import Object, Scene, a_container, a_pod_of, a_pod_spec

pytestmark = [pytest.mark.kube, pytest.mark.slow]


def a_stubborn_pod(name: str, mark: str, *, grace: int, finalizers: list[str] | None = None) -> Object:
    """A pod that hears SIGTERM, says so and stays; its processes can be told by a mark."""
    script = f"trap 'echo I stay' TERM; echo ready; while :; do sh -c 'sleep 0.1 # {mark}'; done"
    pod = a_pod_of(name, a_pod_spec(a_container(["sh", "-c", script]), terminationGracePeriodSeconds=grace))
    pod["metadata"]["finalizers"] = finalizers or []
    return pod


def until_ready(scene: Scene, pod: str) -> None:
    scene.until_true(lambda: "ready" in scene.try_kubectl("logs", pod).stdout, "the pod to be ready for anything")


def test_a_pod_that_ignores_being_asked_to_end_is_killed_when_its_grace_is_over(scene: Scene) -> None:
    mark = secrets.token_hex(8)
    scene.apply(a_stubborn_pod("stubborn", mark, grace=2, finalizers=["example.com/looked-at"]))
    until_ready(scene, "stubborn")

    scene.kubectl("delete", "pod", "stubborn", "--wait=false")
    scene.until("jsonpath={.status.phase}=Failed", "pod/stubborn")

    ended = scene.json("get", "pod", "stubborn")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    assert "I stay" in scene.kubectl("logs", "stubborn")
    assert not running(mark)
    scene.kubectl("patch", "pod", "stubborn", "--type=merge", '--patch={"metadata": {"finalizers": null}}')


def test_whoever_deletes_a_pod_may_give_it_less_grace_than_it_asks_for(scene: Scene) -> None:
    mark = secrets.token_hex(8)
    scene.apply(a_stubborn_pod("stubborn", mark, grace=3600))
    until_ready(scene, "stubborn")

    scene.kubectl("delete", "pod", "stubborn", "--grace-period=1", "--wait=true", "--timeout=50s")

    assert not running(mark)


def test_a_pod_that_is_going_slowly_can_still_be_hurried(scene: Scene) -> None:
    mark = secrets.token_hex(8)
    scene.apply(a_stubborn_pod("stubborn", mark, grace=3600))
    until_ready(scene, "stubborn")
    scene.kubectl("delete", "pod", "stubborn", "--wait=false")
    scene.until_true(lambda: "I stay" in scene.kubectl("logs", "stubborn"), "it to refuse")

    scene.kubectl("delete", "pod", "stubborn", "--grace-period=1", "--wait=true", "--timeout=50s")

    assert not running(mark)


def test_a_pod_that_is_deleted_by_force_is_gone_at_once_and_its_processes_soon_after(scene: Scene) -> None:
    mark = secrets.token_hex(8)
    scene.apply(a_stubborn_pod("stubborn", mark, grace=3600))
    until_ready(scene, "stubborn")

    scene.kubectl("delete", "pod", "stubborn", "--force", "--grace-period=0", "--wait=false")

    assert scene.try_kubectl("get", "pod", "stubborn").returncode == 1
    scene.until_true(lambda: not running(mark), "its processes to be gone")
