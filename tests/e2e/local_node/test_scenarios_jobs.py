"""Jobs: tried again, done in parts, given up, and ended by their deadlines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.local_node.scenes import Object, Scene, a_container, a_pod_spec

pytestmark = [pytest.mark.kube, pytest.mark.slow]


def a_job(name: str, script: str, *, restarts: str = "Never", volumes: Any = None, **more: Any) -> Object:
    mounts = [{"name": volume, "mountPath": f"/{volume}"} for volume in volumes or {}]
    spec = a_pod_spec(
        a_container(["sh", "-c", script], volumeMounts=mounts),
        volumes=volumes,
        restartPolicy=restarts,
        **more.pop("pod", {}),
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": spec}, **more},
    }


def a_claim(name: str) -> Object:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": asked}


def test_a_job_is_tried_again_until_it_succeeds(scene: Scene) -> None:
    """By another pod, and by another container of the same pod; what is on its volume outlives each of them."""
    third_time = "echo tried >> /state/tries; test $(wc -l < /state/tries) -ge {}"
    kept = {"state": {"persistentVolumeClaim": {"claimName": "state"}}}
    scene.apply(
        a_claim("state"),
        a_job("by-pods", third_time.format(2), volumes=kept, backoffLimit=2),
        a_job("by-containers", third_time.format(3), restarts="OnFailure", volumes={"state": {"emptyDir": {}}}),
    )

    scene.until("condition=Complete", "job/by-pods", "job/by-containers")

    assert scene.of("job/by-pods", ".status.failed") == "1"
    pods = scene.json("get", "pods", "--selector=job-name=by-containers")["items"]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [2]


def test_a_job_that_keeps_failing_is_given_up(scene: Scene) -> None:
    scene.apply(a_job("hopeless", "echo no; exit 3", backoffLimit=0))
    scene.until("condition=Failed", "job/hopeless")

    assert scene.of("job/hopeless", ".status.conditions[?(@.type=='Failed')].reason") == "BackoffLimitExceeded"
    pod = scene.json("get", "pods", "--selector=job-name=hopeless")["items"][0]
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")


def test_each_pod_of_an_indexed_job_does_its_own_part(scene: Scene) -> None:
    script = "echo $JOB_COMPLETION_INDEX $(hostname)"
    scene.apply(a_job("parts", script, completionMode="Indexed", completions=4, parallelism=4))
    scene.until("condition=Complete", "job/parts")

    said = scene.kubectl("logs", "--selector=job-name=parts", "--prefix=false")
    assert sorted(said.splitlines()) == [f"{index} parts-{index}" for index in range(4)]
    assert scene.of("job/parts", ".status.completedIndexes") == "0-3"


def test_a_pod_of_a_job_is_ended_by_the_deadline_of_either(scene: Scene) -> None:
    scene.apply(
        a_job("late-job", "trap 'echo asked to end; exit 0' TERM; sleep 1234 & wait", activeDeadlineSeconds=2),
        a_job("late-pod", "exec sleep 1234", backoffLimit=0, pod={"activeDeadlineSeconds": 2}),
    )
    scene.until("condition=Failed", "job/late-job", "job/late-pod")

    why = ".status.conditions[?(@.type=='Failed')].reason"
    assert scene.of("job/late-job", why) == "DeadlineExceeded"
    assert scene.of("job/late-pod", why) == "BackoffLimitExceeded"
    pod = scene.json("get", "pods", "--selector=job-name=late-pod")["items"][0]
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    scene.until_true(lambda: not scene.names_of("job-name=late-job"), "the pod of the late Job to be gone")
