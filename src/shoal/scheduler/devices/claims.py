"""What a pod's claims of devices are, and what they weigh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from shoal.api.core import Pod
from shoal.api.resource_k8s_io import DeviceClaim, DeviceClass, ExactDeviceRequest

MOST_CONSUMERS: Final = 256
"""Pods that may use one claim at once."""
_EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that stands for an extended resource: the pod's containers ask for it already."""


class DeviceUse(NamedTuple):
    """A claim of devices that a pod uses."""

    called: str
    """What the pod calls it."""
    name: str
    """The claim; "" where it is still to be made."""
    template: str
    """What it is made from; "" where it is one that others may use too."""


def device_uses(pod: Pod) -> tuple[DeviceUse, ...]:
    """The claims of devices that a pod uses; one that turned out not to be needed is none."""
    if not pod.spec.resource_claims:
        return ()
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    return tuple(
        DeviceUse(one.name, one.resource_claim_name or made.get(one.name, ""), one.resource_claim_template_name)
        for one in pod.spec.resource_claims
        if one.resource_claim_name or made.get(one.name) != ""
    )


def device_claim_problem(
    pod: Pod,
    use: DeviceUse,
    claim: DeviceClaim | None,
    classes: Mapping[str, DeviceClass],
    *,
    queue: str | None,
    queue_key: str,
) -> str:
    """Why a claim is of no use to a pod; "" where nothing is wrong with it. ``queue``: the pod's, if anybody knows."""
    if not use.name:
        return f"its claim {use.called} of devices is still to be made from template {use.template}"
    if claim is None:
        return f"claim {use.name} of devices does not exist: create ResourceClaim {use.name}"
    if claim.metadata.is_deleting:
        return f"claim {use.name} of devices is being deleted"
    status = claim.status
    is_ours = any(one.uid == pod.metadata.uid for one in status.reserved_for)
    if len(status.reserved_for) >= MOST_CONSUMERS and not is_ours:
        return f"claim {use.name} of devices has {MOST_CONSUMERS} users, and may have no more"
    if problem := "" if queue is None else _queue_problem(use, claim, queue, queue_key):
        return problem
    if status.allocation is not None:
        return ""
    for request in claim.spec.devices.requests:
        exactly = request.exactly
        if exactly is not None and exactly.device_class_name not in classes:
            return f"claim {use.name} asks for DeviceClass {exactly.device_class_name}, which does not exist"
    return ""


def asked_gpus(claim: DeviceClaim) -> int:
    """How many GPUs a claim weighs: those it counts, and one for all of a node, since nobody knows how many."""
    if claim.metadata.annotations.get(_EXTENDED) == "true":
        return 0
    return sum(
        _count(one.exactly)
        for one in claim.spec.devices.requests
        if one.exactly is not None and is_of_gpus(one.exactly.device_class_name)
    )


def is_of_gpus(name: str) -> bool:
    """Whether a class or a driver of this name has GPUs."""
    return "gpu" in name.lower()


def _count(request: ExactDeviceRequest) -> int:
    match request.allocation_mode:
        case "" | "ExactCount":
            return request.count if request.count is not None and request.count > 0 else 1
        case "All":
            return 1
        case _:
            return 0


def _queue_problem(use: DeviceUse, claim: DeviceClaim, queue: str, queue_key: str) -> str:
    """Whose quota a claim of GPUs weighs upon must be plain where several may use it."""
    asks = claim.spec.devices.requests
    if use.template or not any(one.exactly and is_of_gpus(one.exactly.device_class_name) for one in asks):
        return ""
    named = claim.metadata.labels.get(queue_key, "")
    if not named:
        return f"claim {use.name} of GPUs names no queue: set its label {queue_key} to {queue}"
    if named != queue:
        return f"claim {use.name} of GPUs belongs to queue {named}, and the pod to queue {queue}"
    return ""
