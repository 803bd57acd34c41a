"""The official Python client makes workloads and watches them to their end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch

from tests.support.clusters.engines import Engine
from tests.support.waiting import wait_until

NAMESPACE = "python-live"


@pytest.fixture(scope="module")
def api(simulated: Engine) -> Iterator[Any]:
    with config.new_client_from_config(str(simulated.kubeconfig)) as api:
        core = client.CoreV1Api(api)
        core.create_namespace({"metadata": {"name": NAMESPACE}})
        yield api
        core.delete_namespace(NAMESPACE)


def a_template(labels: dict[str, str], **spec: Any) -> Any:
    return client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels, annotations={"shoal.dev/sim-run-time": "500ms"} if spec else None),
        spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="nginx")], **spec),
    )


def test_a_deployment_is_made_and_watched_until_it_is_available(api: Any) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "web"}
    spec = client.V1DeploymentSpec(
        replicas=3, selector=client.V1LabelSelector(match_labels=labels), template=a_template(labels)
    )
    metadata = client.V1ObjectMeta(name="web")
    made = apps.create_namespaced_deployment(NAMESPACE, client.V1Deployment(metadata=metadata, spec=spec))
    seen = []
    for event in watch.Watch().stream(
        apps.list_namespaced_deployment,
        NAMESPACE,
        resource_version=made.metadata.resource_version,
        timeout_seconds=30,
    ):
        seen.append(event["object"].status.available_replicas or 0)
        if seen[-1] == 3:
            break
    assert seen == sorted(seen)
    assert seen[-1] == 3
    pods = client.CoreV1Api(api).list_namespaced_pod(NAMESPACE, label_selector="app=web").items
    assert {pod.status.phase for pod in pods} == {"Running"}
    assert all(pod.status.container_statuses[0].state.running for pod in pods)
    assert apps.read_namespaced_deployment_scale("web", NAMESPACE).status.replicas == 3
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Foreground")
    for event in watch.Watch().stream(apps.list_namespaced_deployment, NAMESPACE, timeout_seconds=30):
        if event["type"] == "DELETED":
            break
    assert client.CoreV1Api(api).list_namespaced_pod(NAMESPACE, label_selector="app=web").items == []


def test_a_job_is_made_and_watched_to_its_completion(api: Any) -> None:
    batch = client.BatchV1Api(api)
    spec = client.V1JobSpec(completions=2, parallelism=2, template=a_template({}, restart_policy="Never"))
    metadata = client.V1ObjectMeta(name="once")
    made = batch.create_namespaced_job(NAMESPACE, client.V1Job(metadata=metadata, spec=spec))
    job = made
    for event in watch.Watch().stream(
        batch.list_namespaced_job, NAMESPACE, resource_version=made.metadata.resource_version, timeout_seconds=30
    ):
        job = event["object"]
        if any(one.type == "Complete" and one.status == "True" for one in job.status.conditions or ()):
            break
    assert job.status.succeeded == 2
    assert [one.type for one in job.status.conditions] == ["SuccessCriteriaMet", "Complete"]
    assert job.status.completion_time >= job.status.start_time

    def reasons() -> set[str]:
        return {event.reason for event in client.CoreV1Api(api).list_namespaced_event(NAMESPACE).items}

    wait_until(lambda: {"SuccessfulCreate", "Completed", "Scheduled"} <= reasons(), "all events to be told")
    batch.delete_namespaced_job("once", NAMESPACE, propagation_policy="Background")


def test_events_and_logs_of_a_pod_are_read(api: Any) -> None:
    core = client.CoreV1Api(api)
    pod = client.V1Pod(
        metadata=client.V1ObjectMeta(name="one"),
        spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="nginx")]),
    )
    core.create_namespaced_pod(NAMESPACE, pod)
    for event in watch.Watch().stream(
        core.list_namespaced_pod, NAMESPACE, field_selector="metadata.name=one", timeout_seconds=30
    ):
        if event["object"].status.phase == "Running":
            break
    assert core.read_namespaced_pod_log("one", NAMESPACE).startswith("simulated: container main of pod")
    core.delete_namespaced_pod("one", NAMESPACE)
