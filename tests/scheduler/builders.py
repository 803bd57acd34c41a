"""KAI's objects and the scheduler's own model in few words.

As for the builders of ``tests.support``, ``…_manifest`` is JSON and ``a_…`` the typed API; ``a_model_…`` is what the
scheduler itself calculates with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api import kai_names as names
from shoal.api.core import Pod
from shoal.api.scheduling_run_ai import PodGroup
from shoal.scheduler.model.amounts import UNLIMITED, WITHOUT_LIMIT, Amounts
from shoal.scheduler.model.jobs import Job, single_pod_set
from shoal.scheduler.model.nodes import Node
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.tasks import Request, Task
from tests.support.builders.pods import pod_manifest
from tests.support.builders.queues import queue_manifest

Json = dict[str, Any]
_ONLY_A_PLACE = Request(ResourceNames().vector({"pods": 1}))


def kai_pod_manifest(
    name: str = "p",
    *,
    group: str = "",
    gpus: int = 0,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, Any] | None = None,
    **given: Any,
) -> Json:
    """A pod that KAI's scheduler is to place, as a member of a PodGroup if one is named.

    Its extended resources, GPUs among them, are limited to what it requests, as a server demands.
    """
    asked = {**(requests or {}), **({names.NVIDIA_GPU: gpus} if gpus else {})}
    return pod_manifest(
        name,
        annotations={**(annotations or {}), **({names.POD_GROUP: group} if group else {})},
        requests=asked,
        limits={resource: amount for resource, amount in asked.items() if "/" in resource},
        **{"scheduler": names.SCHEDULER, **given},
    )


def a_kai_pod(name: str = "p", **given: Any) -> Pod:
    """The same pod as the typed API reads it from a server."""
    return msgspec.convert(kai_pod_manifest(name, **{"namespace": "default", "uid": f"uid-{name}", **given}), Pod)


def pod_group_manifest(
    name: str = "gang",
    queue: str = names.DEFAULT_QUEUE,
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A PodGroup of KAI's for one pod, or as many as the spec says."""
    body: Json = {"metadata": {"name": name, **(metadata or {})}, "spec": {"queue": queue, "minMember": 1, **spec}}
    return body | ({"status": dict(status)} if status else {})


def a_pod_group(name: str = "gang", queue: str = names.DEFAULT_QUEUE, **given: Any) -> PodGroup:
    """The same PodGroup as the typed API reads it from a server."""
    identity = {"namespace": "default", "uid": f"uid-{name}"}
    return msgspec.convert(pod_group_manifest(name, queue, **{"metadata": identity, **given}), PodGroup)


def gpu_queue_manifest(name: str, parent: str = "", *, quota: float = 0, limit: float = -1, **given: Any) -> Json:
    """A queue with a quota of GPUs, and as much as it likes of everything else."""
    return queue_manifest(name, parent, quota={"gpu": quota, "cpu": -1, "memory": -1}, limit={"gpu": limit}, **given)


def a_model_node(
    name: str,
    gpus: float = 8,
    *,
    cpu: float = 32_000,
    memory: float = 128e9,
    pods: float = 110,
    extended: Mapping[str, float] | None = None,
    resources: ResourceNames | None = None,
    gpu_memory: int = 0,
    **fields: Any,
) -> Node:
    """A node of the model: 32 cores, 128 GB and 110 places for pods; ``gpu_memory`` of 0 is unknown."""
    room = {"cpu": cpu, "memory": memory, "gpu": gpus, "pods": pods, **(extended or {})}
    known = {"gpu_memory": gpu_memory, "is_gpu_memory_known": True} if gpu_memory else {}
    allocatable = (resources or ResourceNames()).vector(room)
    return Node(name=name, allocatable=allocatable, **{"gpu_count": int(gpus), **known, **fields})


def a_model_queue(name: str, parent: str = "", **fields: Any) -> Queue:
    """A queue of the model, which is entitled to nothing that is not said."""
    return Queue(name=name, parent=parent, **fields)


def a_model_gpu_queue(
    name: str, parent: str = "", *, quota: float = 0.0, limit: float = UNLIMITED, weight: float = 1.0, **fields: Any
) -> Queue:
    """A queue of the model with a quota of GPUs, and as much as it likes of everything else."""
    return a_model_queue(
        name,
        parent,
        quota=WITHOUT_LIMIT._replace(gpu=quota),
        limit=WITHOUT_LIMIT._replace(gpu=limit),
        weight=Amounts(1.0, 1.0, weight),
        **fields,
    )


def a_model_job(name: str, queue: str = "q", **fields: Any) -> Job:
    """A job of the model, without tasks as yet, that starts with one."""
    given = {
        "uid": name,
        "namespace": "default",
        "priority": 50,
        "is_preemptible": True,
        "created": 0.0,
        "root": single_pod_set(1),
    }
    return Job(name=name, queue=queue, **{**given, **fields})


def a_model_task(name: str, request: Request = _ONLY_A_PLACE, **fields: Any) -> Task:
    """A task of the model that asks for a place on a node alone, or for more."""
    return Task(name=name, request=request, **{"uid": name, "namespace": "default", **fields})
