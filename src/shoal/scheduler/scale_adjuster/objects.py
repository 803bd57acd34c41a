"""The pod that asks for whole GPUs in the stead of one that wants parts."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod
from shoal.api.meta.quantity import ZERO_QUANTITY, parse_quantity
from shoal.scheduler.scale_adjuster.scaling import devices_of
from shoal.scheduler.scale_adjuster.settings import ScaleAdjusterSettings

POD_NAME: Final = "shared-gpu-pod-name"
POD_NAMESPACE: Final = "shared-gpu-pod-namespace"
POD_UID: Final = "shoal.dev/shared-gpu-pod-uid"
CONTAINER: Final = "scaling-pod"

_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63


def scaling_pod(waiting: Pod, settings: ScaleAdjusterSettings) -> dict[str, Any]:
    """As many whole GPUs as the waiting pod wants parts of, on the same nodes, with the same room beside them."""
    metadata, spec = waiting.metadata, waiting.spec
    gpus = {names.NVIDIA_GPU: str(devices_of(waiting))}
    container = {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {**_room(waiting), **gpus}, "limits": gpus},
    }
    return {
        "metadata": {
            "name": _cut(f"{metadata.namespace}-{metadata.name}", _LONGEST_NAME),
            "namespace": settings.namespace,
            "labels": {
                "app": settings.app_label,
                POD_NAME: _cut(metadata.name, _LONGEST_LABEL),
                POD_NAMESPACE: metadata.namespace,
            },
            "annotations": {POD_NAME: metadata.name, POD_UID: metadata.uid},
        },
        "spec": {
            **({"affinity": spec.affinity} if spec.affinity else {}),
            "tolerations": [msgspec.to_builtins(toleration) for toleration in spec.tolerations],
            "nodeSelector": spec.node_selector,
            "restartPolicy": "OnFailure",
            "serviceAccountName": settings.account,
            "containers": [container],
        },
    }


def asks_for(pod: Pod) -> tuple[str, str]:
    """The namespace and the name of the pod in whose stead this one asks."""
    labels = pod.metadata.labels
    return labels.get(POD_NAMESPACE, ""), pod.metadata.annotations.get(POD_NAME) or labels.get(POD_NAME, "")


def is_for(pod: Pod, waiting: Pod) -> bool:
    """Whether this pod asks for that very one, and not for an earlier one of the same name."""
    return pod.metadata.annotations.get(POD_UID, waiting.metadata.uid) == waiting.metadata.uid


def _room(pod: Pod) -> dict[str, str]:
    """The processors and the memory that the pod's containers ask for together."""
    room = {}
    for resource in ("cpu", "memory"):
        asked = [container.resources.requests.get(resource, 0) for container in pod.spec.containers]
        total = sum((parse_quantity(amount) for amount in asked), start=ZERO_QUANTITY)
        if not total.is_zero:
            room[resource] = str(total)
    return room


def _cut(name: str, longest: int) -> str:
    """A name that fits; one that was cut differs from others that begin alike."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: longest - 9].rstrip('-.')}-{digest}"
