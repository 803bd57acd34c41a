"""What one pod adds to the figures of its gang.

A pod asks for something from when it is made until it ends, and holds it from when it has a node. A part of a GPU is
counted in devices; memory of a GPU is counted as such until the pod is on a node, where it is a part of a device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from shoal.api import kai_names as names
from shoal.api.core import PENDING, RUNNING, Pod, pod_condition
from shoal.scheduler.gpu_requests import NOTHING, STEPS, GpuRequest, InvalidGpuRequest, gpu_request_of
from shoal.scheduler.pod_requests import pod_requests
from shoal.scheduler.resource_lists import ONE, Amounts, add_to

GPU_MEMORY_RESOURCE: Final = "run.ai/gpu.memory"
FRACTION: Final = "Fraction"
"""The kind of resource that a pod was given, where it is a part of a GPU."""


@dataclass(frozen=True, slots=True)
class PodUse:
    """What a pod asks for and holds; not to be changed, since pods that are alike may share one."""

    requested: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)


NO_USE: Final = PodUse()


def what_counts(pod: Pod) -> object:
    """All of a pod that its use depends on, beside its node's GPUs."""
    annotations = pod.metadata.annotations
    return (
        pod.status.phase,
        is_placed(pod),
        pod.spec.node_name,
        pod.spec.containers,
        pod.spec.init_containers,
        pod.spec.resources,
        [annotations.get(name) for name in _ANNOTATIONS],
    )


def is_placed(pod: Pod) -> bool:
    """Whether the pod holds what it asked for."""
    if pod.status.phase != PENDING:
        return pod.status.phase == RUNNING
    scheduled = pod_condition(pod, "PodScheduled")
    return scheduled is not None and scheduled.status == "True"


def pod_use(pod: Pod, memory_of_gpu: int | None) -> PodUse:
    """What a pod adds; ``memory_of_gpu`` is that of each GPU of its node in MiB, if it is known."""
    if pod.status.phase not in (PENDING, RUNNING):
        return NO_USE
    requested = pod_requests(pod)
    holds = is_placed(pod)
    allocated = dict(requested) if holds else {}
    gpu = _shared(pod)
    if gpu.is_shared:
        add_to(requested, _asked(gpu))
        if holds and pod.metadata.annotations.get(names.RECEIVED_RESOURCE_TYPE) == FRACTION:
            add_to(allocated, {names.NVIDIA_GPU: _given(gpu, memory_of_gpu)})
    return PodUse(requested, allocated)


def depends_on_node(pod: Pod) -> bool:
    """Whether what a pod holds depends on the GPUs of its node."""
    return names.GPU_MEMORY in pod.metadata.annotations


_ANNOTATIONS: Final = (
    names.POD_GROUP,
    names.GPU_FRACTION,
    names.GPU_MEMORY,
    names.GPU_FRACTION_DEVICES,
    names.RECEIVED_RESOURCE_TYPE,
)


def _shared(pod: Pod) -> GpuRequest:
    """The parts of GPUs that a pod asks for; a wish that nobody understands is none."""
    try:
        return gpu_request_of(pod)
    except InvalidGpuRequest:
        return NOTHING


def _asked(gpu: GpuRequest) -> Amounts:
    if gpu.memory:
        return {GPU_MEMORY_RESOURCE: gpu.memory * gpu.devices * ONE}
    return {names.NVIDIA_GPU: _portion(gpu.portion, gpu.devices)}


def _given(gpu: GpuRequest, memory_of_gpu: int | None) -> int:
    if not gpu.memory:
        return _portion(gpu.portion, gpu.devices)
    if not memory_of_gpu:
        return 0
    return math.ceil(STEPS * gpu.memory / memory_of_gpu) * gpu.devices * ONE // STEPS


def _portion(portion: float, devices: int) -> int:
    """A part of each of so many devices, exactly."""
    return round(portion * STEPS) * devices * ONE // STEPS
