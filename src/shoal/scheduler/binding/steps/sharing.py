"""Parts of GPUs: the ConfigMaps by which a container is told its devices and its part of them.

Admission has made the container read them, and noted their name on the pod. A pod that names none has nothing to be
filled: its container sees to its devices itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.api import kai_names as names
from shoal.api.core import CONFIG_MAPS, Node, Pod
from shoal.api.meta import PartialObject
from shoal.kube import AlreadyExists, Client, NotFound
from shoal.scheduler.binding.caches import Caches
from shoal.scheduler.binding.orders import Order, Refused, Wait, is_shared
from shoal.scheduler.binding.settings import BindingSettings
from shoal.scheduler.gpu_requests import InvalidGpuRequest, gpu_request_of

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
PORTION: Final = "GPU_PORTION"
OLD_PORTION: Final = "RUNAI_NUM_OF_GPUS"
MEMORY_LIMIT: Final = "CUDA_DEVICE_MEMORY_LIMIT"

_CDI_DEVICE: Final = "k8s.device-plugin.nvidia.com/gpu="
_CONFIG_MAPS = CONFIG_MAPS.view(PartialObject)


class Sharing:
    """Fills the ConfigMaps of pods that share devices."""

    def __init__(self, client: Client, caches: Caches, settings: BindingSettings) -> None:
        self._client = client
        self._caches = caches
        self._settings = settings

    async def prepare(self, order: Order) -> Wait | None:
        """Writes the devices and the portion; both maps belong to the pod and go with it."""
        maps = config_map_names(order.pod) if is_shared(order.request) else None
        if maps is None:
            return None
        node = self._caches.nodes.get(order.node)
        limit = memory_limit(order.pod, node) if self._settings.limits_memory else ""
        capabilities, direct = contents(order, uses_cdi=self._settings.uses_cdi, memory_limit=limit)
        for name, data in zip(maps, (capabilities, direct), strict=True):
            await self._write(order.pod, name, data)
        return None

    async def undo(self, order: Order) -> None:
        """Removes them: another node has other devices."""
        try:
            maps = config_map_names(order.pod) if is_shared(order.request) else None
        except Refused:
            return
        for name in maps or ():
            try:
                await self._client.delete(CONFIG_MAPS, name, order.pod.metadata.namespace)
            except NotFound:
                continue

    async def _write(self, pod: Pod, name: str, data: Mapping[str, str]) -> None:
        metadata = pod.metadata
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid}
        body: dict[str, Any] = {
            "metadata": {"name": name, "namespace": metadata.namespace, "ownerReferences": [owner]},
            "data": dict(data),
        }
        try:
            await self._client.create(_CONFIG_MAPS, body, metadata.namespace)
        except AlreadyExists:
            await self._client.merge_patch(_CONFIG_MAPS, name, body, metadata.namespace)


def config_map_names(pod: Pod) -> tuple[str, str] | None:
    """The two maps of the container that has the devices; None where the pod names none.

    The first is read variable by variable, the second as a whole.
    """
    prefix = pod.metadata.annotations.get(names.SHARED_GPU_CONFIG_MAP, "")
    if not prefix:
        return None
    name = f"{prefix}-{container_mark(pod)}"
    return name, f"{name}-evar"


def container_mark(pod: Pod) -> str:
    """Which container has the devices: its place, after an ``i`` among init containers; the first one by default."""
    wanted = pod.metadata.annotations.get(names.GPU_FRACTION_CONTAINER)
    if wanted is None:
        return "0"
    for prefix, containers in (("i", pod.spec.init_containers), ("", pod.spec.containers)):
        for place, container in enumerate(containers):
            if container.name == wanted:
                return f"{prefix}{place}"
    raise Refused(f"annotation {names.GPU_FRACTION_CONTAINER} names container {wanted}, which the pod does not have")


def contents(order: Order, *, uses_cdi: bool, memory_limit: str = "") -> tuple[dict[str, str], dict[str, str]]:
    """What the two maps say."""
    devices = ",".join(f"{_CDI_DEVICE}{device}" if uses_cdi else device for device in order.devices)
    given = order.request.spec.received_gpu
    portion = given.portion if given is not None else ""
    capabilities = {VISIBLE_DEVICES: devices, PORTION: portion, OLD_PORTION: portion}
    return capabilities, {VISIBLE_DEVICES: devices} | ({MEMORY_LIMIT: memory_limit} if memory_limit else {})


def memory_limit(pod: Pod, node: Node | None) -> str:
    """How much memory of each device a pod may use, as HAMi-core reads it; empty where a device's size is unknown."""
    try:
        asked = gpu_request_of(pod)
    except InvalidGpuRequest as error:
        raise Refused(str(error)) from error
    if asked.memory:
        return f"{asked.memory}m"
    label = node.metadata.labels.get(names.NODE_GPU_MEMORY, "") if node is not None else ""
    if not (label.isascii() and label.isdigit()) or not asked.portion:
        return ""
    return f"{int(round(asked.portion * 100) * int(label) / 100)}m"
