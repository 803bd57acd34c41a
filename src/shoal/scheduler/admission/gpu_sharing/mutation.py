"""Prepares a pod that shares a GPU: its container reads devices and portion from maps that the binder fills later.

Two ConfigMaps, named after the pod: one that is read variable by variable, and one that is read as a whole
(``…-evar``). The first is a volume of the pod as well, so that no node starts the container before it is there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shoal.api import kai_names as names
from shoal.scheduler.admission.gpu_sharing.rules import VISIBLE_DEVICES
from shoal.scheduler.admission.gpu_sharing.settings import GpuSharingSettings

Content = dict[str, Any]

VARIABLES: Final = (VISIBLE_DEVICES, "RUNAI_NUM_OF_GPUS", "GPU_PORTION")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Those of Kubernetes' own random names: no vowels, no words."""
_RANDOM: Final = 7
_SHARED: Final = "shared-gpu"
_LONGEST_VOLUME: Final = 63
_BESIDE_BASE: Final = len(f"-{'x' * _RANDOM}-{_SHARED}-i99-evar-vol")


def random_text() -> str:
    """What keeps the maps of two pods of one owner apart."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_RANDOM))


def prepared(pod: Content, settings: GpuSharingSettings, random: Callable[[], str] = random_text) -> Content:
    """A pod that shares a GPU, made to read what it is given; any other pod as it was.

    A pod that was prepared before, as where webhooks are called twice, is not changed again.
    """
    annotations = pod.get("metadata", {}).get("annotations") or {}
    if names.GPU_FRACTION not in annotations and names.GPU_MEMORY not in annotations:
        return pod
    place = _place(pod, annotations.get(names.GPU_FRACTION_CONTAINER))
    if place is None:
        return pod  # which validation refuses
    field, number = place
    prefix = annotations.get(names.SHARED_GPU_CONFIG_MAP) or f"{_base(pod)}-{random()}-{_SHARED}"
    config_map = f"{prefix}-{'i' if field == 'initContainers' else ''}{number}"
    spec = pod["spec"]
    containers = [*spec[field]]
    containers[number] = _reading(containers[number], config_map)
    spec = {**spec, field: containers, "volumes": _with_volume(spec.get("volumes") or (), config_map)}
    if settings.runtime_class and not spec.get("runtimeClassName"):
        spec["runtimeClassName"] = settings.runtime_class
    metadata = {**pod["metadata"], "annotations": {**annotations, names.SHARED_GPU_CONFIG_MAP: prefix}}
    return {**pod, "metadata": metadata, "spec": spec}


def _place(pod: Content, wanted: str | None) -> tuple[str, int] | None:
    """The container that gets the devices: the one that is named, or the first."""
    spec = pod.get("spec") or {}
    if wanted is None:
        return ("containers", 0) if spec.get("containers") else None
    for field in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(field) or ()):
            if container.get("name") == wanted:
                return field, number
    return None


def _base(pod: Content) -> str:
    """What the maps are named after: the pod's owner, or the pod. It is part of a volume's name, which has no dots."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or [{}]
    name = owners[0].get("name") or metadata.get("name") or metadata.get("generateName") or "pod"
    return str(name).replace(".", "-")[: _LONGEST_VOLUME - _BESIDE_BASE].strip("-") or "pod"


def _reading(container: Content, config_map: str) -> Content:
    ours = [{"name": name, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": name}}} for name in VARIABLES]
    others = [variable for variable in container.get("env") or () if variable.get("name") not in VARIABLES]
    whole = {"configMapRef": {"name": f"{config_map}-evar", "optional": False}}
    sources = [*(container.get("envFrom") or ())]
    if not any((source.get("configMapRef") or {}).get("name") == f"{config_map}-evar" for source in sources):
        sources.append(whole)
    return {**container, "env": [*others, *ours], "envFrom": sources}


def _with_volume(volumes: Sequence[Mapping[str, Any]], config_map: str) -> list[Mapping[str, Any]]:
    name = f"{config_map}-vol"
    return [
        *(volume for volume in volumes if volume.get("name") != name),
        {"name": name, "configMap": {"name": config_map}},
    ]
