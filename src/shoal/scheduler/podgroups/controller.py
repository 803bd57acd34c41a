"""Keeps each gang's status equal to what its pods hold and wait for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.api.core import NODES, PODS, Node, Pod
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES, PriorityClass
from shoal.api.scheduling_run_ai import POD_GROUPS, PodGroup, PodGroupResourcesStatus
from shoal.kube import Conflict, Controller, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.changes import field_changed
from shoal.kube.queue import RESYNC
from shoal.kube.store import key_of
from shoal.scheduler.gpu_memory import gpu_memory_of
from shoal.scheduler.pace import EVERY, RACE_LOST, WritePace
from shoal.scheduler.podgroups.ledger import GangUse, Ledger, concerns_a_gang, gang_of
from shoal.scheduler.podgroups.preemptibility import is_preemptible, priority_of
from shoal.scheduler.podgroups.settings import PodGroupSettings
from shoal.scheduler.resource_lists import rewritten


def add_pod_groups(manager: Manager, settings: PodGroupSettings = PodGroupSettings()) -> None:
    """Adds the controller."""
    groups = PodGroups(manager)
    watches = [
        Watch(resource=PODS, keys=_gang_key, when=concerns_a_gang),
        Watch(resource=NODES, keys=groups.on_node, when=field_changed(_memory)),
        Watch(resource=PRIORITY_CLASSES, keys=groups.by_priority, when=field_changed(_value)),
    ]
    manager.add(
        Controller(
            "podgroup",
            POD_GROUPS,
            groups.reconcile,
            when=field_changed(_what_counts_of_group),
            watches=watches,
            workers=settings.workers,
        )
    )


class PodGroups:
    """Writes what gangs hold and wait for."""

    def __init__(self, manager: Manager) -> None:
        cache = manager.cache
        self._groups = cache.informer(POD_GROUPS)
        self._classes = cache.informer(PRIORITY_CLASSES)
        nodes, pods = cache.informer(NODES), cache.informer(PODS)
        self._ledger = Ledger(nodes.get, pods.store.get)
        self._writer = manager.writer("kai-podgroup-controller")
        self._pace: WritePace[Key] = WritePace(EVERY * manager.debounce)
        # Before any controller hears of a pod: its figures are there when its gang is looked at.
        pods.subscribe(self._ledger.record)
        nodes.subscribe(self._ledger.record_node)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Makes one gang's status say what its pods hold."""
        group = self._groups.store.get(key)
        if group is None:
            self._pace.forget(key)
            return None
        before = group.status.resources_status
        wanted = resources_status(before, self._ledger.use_of(key), is_preemptible=self._is_preemptible(group))
        if wanted == before:
            return None
        if wait := self._pace.left(key):
            return Requeue(after=wait, priority=RESYNC)
        status = msgspec.structs.replace(group.status, resources_status=wanted)
        try:
            await self._writer.patch_status(POD_GROUPS, group, before=group.status, after=status)
        except NotFound:
            return None  # it was deleted: that event brings us back
        except Conflict:
            return Requeue(after=RACE_LOST)  # the scheduler was faster, and its event may have come already
        self._pace.wrote(key)
        return None

    def on_node(self, node: Node) -> Iterable[Key]:
        """The gangs whose figures depend on a node's GPUs."""
        return self._ledger.gangs_on(node.metadata.name)

    def by_priority(self, changed: PriorityClass) -> Iterable[Key]:
        """The gangs that a class may concern: all that do not say themselves whether they may be evicted."""
        return [key_of(group) for group in self._groups.items() if not group.spec.preemptibility]

    def _is_preemptible(self, group: PodGroup) -> bool:
        own = self._classes.get(group.spec.priority_class_name) if group.spec.priority_class_name else None
        return is_preemptible(group.spec, priority_of(own, self._classes.store))


def resources_status(before: PodGroupResourcesStatus, use: GangUse, *, is_preemptible: bool) -> PodGroupResourcesStatus:
    """What a gang's status should say of its resources."""
    kept = {} if is_preemptible else use.allocated
    return PodGroupResourcesStatus(
        requested=rewritten(before.requested, use.requested),
        allocated=rewritten(before.allocated, use.allocated),
        allocated_non_preemptible=rewritten(before.allocated_non_preemptible, kept),
    )


def _gang_key(pod: Pod) -> Iterable[Key]:
    gang = gang_of(pod)
    return () if gang is None else (gang,)


def _memory(node: Node) -> object:
    return gpu_memory_of(node.metadata.labels)


def _value(priority_class: PriorityClass) -> object:
    return (priority_class.value, priority_class.global_default)


def _what_counts_of_group(group: PodGroup) -> object:
    spec = group.spec
    return (spec.priority_class_name, spec.preemptibility, group.status.resources_status)
