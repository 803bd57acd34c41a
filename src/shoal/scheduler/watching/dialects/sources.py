"""Where the objects of each dialect are found, and which gangs are to be looked at when one changes.

A source answers two questions: where the pods are that name something (`seat`), and what a gang is (`plan`). It never
decides: it looks objects up and hands them to the dialect's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from shoal.api.core.pods import Pod
from shoal.api.meta import Object, PartialObject
from shoal.api.scheduling_k8s_io import WORKLOADS_V1ALPHA2, WORKLOADS_V1ALPHA3
from shoal.api.scheduling_sigs_k8s_io import PodGroup as CoschedulingPodGroup
from shoal.api.scheduling_volcano_sh import POD_GROUPS as VOLCANO_POD_GROUPS
from shoal.api.scheduling_volcano_sh import PodGroup as VolcanoPodGroup
from shoal.kube import Change, Informer
from shoal.kube.cache import Cache
from shoal.scheduler.watching.dialects import coscheduling, volcano, workloads
from shoal.scheduler.watching.dialects.plans import Facts, Plan
from shoal.scheduler.watching.groups import Dialect, GangKey, Seat

_BY_WORKLOAD: Final = "gang's workload"

Look = Callable[[GangKey], None]
"""Says that what pods name by this key, or by one that begins with it, may be another gang now."""
PodsOf = Callable[[GangKey], Sequence[Pod]]
"""The pods that name a key."""


class Source(Protocol):
    """The objects of one dialect."""

    def seat(self, named: GangKey, pods: Sequence[Pod]) -> Seat | None:
        """Where those pods are who name this; None: nothing is there that they could belong to."""

    def plan(self, gang: GangKey, members: Sequence[GangKey], pods_of: PodsOf, facts: Facts) -> Plan | None:
        """A gang, made of what these keys name."""


class Workloads:
    """Kubernetes' own: Workloads of 1.35, PodGroups and CompositePodGroups of later versions."""

    def __init__(self, cache: Cache, look: Look) -> None:
        self._look = look
        self._workloads = cache.informer(workloads.WORKLOADS)
        self._workloads.subscribe(self._workload_changed)
        self._composites = cache.informer(workloads.COMPOSITES)
        self._composites.subscribe(self._composite_changed)
        self._in_namespace: dict[str, dict[str, workloads.CompositePodGroup]] = {}
        self._groups = [cache.informer(kind, indexes={_BY_WORKLOAD: _by_workload}) for kind in workloads.POD_GROUPS]
        for groups in self._groups:
            groups.subscribe(self._group_changed)
        self._templates: list[Informer[PartialObject]] = [
            cache.informer(kind.view(PartialObject)) for kind in (WORKLOADS_V1ALPHA3, WORKLOADS_V1ALPHA2)
        ]
        for templates in self._templates:
            templates.subscribe(self._template_changed)

    def seat(self, named: GangKey, pods: Sequence[Pod]) -> Seat | None:
        """A group of a Workload is a gang of its own; a PodGroup is where it is a part of something."""
        kind, name = _parts(named)
        if kind == workloads.WORKLOAD:
            return Seat(gang=named) if pods and self._workloads.get(name, named.namespace) is not None else None
        group = self._group(name, named.namespace)
        return None if group is None else workloads.seat_of_group(group, self._all_composites(named.namespace))

    def plan(self, gang: GangKey, members: Sequence[GangKey], pods_of: PodsOf, facts: Facts) -> Plan | None:
        """A group of a Workload, a PodGroup, or a CompositePodGroup with all that is part of it."""
        kind, name = _parts(gang)
        pods = [pod for member in members for pod in pods_of(member)]
        if kind == workloads.WORKLOAD:
            workload = self._workloads.get(name, gang.namespace)
            return None if workload is None else workloads.plan_of_workload(workload, gang, pods, facts)
        found = (self._group(_parts(member)[1], member.namespace) for member in members)
        groups = [group for group in found if group is not None]
        sources = self._sources(groups)
        if kind == workloads.POD_GROUP:
            return workloads.plan_of_group(groups[0], sources, pods, facts) if groups else None
        composites = self._all_composites(gang.namespace)
        if name not in composites:
            return None
        return workloads.plan_of_composite(name, composites, groups, sources, pods, facts)

    def _group(self, name: str, namespace: str) -> workloads.PodGroup | None:
        return next((found for groups in self._groups if (found := groups.get(name, namespace)) is not None), None)

    def _sources(self, groups: Iterable[workloads.PodGroup]) -> list[Object]:
        """The Workloads that PodGroups were made from: what is said of a queue may be said there."""
        names = dict.fromkeys((workloads.workload_name(group), group.metadata.namespace) for group in groups)
        found = (templates.get(*name) for name in names if name[0] for templates in self._templates)
        return [one for one in found if one is not None]

    def _all_composites(self, namespace: str) -> Mapping[str, workloads.CompositePodGroup]:
        known = self._in_namespace.get(namespace)
        if known is None:
            items = self._composites.items(namespace)
            known = self._in_namespace[namespace] = {one.metadata.name: one for one in items}
        return known

    def _workload_changed(self, change: Change[workloads.Workload]) -> None:
        self._look(_key(change.latest, f"{workloads.WORKLOAD}/{change.latest.metadata.name}"))

    def _group_changed(self, change: Change[workloads.PodGroup]) -> None:
        self._look(_key(change.latest, f"{workloads.POD_GROUP}/{change.latest.metadata.name}"))

    def _composite_changed(self, change: Change[workloads.CompositePodGroup]) -> None:
        namespace = change.latest.metadata.namespace
        self._in_namespace.pop(namespace, None)
        for groups in self._groups:
            for group in groups.items(namespace):
                self._look(_key(group, f"{workloads.POD_GROUP}/{group.metadata.name}"))

    def _template_changed(self, change: Change[PartialObject]) -> None:
        metadata = change.latest.metadata
        for groups in self._groups:
            for group in groups.find(_BY_WORKLOAD, (metadata.namespace, metadata.name)):
                self._look(_key(group, f"{workloads.POD_GROUP}/{group.metadata.name}"))


