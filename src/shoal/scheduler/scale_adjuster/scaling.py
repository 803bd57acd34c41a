"""How many GPUs the pods need that wait for parts, and which of them ask for more.

A pod that waits asks, through a pod of its own, for as many whole GPUs as it wants parts of. Not all have to: as long
as those that asked cover what all need together, and one asked for as many at once, the others find room beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from shoal.api.core.pods import Pod, is_finished, pod_condition
from shoal.scheduler.gpu_requests import STEPS, GpuRequest, InvalidGpuRequest, gpu_request_of, rounded_portion


def waits_for_part(pod: Pod, schedulers: Sequence[str]) -> bool:
    """Whether a pod of ours wants parts of GPUs and was found to fit nowhere."""
    if pod.spec.node_name or pod.spec.scheduler_name not in schedulers:
        return False
    return not pod.metadata.is_deleting and not is_finished(pod) and is_unschedulable(pod) and _request(pod) is not None


def is_unschedulable(pod: Pod) -> bool:
    """Whether a scheduler has said that a pod fits nowhere."""
    condition = pod_condition(pod, "PodScheduled")
    return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"


def needed_devices(requests: Iterable[GpuRequest], *, memory_portion: float) -> int:
    """Whole GPUs that hold all these parts, however they are packed."""
    hundredths = 0
    for request in requests:
        portion = request.portion or rounded_portion(memory_portion)
        hundredths += round(portion * STEPS) * request.devices
    return math.ceil(hundredths / STEPS)


def pods_to_scale_for(waiting: Sequence[Pod], scaling: Mapping[str, int], *, memory_portion: float) -> list[Pod]:
    """The waiting pods that must ask for GPUs, oldest first; ``scaling`` are the GPUs asked for by uid already."""
    requests = {pod.metadata.uid: request for pod in waiting if (request := _request(pod)) is not None}
    needed = needed_devices(requests.values(), memory_portion=memory_portion)
    asked = list(scaling.values())
    chosen = []
    for pod in sorted(waiting, key=_age):
        request = requests.get(pod.metadata.uid)
        if request is None or pod.metadata.uid in scaling:
            continue
        if needed > sum(asked) or request.devices > max(asked, default=0):
            chosen.append(pod)
            asked.append(request.devices)
    return chosen


def is_needed(scaling_pod: Pod, waiting: Pod | None, schedulers: Sequence[str]) -> bool:
    """Whether a pod that asks for GPUs has not been heard yet, and the one it asks for still waits."""
    return not is_finished(scaling_pod) and waiting is not None and waits_for_part(waiting, schedulers)


def devices_of(pod: Pod) -> int:
    """How many GPUs a pod wants a part of."""
    request = _request(pod)
    return 0 if request is None else request.devices


def _request(pod: Pod) -> GpuRequest | None:
    """What a pod asks for, where that makes sense and is a part."""
    try:
        request = gpu_request_of(pod)
    except InvalidGpuRequest:
        return None
    return request if request.is_shared else None


def _age(pod: Pod) -> tuple[float, str, str]:
    made = pod.metadata.creation_timestamp
    return (made.timestamp() if made is not None else 0.0, pod.metadata.namespace, pod.metadata.name)
