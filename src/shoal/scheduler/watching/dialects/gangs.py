"""Keeps the model told of the gangs of other dialects.

A change only says which names to look at again. When the model is about to catch up, all of them are looked at once:
where their pods are now, and what each of their gangs is. What came out as before is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.core.pods import Pod, is_finished
from shoal.api.kai_scheduler import TOPOLOGIES, Topology
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import QUEUES, Queue
from shoal.kube import Change, Manager
from shoal.scheduler.watching.dialects.plans import Facts, Plan
from shoal.scheduler.watching.dialects.sources import Coscheduling, Source, Volcano, Workloads, object_of
from shoal.scheduler.watching.groups import Dialect, GangKey, Seat, gang_of
from shoal.scheduler.watching.mirror import Key, Mirror

log = structlog.get_logger("shoal.scheduler")

_NAME: Final = "dialects"
_OURS: Final = frozenset({Dialect.WORKLOAD, Dialect.COSCHEDULING, Dialect.VOLCANO})


def add_dialects(manager: Manager, mirror: Mirror, wake: Callable[[], None] = lambda: None) -> None:
    """Watches what other schedulers' users say of gangs. ``wake`` is called when there is something to catch up with.

    A kind that the cluster does not serve is waited for, as everywhere: until then it has no objects, and pods that
    name one wait for it.
    """
    Gangs(manager, mirror, wake)


class Gangs:
    """Knows which pods name what, where they are and what the gangs are, as it was last told."""

    def __init__(self, manager: Manager, mirror: Mirror, wake: Callable[[], None]) -> None:
        self._mirror = mirror
        self._wake = wake
        self._pods: dict[GangKey, dict[Key, Pod]] = {}
        self._named: dict[GangKey, set[GangKey]] = {}
        """What pods name, by the object that it is about."""
        self._seats: dict[GangKey, Seat] = {}
        self._members: dict[GangKey, set[GangKey]] = {}
        """By gang, the names of those that are in it."""
        self._plans: dict[GangKey, Plan] = {}
        self._to_look_at: set[GangKey] = set()
        cache = manager.cache
        self._classes = cache.informer(PRIORITY_CLASSES)
        self._queues = cache.informer(QUEUES)
        self._topologies = cache.informer(TOPOLOGIES)
        self._facts = Facts(
            priority=self._priority,
            has_queue=lambda name: self._queues.get(name) is not None,
            level=self._level,
            default_queue=mirror.settings.default_queue,
            queue_key=mirror.settings.queue_key,
        )
        self._sources: dict[Dialect, Source] = {
            Dialect.WORKLOAD: Workloads(cache, self._look_at),
            Dialect.COSCHEDULING: Coscheduling(cache, self._look_at),
            Dialect.VOLCANO: Volcano(cache, self._look_at),
        }
        self._classes.subscribe(lambda _: self._look_at_all())
        self._queues.subscribe(self._queue)
        self._topologies.subscribe(self._topology)
        cache.informer(PODS).subscribe(self._pod)

    def tell(self) -> None:
        """Notes what is not as it was last told."""
        keys, self._to_look_at = self._to_look_at, set()
        gangs: dict[GangKey, None] = {}
        for key in keys:
            for named in (*self._named.get(key, ()), key):
                gangs.update(dict.fromkeys(self._seat(named)))
        for gang in gangs:
            self._plan(gang)

    def _seat(self, named: GangKey) -> list[GangKey]:
        """Says where the pods are that name this; gives the gangs that this concerns."""
        pods = self._pods_of(named)
        before = self._seats.get(named)
        after: Seat | None = self._tried(named, lambda: self._sources[named.dialect].seat(named, pods))
        concerned = [seat.gang for seat in (before, after) if seat is not None]
        if before == after:
            return concerned
        noted = self._mirror.noted
        noted.seats[named] = after
        for pod in pods:
            noted.pods.setdefault((pod.metadata.namespace, pod.metadata.name), pod)
        if before is not None:
            del self._seats[named]
            self._members[before.gang].discard(named)
        if after is not None:
            self._seats[named] = after
            self._members.setdefault(after.gang, set()).add(named)
        return concerned

    def _plan(self, gang: GangKey) -> None:
        """Says what a gang is."""
        members = sorted(self._members.get(gang, ()), key=lambda named: named.name)
        before = self._plans.pop(gang, None)
        after: Plan | None = None
        if members:
            source = self._sources[gang.dialect]
            after = self._tried(gang, lambda: source.plan(gang, members, self._pods_of, self._facts))
        else:
            self._members.pop(gang, None)
        if after is not None:
            self._plans[gang] = after
        if before == after:
            return
        noted = self._mirror.noted
        noted.gangs[gang] = None if after is None else after.job
        for topology in after.topologies() if after is not None else ():
            noted.topologies[topology.name] = topology

    def _tried(self, key: GangKey, rule: Callable[[], Any]) -> Any:
        """What a rule says; one that fails on what somebody wrote must not keep the others from being told."""
        try:
            return rule()
        except Exception:
            log.exception("gang not understood", dialect=key.dialect.value, gang=f"{key.namespace}/{key.name}")
            return None

    def _pods_of(self, named: GangKey) -> Sequence[Pod]:
        return list(self._pods.get(named, {}).values())

    # What changes

    def _look_at(self, key: GangKey) -> None:
        self._to_look_at.add(key)
        self._mirror.noted.tellers[_NAME] = self.tell
        self._wake()

    def _look_at_all(self) -> None:
        for named in list(self._seats):
            self._look_at(named)

    def _pod(self, change: Change[Pod]) -> None:
        before, after = self._name(change.before), self._name(change.after)
        metadata = change.latest.metadata
        key = metadata.namespace, metadata.name
        if before is not None and before != after:
            self._forget(before, key)
        if after is None or change.after is None:
            return
        self._pods.setdefault(after, {})[key] = change.after
        self._named.setdefault(object_of(after), set()).add(after)
        if before != after or change.before is None or not _says_the_same(change.before, change.after):
            self._look_at(after)

    def _forget(self, named: GangKey, key: Key) -> None:
        pods = self._pods.get(named, {})
        pods.pop(key, None)
        if not pods:
            self._pods.pop(named, None)
            about = object_of(named)
            self._named[about].discard(named)
            if not self._named[about]:
                del self._named[about]
        self._look_at(named)

    def _name(self, pod: Pod | None) -> GangKey | None:
        """What a pod of ours names, in one of these dialects."""
        if pod is None or pod.spec.scheduler_name not in self._mirror.settings.scheduler_names:
            return None
        named = gang_of(pod)
        return named if named.dialect in _OURS else None

    def _queue(self, change: Change[Queue]) -> None:
        if change.before is None or change.after is None:
            self._look_at_all()

    def _topology(self, change: Change[Topology]) -> None:
        before, after = change.before, change.after
        if before is None or after is None or before.spec != after.spec:
            self._look_at_all()

    # What is known

    def _priority(self, name: str) -> int:
        """The number behind a PriorityClass; where there is none, that of the cluster's own default."""
        found = self._classes.get(name) if name else None
        if found is not None:
            return found.value
        return next((one.value for one in self._classes.items() if one.global_default), names.DEFAULT_PRIORITY)

    def _level(self, name: str) -> tuple[str, str] | None:
        for topology in sorted(self._topologies.items(), key=lambda one: one.metadata.name):
            for level in topology.spec.levels:
                if name in (level.alias, level.node_label):
                    return topology.metadata.name, level.node_label
        return None


def _says_the_same(before: Pod, after: Pod) -> bool:
    """Whether nothing that a gang is made of is another: a pod's place and how it fares are not among it."""
    return (
        before.metadata.labels == after.metadata.labels
        and before.metadata.annotations == after.metadata.annotations
        and before.spec.priority == after.spec.priority
        and is_finished(before) == is_finished(after)
    )
