"""What the binder sees of the cluster; nothing of it is asked of the server."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from shoal.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    is_finished,
)
from shoal.api.resource_k8s_io import (
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    DeviceClaim,
    DeviceClass,
    ResourceSlice,
)
from shoal.api.scheduling_run_ai import BIND_REQUESTS, BindRequest
from shoal.api.storage import STORAGE_CLASSES, StorageClass
from shoal.kube import Informer, Manager
from shoal.scheduler.binding import orders
from shoal.scheduler.binding.groups import groups_of
from shoal.scheduler.storage import claim_uses, class_of

BY_NODE: Final = "binding node"
BY_GROUP: Final = "binding GPU group"
BY_CLAIM: Final = "binding claim"
BY_CLASS: Final = "binding class"


def pods_by_group(pod: Pod) -> Iterable[Hashable]:
    """Finds pods by the shared devices they are on, reservations among them."""
    return groups_of(pod.metadata.labels)


def pods_by_claim(pod: Pod) -> Iterable[Hashable]:
    """Finds pods by the claims that they use: namespace and name."""
    if not pod.spec.volumes:
        return ()
    return [(pod.metadata.namespace, use.name) for use in claim_uses(pod)]


def volumes_by_class(volume: PersistentVolume) -> Iterable[Hashable]:
    """Finds volumes by their storage class."""
    return (class_of(volume),)


class Caches:
    """The informers that the binder and the keeper of reservations share."""

    def __init__(self, manager: Manager) -> None:
        cache = manager.cache
        self.requests: Informer[BindRequest] = cache.informer(
            BIND_REQUESTS, indexes={BY_NODE: orders.by_node, BY_GROUP: orders.by_group}
        )
        self.pods: Informer[Pod] = cache.informer(PODS, indexes={BY_GROUP: pods_by_group, BY_CLAIM: pods_by_claim})
        self.nodes: Informer[Node] = cache.informer(NODES)
        self.claims: Informer[PersistentVolumeClaim] = cache.informer(PERSISTENT_VOLUME_CLAIMS)
        self.volumes: Informer[PersistentVolume] = cache.informer(
            PERSISTENT_VOLUMES, indexes={BY_CLASS: volumes_by_class}
        )
        self.storage_classes: Informer[StorageClass] = cache.informer(STORAGE_CLASSES)
        self.device_claims: Informer[DeviceClaim] = cache.informer(DEVICE_CLAIMS)
        self.device_classes: Informer[DeviceClass] = cache.informer(DEVICE_CLASSES)
        self.slices: Informer[ResourceSlice] = cache.informer(RESOURCE_SLICES)

    def open_requests(self, node: str) -> list[BindRequest]:
        """What is still to be done on a node, oldest first."""
        found = self.requests.find(BY_NODE, node)
        return sorted(found, key=_age) if len(found) > 1 else found

    def pod_of(self, request: BindRequest) -> Pod | None:
        """The pod that a request names."""
        return self.pods.get(request.spec.pod_name, request.metadata.namespace)

    def reservations(self, namespace: str, group: str) -> list[Pod]:
        """The pods that hold a shared device."""
        return [pod for pod in self.pods.find(BY_GROUP, group) if pod.metadata.namespace == namespace]

    def sharers(self, namespace: str, group: str) -> list[Pod]:
        """The pods that are on a shared device and have not finished; ``namespace`` is that of the reservations."""
        found = self.pods.find(BY_GROUP, group)
        return [pod for pod in found if pod.metadata.namespace != namespace and not is_finished(pod)]

    def holders(self, group: str) -> list[BindRequest]:
        """The requests that keep a shared device for a pod that is there and has not finished."""
        return [request for request in self.requests.find(BY_GROUP, group) if self._has_live_pod(request)]

    def _has_live_pod(self, request: BindRequest) -> bool:
        pod = self.pod_of(request)
        return pod is not None and not is_finished(pod) and orders.is_for(request, pod)


def _age(request: BindRequest) -> tuple[float, str, str]:
    metadata = request.metadata
    made = metadata.creation_timestamp
    return (made.timestamp() if made is not None else 0.0, metadata.namespace, metadata.name)
