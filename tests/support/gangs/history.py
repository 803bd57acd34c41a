"""Everything that became of the gangs in a namespace, change by change, and what must never have been so.

Objects of several kinds are watched side by side and put in one order by their resource versions, which count the
writes of the whole cluster. ``violations`` goes through them from the first to the last.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from shoal.api.core import PODS, Pod, is_active
from shoal.api.grove import POD_CLIQUES, SCALING_GROUPS, PodClique, PodCliqueScalingGroup, names
from shoal.api.meta import Resource, is_true
from shoal.api.scheduler_grove_io import INITIALIZED, POD_GANGS, PodGang
from shoal.kube import Client, EventType

A_MOMENT_AGO = 50
"""So many writes back may lie what a controller has acted on: it hears of others' writes a moment later."""

Watched = Pod | PodClique | PodCliqueScalingGroup | PodGang
KINDS: tuple[Resource[Any], ...] = (PODS, POD_CLIQUES, SCALING_GROUPS, POD_GANGS)


@dataclass(frozen=True)
class Moment:
    """One change."""

    version: int
    type: EventType
    object: Watched


@dataclass
class History:
    """The changes of a namespace since recording began."""

    moments: list[Moment] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)
    """The sizes that somebody other than our controllers gave to cliques and scaling groups, by name."""

    def ordered(self) -> list[Moment]:
        """All changes, in the order in which they were written."""
        return sorted(self.moments, key=lambda moment: moment.version)

    def first(self, holds: Callable[[Pod], bool]) -> dict[str, int]:
        """When each pod, by uid, was so for the first time."""
        found: dict[str, int] = {}
        for moment in self.ordered():
            if isinstance(moment.object, Pod) and moment.type is not EventType.DELETED and holds(moment.object):
                found.setdefault(moment.object.metadata.uid, moment.version)
        return found

    def shows(self, pods: Iterable[Pod]) -> bool:
        """Whether pods that were read are recorded as they were then."""
        versions = {moment.version for moment in self.moments if isinstance(moment.object, Pod)}
        return all(int(pod.metadata.resource_version) in versions for pod in pods)

    def pods(self) -> dict[str, Pod]:
        """Every pod that ever was, by uid, as it was last."""
        return {
            moment.object.metadata.uid: moment.object for moment in self.ordered() if isinstance(moment.object, Pod)
        }

    def violations(self) -> list[str]:
        """What must not have happened and has."""
        return list(_Replay(self.asked).run(self.ordered()))


@asynccontextmanager
async def recording(client: Client, namespace: str) -> AsyncIterator[History]:
    """Records what becomes of a namespace, for the length of a block."""
    history = History()
    started = [asyncio.Event() for _ in KINDS]

    async def follow(resource: Resource[Any], is_started: asyncio.Event) -> None:
        async for event in client.watch(resource, namespace, initial_events=True):
            if event.ends_initial_events:
                is_started.set()
            if event.object is not None and event.type is not EventType.BOOKMARK:
                history.moments.append(Moment(int(event.resource_version), event.type, event.object))

    tasks = [asyncio.create_task(follow(*pair)) for pair in zip(KINDS, started, strict=True)]
    try:
        await asyncio.gather(*(is_started.wait() for is_started in started))
        yield history
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class _Size:
    """How large a clique may be: as large as it is asked to be, or was until its controller has noted a change."""

    ceiling: int
    floor: int
    """The smallest that it ever was asked to be."""


