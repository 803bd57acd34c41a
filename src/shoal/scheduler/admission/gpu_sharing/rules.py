"""What is wrong with what a pod asks of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod
from shoal.kube.admission import FieldProblem, forbidden, invalid
from shoal.scheduler.admission.gpu_sharing.settings import GpuSharingSettings
from shoal.scheduler.gpu_requests import InvalidGpuRequest, gpu_request_of

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
_NO_DEVICES: Final = ("void", "none")
_PARTS: Final = (names.GPU_FRACTION, names.GPU_MEMORY)
ANNOTATIONS: Final = (*_PARTS, names.GPU_FRACTION_DEVICES, names.GPU_FRACTION_CONTAINER, names.MPS)
"""By which a pod asks for parts of GPUs: without them there is nothing to judge."""


def request_problems(pod: Pod, old: Pod | None, settings: GpuSharingSettings) -> Iterator[FieldProblem]:
    """What is wrong with the GPUs that a pod asks for; of one that was there before, only where it asks for others."""
    if old is not None and _asked(old) == _asked(pod):
        return
    shared = [name for name in _PARTS if name in pod.metadata.annotations]
    if shared and not settings.is_enabled:
        yield forbidden(f"metadata.annotations[{shared[0]}]", "GPUs are not shared in this cluster: ask for whole ones")
        return
    try:
        gpu_request_of(pod)
    except InvalidGpuRequest as error:
        yield invalid(error.field, error.value, error.problem)
        return
    wanted = pod.metadata.annotations.get(names.GPU_FRACTION_CONTAINER)
    known = [container.name for container in (*pod.spec.init_containers, *pod.spec.containers)]
    if shared and wanted is not None and wanted not in known:
        problem = f"must be a container of the pod: {', '.join(known)}"
        yield invalid(f"metadata.annotations[{names.GPU_FRACTION_CONTAINER}]", wanted, problem)


def device_problems(pod: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Where a pod chooses its devices by itself, instead of asking for some: it could take those of others.

    What admission itself has written is no choice of the pod's: it leads to the map that the binder fills.
    """
    own = (pod.get("metadata", {}).get("annotations") or {}).get(names.SHARED_GPU_CONFIG_MAP, "")
    for field in ("initContainers", "containers"):
        for place, container in enumerate(pod.get("spec", {}).get(field) or ()):
            for number, variable in enumerate(container.get("env") or ()):
                if variable.get("name") != VISIBLE_DEVICES or _is_harmless(variable, own):
                    continue
                yield forbidden(
                    f"spec.{field}[{place}].env[{number}]",
                    f"devices are given, not chosen: set it to {' or '.join(_NO_DEVICES)}, or leave it out",
                )


def _is_harmless(variable: Mapping[str, Any], own: str) -> bool:
    if not variable.get("valueFrom"):
        return variable.get("value", "") in _NO_DEVICES
    source = variable["valueFrom"].get("configMapKeyRef") or {}
    return bool(own) and source.get("key") == VISIBLE_DEVICES and str(source.get("name", "")).startswith(f"{own}-")


def _asked(pod: Pod) -> list[str | None]:
    return [pod.metadata.annotations.get(name) for name in ANNOTATIONS]
