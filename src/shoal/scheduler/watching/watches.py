"""What the scheduler watches, and how each kind gets into the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from shoal.api import kai_names as names
from shoal.api.core import CONFIG_MAPS, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from shoal.api.core.config import Existence
from shoal.api.core.nodes import Node
from shoal.api.core.pods import Pod
from shoal.api.kai_scheduler import TOPOLOGIES
from shoal.api.kai_scheduler import Topology as WireTopology
from shoal.api.meta import HasMetadata, Resource
from shoal.api.resource_k8s_io import DEVICE_CLAIMS, DEVICE_CLASSES, RESOURCE_SLICES
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import BIND_REQUESTS, POD_GROUPS, QUEUES, BindRequest, PodGroup, Queue
from shoal.api.storage import CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, STORAGE_CLASSES
from shoal.kube import Change, Manager
from shoal.scheduler.numa import NODE_RESOURCE_TOPOLOGIES, NodeResourceTopology
from shoal.scheduler.numa import topology_of as zones_of_node
from shoal.scheduler.watching.groups import Dialect, GangKey
from shoal.scheduler.watching.mirror import Mirror
from shoal.scheduler.watching.needs import Kind
from shoal.scheduler.watching.reading import job_of, queue_of, topology_of

NEEDED: Final[Mapping[Kind, Resource[Any]]] = {
    Kind.CONFIG_MAP: CONFIG_MAPS.view(Existence),
    Kind.CLAIM: PERSISTENT_VOLUME_CLAIMS,
    Kind.VOLUME: PERSISTENT_VOLUMES,
    Kind.STORAGE_CLASS: STORAGE_CLASSES,
    Kind.DRIVER: CSI_DRIVERS,
    Kind.NODE_DRIVERS: CSI_NODES,
    Kind.CAPACITY: CSI_STORAGE_CAPACITIES,
    Kind.DEVICE_CLAIM: DEVICE_CLAIMS,
    Kind.DEVICE_CLASS: DEVICE_CLASSES,
    Kind.SLICE: RESOURCE_SLICES,
    Kind.NAMESPACE: NAMESPACES,
}
"""What pods need of other objects, and where it is read."""


class Watches:
    """Tells the model of every change, and the cycles that there is one."""

    def __init__(self, manager: Manager, mirror: Mirror, wake: Callable[[], None]) -> None:
        self._mirror = mirror
        self._wake = wake
        cache = manager.cache
        self._classes = cache.informer(PRIORITY_CLASSES)
        self._topologies = cache.informer(TOPOLOGIES)
        self._groups = cache.informer(POD_GROUPS)
        cache.informer(NODES).subscribe(self._node)
        cache.informer(QUEUES).subscribe(self._queue)
        self._groups.subscribe(self._group)
        self._topologies.subscribe(self._topology)
        self._classes.subscribe(lambda _: self._all_groups())
        cache.informer(BIND_REQUESTS).subscribe(self._request)
        for kind, resource in NEEDED.items():
            cache.informer(resource).subscribe(partial(self._object, kind))
        if mirror.settings.reads_zones:
            cache.informer(NODE_RESOURCE_TOPOLOGIES).subscribe(self._zones)
        cache.informer(PODS).subscribe(self._pod)

    def _node(self, change: Change[Node]) -> None:
        self._mirror.noted.nodes[change.latest.metadata.name] = change.after
        self._wake()

    def _queue(self, change: Change[Queue]) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and before.spec == after.spec:
            return
        self._mirror.noted.queues[change.latest.metadata.name] = None if after is None else queue_of(after)
        self._wake()

    def _group(self, change: Change[PodGroup]) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and _says_the_same(before, after):
            return
        self._note(change.latest, is_there=after is not None)
        self._wake()

    def _note(self, group: PodGroup, *, is_there: bool) -> None:
        key = GangKey(Dialect.KAI, group.metadata.namespace, group.metadata.name)
        made = partial(job_of, group, self._priority, self._levels()) if is_there else None
        self._mirror.noted.gangs[key] = made

    def _all_groups(self) -> None:
        for group in self._groups.items():
            self._note(group, is_there=True)
        self._wake()

    def _topology(self, change: Change[WireTopology]) -> None:
        after = change.after
        self._mirror.noted.topologies[change.latest.metadata.name] = None if after is None else topology_of(after)
        self._all_groups()

    def _request(self, change: Change[BindRequest]) -> None:
        metadata = change.latest.metadata
        self._mirror.noted.requests[metadata.namespace, metadata.name] = change.after
        self._wake()

    def _pod(self, change: Change[Pod]) -> None:
        metadata = change.latest.metadata
        self._mirror.noted.pods[metadata.namespace, metadata.name] = change.after
        self._wake()

    def _zones(self, change: Change[NodeResourceTopology]) -> None:
        before, after = (None if one is None else zones_of_node(one) for one in (change.before, change.after))
        if before != after:
            self._mirror.noted.zones[change.latest.metadata.name] = after
            self._wake()

    def _object(self, kind: Kind, change: Change[HasMetadata]) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and _means_the_same(kind, before, after):
            return
        metadata = change.latest.metadata
        key = kind, metadata.namespace, metadata.name
        self._mirror.noted.objects[key] = after
        if self._mirror.is_awaited(key, before, after):
            self._wake()

    def _priority(self, name: str) -> int:
        """The number behind a PriorityClass; where there is none, that of the cluster's own default."""
        found = self._classes.get(name) if name else None
        if found is not None:
            return found.value
        return next((one.value for one in self._classes.items() if one.global_default), names.DEFAULT_PRIORITY)

    def _levels(self) -> dict[str, dict[str, str]]:
        return {
            topology.metadata.name: {
                name: level.node_label
                for level in topology.spec.levels
                for name in (level.alias, level.node_label)
                if name
            }
            for topology in self._topologies.items()
        }


def _says_the_same(before: PodGroup, after: PodGroup) -> bool:
    return (
        before.metadata.uid == after.metadata.uid
        and before.spec == after.spec
        and before.metadata.annotations == after.metadata.annotations
        and before.metadata.labels == after.metadata.labels
    )


def _means_the_same(kind: Kind, before: HasMetadata, after: HasMetadata) -> bool:
    """Whether a change is none to those who need the object: what is in a ConfigMap is not theirs to know."""
    if before.metadata.uid != after.metadata.uid:
        return False
    if kind is Kind.NAMESPACE:
        return bool(before.metadata.labels == after.metadata.labels)
    return kind is Kind.CONFIG_MAP