class _Replay:
    """The state of a namespace while its history is gone through again."""

    def __init__(self, asked: list[tuple[str, int]]) -> None:
        self._asked = set(asked)
        self._version = 0
        self._pods: dict[str, Pod] = {}
        self._cliques: dict[str, PodClique] = {}
        self._groups: dict[str, PodCliqueScalingGroup] = {}
        self._gangs: dict[str, PodGang] = {}
        self._gone: dict[str, tuple[int, PodGang]] = {}
        self._sizes: dict[str, _Size] = {}
        self._completed: dict[str, int] = {}
        """When each gang, by the uid of the PodGang, was last seen to name all the pods that it needs."""
        self._started: defaultdict[str, set[str]] = defaultdict(set)
        """The gangs that were complete once, by the uid of the PodGang: the pods in it that may be scheduled."""
        self._scheduled: dict[str, int] = {}
        """When each clique, by name, was last seen with enough pods on nodes."""

    def run(self, moments: list[Moment]) -> Iterator[str]:
        for moment in moments:
            for problem in self._apply(moment):
                yield f"at {moment.version}: {problem}"

    def _apply(self, moment: Moment) -> Iterator[str]:
        self._version = moment.version
        found, is_gone = moment.object, moment.type is EventType.DELETED
        name = found.metadata.name
        if isinstance(found, Pod):
            known = self._pods.get(name)
            _keep(self._pods, found, is_gone)
            if not is_gone and known is None:
                yield from self._pod_made(found)
            elif not is_gone and known is not None:
                yield from self._pod_changed(known, found)
        elif isinstance(found, PodClique):
            before = self._cliques.get(name)
            yield from self._resized(before, found)
            if before is not None and before.status.scheduled_replicas >= before.spec.minimum:
                self._scheduled[name] = moment.version
            _keep(self._cliques, found, is_gone)
            self._size(found)
        elif isinstance(found, PodCliqueScalingGroup):
            yield from self._resized(self._groups.get(name), found)
            _keep(self._groups, found, is_gone)
        else:
            known_gang = self._gangs.get(name)
            if known_gang is not None and not list(self._incomplete(known_gang, "")):
                self._completed[known_gang.metadata.uid] = moment.version
            _keep(self._gangs, found, is_gone)
            if is_gone:
                self._gone[name] = (moment.version, found)

    def _pod_made(self, pod: Pod) -> Iterator[str]:
        name, clique = pod.metadata.name, self._clique_of(pod)
        if clique is None:
            yield f"pod {name} was made for a PodClique that is not there"
            return
        siblings = self._staying(clique)
        size = self._size(clique)
        if len(siblings) > size.ceiling:
            yield f"{len(siblings)} pods of {clique.metadata.name}, and {size.ceiling} were asked for"
        taken = [
            other.metadata.name for other in siblings if is_active(other) and other.spec.hostname == pod.spec.hostname
        ]
        if len(taken) > 1:
            yield f"pods {taken} have the same number"
        if not pod.spec.scheduling_gates:
            yield f"pod {name} was made without a gate"

    def _pod_changed(self, before: Pod, after: Pod) -> Iterator[str]:
        if not before.spec.scheduling_gates or after.spec.scheduling_gates:
            return
        name = after.metadata.name
        gang = self._gang(after.metadata.labels.get(names.GANG_LABEL, ""))
        if gang is None:
            yield f"the gate of pod {name} was lifted without a PodGang"
            return
        if name not in [reference.name for group in gang.spec.pod_groups for reference in group.pod_references]:
            yield f"the gate of pod {name} was lifted before PodGang {gang.metadata.name} named it"
        if not is_true(gang.status.conditions, INITIALIZED):
            yield f"the gate of pod {name} was lifted before PodGang {gang.metadata.name} was initialised"
        if not self._has_started(gang) and not self._was_just_complete(gang):
            yield from self._incomplete(gang, name)
        base = self._gang(after.metadata.labels.get(names.BASE_GANG_LABEL, ""))
        if names.BASE_GANG_LABEL in after.metadata.labels:
            yield from self._base_unscheduled(base, name)
        self._started[gang.metadata.uid].add(after.metadata.uid)

    def _was_just_complete(self, gang: PodGang) -> bool:
        completed = self._completed.get(gang.metadata.uid)
        return completed is not None and self._version - completed <= A_MOMENT_AGO

    def _incomplete(self, gang: PodGang, pod: str) -> Iterator[str]:
        for group in gang.spec.pod_groups:
            clique = self._cliques.get(group.name)
            wanted = max(group.min_replicas, self._size(clique).floor) if clique is not None else group.min_replicas
            if len(group.pod_references) < wanted:
                yield f"the gate of pod {pod} was lifted when {group.name} had {len(group.pod_references)} of {wanted}"

    def _base_unscheduled(self, base: PodGang | None, pod: str) -> Iterator[str]:
        if base is None:
            yield f"the gate of pod {pod} was lifted without its base PodGang"
            return
        for group in base.spec.pod_groups:
            clique = self._cliques.get(group.name)
            is_scheduled = clique is not None and clique.status.scheduled_replicas >= group.min_replicas
            if not is_scheduled and self._version - self._scheduled.get(group.name, 0) > A_MOMENT_AGO:
                yield f"the gate of pod {pod} was lifted before {group.name} of its base PodGang was scheduled"

    def _resized(
        self, before: PodClique | PodCliqueScalingGroup | None, after: PodClique | PodCliqueScalingGroup
    ) -> Iterator[str]:
        name, replicas = after.metadata.name, after.spec.replicas
        if before is None or before.metadata.uid != after.metadata.uid or before.spec.replicas == replicas:
            return
        if (name, replicas) not in self._asked:
            yield f"{name} was given {replicas} replicas by nobody, and had {before.spec.replicas}"

    def _gang(self, name: str) -> PodGang | None:
        """A gang that is there, or was a moment ago."""
        version, gone = self._gone.get(name, (0, None))
        return self._gangs.get(name) or (gone if self._version - version <= A_MOMENT_AGO else None)

    def _has_started(self, gang: PodGang) -> bool:
        """Whether pods of the gang that may be scheduled are still there: others may join them one by one."""
        started = self._started[gang.metadata.uid]
        return any(pod.metadata.uid in started and not pod.metadata.is_deleting for pod in self._pods.values())

    def _staying(self, clique: PodClique) -> list[Pod]:
        return [
            pod
            for pod in self._pods.values()
            if pod.metadata.labels.get(names.CLIQUE_LABEL) == clique.metadata.name and not pod.metadata.is_deleting
        ]

    def _clique_of(self, pod: Pod) -> PodClique | None:
        owner = pod.metadata.controller
        clique = self._cliques.get(pod.metadata.labels.get(names.CLIQUE_LABEL, ""))
        return clique if clique is not None and owner is not None and owner.uid == clique.metadata.uid else None

    def _size(self, clique: PodClique) -> _Size:
        replicas, metadata = clique.spec.replicas, clique.metadata
        size = self._sizes.setdefault(metadata.uid, _Size(replicas, replicas))
        size.floor = min(size.floor, replicas)
        size.ceiling = max(size.ceiling, replicas)
        has_noted = clique.status.observed_generation == metadata.generation
        if has_noted and len(self._staying(clique)) <= replicas:
            size.ceiling = replicas
        return size


def _keep(known: dict[str, Any], found: Watched, is_gone: bool) -> None:
    if is_gone:
        known.pop(found.metadata.name, None)
    else:
        known[found.metadata.name] = found
