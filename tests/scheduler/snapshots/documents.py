"""Objects as snapshots have them, in a few words."""

from __future__ import annotations

from typing import Any

from shoal.api.meta.objects import Document
from shoal.scheduler.configuration import Configuration, SchedulerOptions
from shoal.scheduler.snapshots import Snapshot, configuration_document, parameters_of, read_snapshot, snapshot_document
from shoal.scheduler.snapshots.writing import packed

AT = 1_800_000_000.0
CREATED = "2027-01-15T07:00:00Z"
Json = dict[str, Any]


def a_node(name: str, gpus: int = 8, **labels: str) -> Json:
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": CREATED},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_queue(name: str, *, quota: float = 0, limit: float = -1, parent: str = "") -> Json:
    rest = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name, "creationTimestamp": CREATED},
        "spec": {"parentQueue": parent, "resources": {"gpu": gpu, "cpu": rest, "memory": rest}},
    }


def a_group(name: str, queue: str = "team-a", *, pods: int = 1, priority: str = "") -> Json:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"g-{name}", "creationTimestamp": CREATED},
        "spec": {"minMember": pods, "queue": queue, **({"priorityClassName": priority} if priority else {})},
    }


def a_pod(group: str, index: int = 0, *, gpus: int = 8, node: str = "") -> Json:
    asked = {"nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{group}-{index}",
            "namespace": "default",
            "uid": f"{group}-{index}",
            "creationTimestamp": CREATED,
            "annotations": {"pod-group-name": group},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "env": [{"name": "TOKEN", "value": "s3cret"}],
                    "args": ["--password=s3cret"],
                    "resources": {"limits": asked, "requests": {"cpu": "1", **asked}},
                }
            ],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


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
        "nodes": [a_node("n1"), a_node("n2")],
        "queues": [a_queue("team-a", quota=8), a_queue("team-b", quota=8)],
        "priorityClasses": [
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            for name, value in (("train", 50), ("build", 100))
        ],
        "podGroups": [
            a_group("runs", "team-b", priority="build"),
            a_group("gang", "team-a", pods=2),
            a_group("small", "team-a"),
        ],
        "pods": [a_pod("runs", node="n1"), a_pod("gang", 0), a_pod("gang", 1), a_pod("small", gpus=1)],
    }
