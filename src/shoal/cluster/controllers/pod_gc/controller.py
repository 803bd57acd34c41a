"""Watches for pods that nobody else will remove.

Three queues: pods that cannot end, by pod; orphans, by the name of the node that is missing; and the pods that have
ended, as one. Nothing is looked through at intervals: a change leads to a key, and waiting is a timer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from shoal.api.core import NODES, PODS, Node, Pod, PodCondition
from shoal.api.meta import PartialObject, now
from shoal.cluster.controllers.pod_conditions import disruption_target
from shoal.cluster.controllers.pod_gc.candidates import cannot_end, has_ended, is_out_of_service, is_removed, surplus
from shoal.cluster.controllers.pod_gc.removal import remove, remove_all
from shoal.cluster.indexes import BY_NODE, all_pods
from shoal.kube import Change, Controller, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.changes import field_changed
from shoal.kube.store import key_of

ENDED = Key("", "ended")
"""All pods that have ended are one piece of work."""


def add_pod_gc(
    manager: Manager, *, threshold: int = 12_500, quarantine: float = 40.0, sweep_every: float = 20.0
) -> None:
    """Removes pods that nobody else will.

    ``threshold`` pods that have ended are kept, 0 keeps all; those beyond are removed once in ``sweep_every`` seconds.
    A node that is missing for ``quarantine`` seconds, and then still is when the server is asked, is gone.
    """
    UnendingPods(manager)
    Orphans(manager, quarantine=quarantine)
    if threshold > 0:
        EndedPods(manager, threshold=threshold, sweep_every=sweep_every)


class UnendingPods:
    """Removes pods that are to go and are on no node, or on one that is out of service."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._pods = all_pods(manager)
        self._nodes = manager.cache.informer(NODES)
        manager.add(
            Controller(
                "pod-gc-unending",
                PODS,
                self.reconcile,
                when=self._concerns_us,
                watches=[Watch(resource=NODES, keys=self._unending_on, when=field_changed(is_out_of_service))],
            )
        )

    async def reconcile(self, key: Key) -> None:
        """Removes one pod if nobody else will."""
        pod = self._pods.store.get(key)
        if pod is not None and cannot_end(pod, self._node_of(pod)):
            await remove(self._client, pod)

    def _concerns_us(self, change: Change[Pod]) -> bool:
        pod = change.after
        return pod is not None and cannot_end(pod, self._node_of(pod)) and not is_removed(pod)

    def _unending_on(self, node: Node) -> list[Key]:
        if not is_out_of_service(node):
            return []
        return [key_of(pod) for pod in self._pods.find(BY_NODE, node.metadata.name) if pod.metadata.is_deleting]

    def _node_of(self, pod: Pod) -> Node | None:
        return self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None


class Orphans:
    """Removes the pods of nodes that are gone."""

    def __init__(self, manager: Manager, *, quarantine: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = manager.client
        self._pods = all_pods(manager)
        self._nodes = manager.cache.informer(NODES)
        self._quarantine = quarantine
        self._clock = clock
        self._missing_since: dict[str, float] = {}
        manager.add(
            Controller(
                "pod-gc-orphans",
                NODES,
                self.reconcile,
                when=lambda change: change.after is None,
                watches=[Watch(resource=PODS, keys=self._missing_node_of, when=_came_to_a_node)],
            )
        )

    async def reconcile(self, key: Key) -> Requeue | None:
        """Gives a missing node time to show up, makes sure that it is gone, and removes what was on it."""
        pods = [pod for pod in self._pods.find(BY_NODE, key.name) if not is_removed(pod)]
        if not pods or self._nodes.get(key.name) is not None:
            self._missing_since.pop(key.name, None)
            return None
        since = self._missing_since.setdefault(key.name, self._clock())
        if (left := since + self._quarantine - self._clock()) > 0:
            return Requeue(after=left)
        if await self._exists(key.name):
            self._missing_since[key.name] = self._clock()
            return Requeue(after=self._quarantine)
        await remove_all(self._client, pods, why=_node_is_gone)
        self._missing_since.pop(key.name, None)
        return None

    async def _exists(self, name: str) -> bool:
        try:
            await self._client.get(NODES.view(PartialObject), name)
        except NotFound:
            return False
        return True

    def _missing_node_of(self, pod: Pod) -> list[Key]:
        name = pod.spec.node_name
        return [Key("", name)] if name and self._nodes.get(name) is None else []


class EndedPods:
    """Removes the oldest of the pods that have ended, as far as there are more than the threshold."""

    def __init__(
        self, manager: Manager, *, threshold: int, sweep_every: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = manager.client
        self._pods = all_pods(manager)
        self._threshold = threshold
        self._sweep_every = sweep_every
        self._clock = clock
        self._swept = float("-inf")
        self._ended: set[Key] = set()
        self._pods.subscribe(self._count)
        manager.add(
            Controller(
                "pod-gc-ended",
                PODS,
                self.reconcile,
                when=lambda change: False,
                watches=[Watch(resource=PODS, keys=self._work, when=field_changed(has_ended))],
            )
        )

    async def reconcile(self, key: Key) -> Requeue | None:
        """Removes what is too many, unless that was done a moment ago."""
        if len(self._ended) <= self._threshold:
            return None
        if (left := self._swept + self._sweep_every - self._clock()) > 0:
            return Requeue(after=left)
        self._swept = self._clock()
        ended = [pod for each in self._ended if (pod := self._pods.store.get(each)) is not None]
        await remove_all(self._client, surplus(ended, len(ended) - self._threshold))
        return None

    def _count(self, change: Change[Pod]) -> None:
        key = key_of(change.latest)
        if change.after is not None and has_ended(change.after):
            self._ended.add(key)
        else:
            self._ended.discard(key)

    def _work(self, pod: Pod) -> Iterable[Key]:
        return (ENDED,) if len(self._ended) > self._threshold else ()


def _node_is_gone(pod: Pod) -> PodCondition | None:
    return disruption_target(pod, reason="DeletionByPodGC", message="PodGC: node no longer exists", now=now())


def _came_to_a_node(change: Change[Pod]) -> bool:
    before, after = change.before, change.after
    return after is not None and (before is None or before.spec.node_name != after.spec.node_name)