class Coscheduling:
    """Koordinator's, and that of the scheduler plugins."""

    def __init__(self, cache: Cache, look: Look) -> None:
        self._look = look
        self._groups = [cache.informer(kind) for kind in coscheduling.KINDS]
        for groups in self._groups:
            groups.subscribe(self._group_changed)

    def seat(self, named: GangKey, pods: Sequence[Pod]) -> Seat | None:
        """With the PodGroups that it is to start together with."""
        group = self._group(named, pods)
        return None if group is None else coscheduling.seat_of(group)

    def plan(self, gang: GangKey, members: Sequence[GangKey], pods_of: PodsOf, facts: Facts) -> Plan | None:
        """All PodGroups that name each other."""
        pods = {member: pods_of(member) for member in members}
        groups = [group for member in members if (group := self._group(member, pods[member])) is not None]
        return coscheduling.plan_of(groups, (pod for each in pods.values() for pod in each), facts) if groups else None

    def _group(self, named: GangKey, pods: Sequence[Pod]) -> coscheduling.Group | None:
        held = (groups.get(named.name, named.namespace) for groups in self._groups)
        return coscheduling.group_of(named, next((one for one in held if one is not None), None), pods)

    def _group_changed(self, change: Change[CoschedulingPodGroup]) -> None:
        metadata = change.latest.metadata
        self._look(GangKey(Dialect.COSCHEDULING, metadata.namespace, metadata.name))


class Volcano:
    """Volcano's."""

    def __init__(self, cache: Cache, look: Look) -> None:
        self._look = look
        self._groups = cache.informer(VOLCANO_POD_GROUPS)
        self._groups.subscribe(self._group_changed)

    def seat(self, named: GangKey, pods: Sequence[Pod]) -> Seat | None:
        """In their PodGroup, each in its part."""
        group = self._groups.get(named.name, named.namespace)
        return None if group is None else volcano.seat_of(group)

    def plan(self, gang: GangKey, members: Sequence[GangKey], pods_of: PodsOf, facts: Facts) -> Plan | None:
        """One PodGroup."""
        group = self._groups.get(gang.name, gang.namespace)
        return None if group is None else volcano.plan_of(group, pods_of(gang), facts)

    def _group_changed(self, change: Change[VolcanoPodGroup]) -> None:
        metadata = change.latest.metadata
        self._look(GangKey(Dialect.VOLCANO, metadata.namespace, metadata.name))


def object_of(named: GangKey) -> GangKey:
    """The key under which a source tells of what a key is about: all groups of a Workload are about the Workload."""
    if named.dialect is not Dialect.WORKLOAD:
        return named
    return named._replace(name="/".join(named.name.split("/")[:2]))


def _parts(key: GangKey) -> tuple[str, str]:
    kind, name, *_ = key.name.split("/")
    return kind, name


def _key(found: Object, name: str) -> GangKey:
    return GangKey(Dialect.WORKLOAD, found.metadata.namespace, name)


def _by_workload(group: workloads.PodGroup) -> Iterable[Hashable]:
    name = workloads.workload_name(group)
    return ((group.metadata.namespace, name),) if name else ()
