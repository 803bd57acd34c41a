"""Objects as snapshots have them, in a few words."""

from __future__ import annotations

from typing import Any

from shoal.api.meta.objects import Document
from shoal.scheduler.configuration import Configuration, SchedulerOptions
from shoal.scheduler.snapshots import Snapshot, configuration_document, parameters_of, read_snapshot, snapshot_document
from shoal.scheduler.snapshots.writing import packed
from tests.scheduler.builders import gpu_queue_manifest, kai_pod_manifest, pod_group_manifest
from tests.support.builders.nodes import node_manifest

AT = 1_800_000_000.0
MADE = {"creationTimestamp": "2027-01-15T07:00:00Z"}
Json = dict[str, Any]


def a_node_object(name: str) -> Json:
    """A node with eight GPUs."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return _written("v1", "Node", node_manifest(name, gpus=8, allocatable=room, metadata=MADE))


def a_queue_object(name: str, *, quota: float = 0) -> Json:
    """A queue with a quota of GPUs."""
    return _written("scheduling.run.ai/v2", "Queue", gpu_queue_manifest(name, quota=quota, metadata=MADE))


def a_group_object(name: str, queue: str = "team-a", *, pods: int = 1, priority: str = "") -> Json:
    """A PodGroup of so many pods."""
    metadata = {"namespace": "default", "uid": f"g-{name}", **MADE}
    spec: Json = {"minMember": pods, **({"priorityClassName": priority} if priority else {})}
    return _written(
        "scheduling.run.ai/v2alpha2", "PodGroup", pod_group_manifest(name, queue, metadata=metadata, **spec)
    )


def a_pod_object(group: str, index: int = 0, *, gpus: int = 8, node: str = "") -> Json:
    """A pod of a PodGroup, with secrets in its container."""
    name = f"{group}-{index}"
    secrets = {"env": [{"name": "TOKEN", "value": "s3cret"}], "args": ["--password=s3cret"]}
    manifest = kai_pod_manifest(
        name,
        group=group,
        gpus=gpus,
        requests={"cpu": "1"},
        namespace="default",
        uid=name,
        metadata=MADE,
        containers=[{"name": "main", "image": "train:1", **secrets}],
        node=node,
        phase="Running" if node else "Pending",
    )
    return _written("v1", "Pod", manifest)


def _written(api_version: str, kind: str, manifest: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, **manifest}


def a_document(sections: dict[str, list[Json]]) -> Json:

    typed = {name: [Document.of(one) for one in found] for name, found in sections.items()}
    return snapshot_document(
        typed,
        config=configuration_document(Configuration()),
        parameters=parameters_of(SchedulerOptions()),
        taken_at=AT,
    )


def a_snapshot(**sections: list[Json]) -> Snapshot:
    return read_snapshot(packed(a_document(sections)))


def a_busy_cluster() -> dict[str, list[Json]]:
    """Two nodes of eight GPUs, one of them taken; a gang of two that does not fit, a single pod that does."""
    return {
        "nodes": [a_node_object("n1"), a_node_object("n2")],
        "queues": [a_queue_object("team-a", quota=8), a_queue_object("team-b", quota=8)],
        "priorityClasses": [
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            for name, value in (("train", 50), ("build", 100))
        ],
        "podGroups": [
            a_group_object("runs", "team-b", priority="build"),
            a_group_object("gang", "team-a", pods=2),
            a_group_object("small", "team-a"),
        ],
        "pods": [
            a_pod_object("runs", node="n1"),
            a_pod_object("gang", 0),
            a_pod_object("gang", 1),
            a_pod_object("small", gpus=1),
        ],
    }
