"""The reconcile of a PodGang: made once a PodClique of it is there, its pods named, its status told.

Its key is the PodGang's own name, under which its PodCliques and pods are found by label: what an event costs depends
on the size of the gang alone, never on that of the set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.api.core import PODS, Pod
from shoal.api.grove import (
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    ClusterTopologyBinding,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    names,
)
from shoal.api.meta import (
    HasMetadata,
    is_controlled_by,
    is_left_behind,
    is_true,
    now,
    owner_reference,
    set_condition,
)
from shoal.api.scheduler_grove_io import INITIALIZED, POD_GANGS, PodGang, PodGangStatus, is_guest
from shoal.gangs.backends.registry import Backends
from shoal.gangs.caches import Caches
from shoal.gangs.plan import PlannedGang
from shoal.gangs.podgangs.contents import Contents, Topology, contents_of
from shoal.gangs.podgangs.guests import change, corrections, guests, hospitality, is_up
from shoal.gangs.podgangs.membership import Members, References, members_of, wanted_gang
from shoal.gangs.podgangs.patience import AT_FIRST, RACE_LOST, SOON
from shoal.gangs.podgangs.status import GangSeen, is_scheduled_pod, is_urgent, status_of
from shoal.gangs.retries import RETRIES
from shoal.gangs.settings import GangSettings
from shoal.gangs.together import all_of, raise_all
from shoal.gangs.topologies.levels import domain_keys, topology_name
from shoal.gangs.versions import is_newer
from shoal.kube import About, ApiError, Conflict, Controller, Foreign, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.changes import annotations_changed, any_of, field_changed, itself, labels_changed, spec_changed
from shoal.kube.patience import Patience
from shoal.kube.queue import RESYNC
from shoal.kube.store import key_of

_SAYS_SOMETHING_ELSE = any_of(spec_changed, labels_changed, annotations_changed)


def add_podgangs(manager: Manager, caches: Caches, settings: GangSettings, backends: Backends) -> None:
    """Adds the controller of PodGangs."""
    gangs = PodGangs(manager, caches, settings, backends)
    watches = [
        # What is written is compared with documents, whose watch may be slower than that of the values.
        Watch(resource=POD_GANGS.documents(), keys=itself, when=_SAYS_SOMETHING_ELSE),
        Watch(resource=POD_CLIQUES, keys=gang_key, when=any_of(spec_changed, labels_changed)),
        Watch(resource=PODS, keys=gang_key, when=_pod_matters, label_selector=caches.pod_selector),
        Watch(resource=POD_CLIQUE_SETS, keys=gangs.keys_of_set, when=_SAYS_SOMETHING_ELSE),
        Watch(resource=SCALING_GROUPS, keys=gangs.keys_of_group, when=spec_changed),
        Watch(resource=TOPOLOGY_BINDINGS, keys=gangs.keys_of_topology, when=spec_changed),
    ]
    workers = settings.workers.gangs
    manager.add(Controller("podgang", POD_GANGS, gangs.reconcile, watches=watches, workers=workers, retries=RETRIES))


class PodGangs:
    """Keeps PodGangs as their sets, cliques and pods are."""

    def __init__(self, manager: Manager, caches: Caches, settings: GangSettings, backends: Backends) -> None:
        self._caches = caches
        self._settings = settings
        self._backends = backends
        self._client = manager.client
        self._documents = manager.cache.informer(POD_GANGS.documents())
        self._events = manager.events
        self._writer = manager.writer("grove-podgangs")
        self._patience = Patience(scale=manager.debounce)
        self._unsaid = Patience(SOON, scale=manager.debounce)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Makes one PodGang as it should be, or takes away one that is not wanted any more."""
        gang = self._caches.gangs.store.get(key)
        if gang is not None and gang.metadata.is_deleting:
            return None  # it is made again, if it should be there, once it is gone
        cliques = self._caches.cliques_of_gang(key)
        planned = self._planned(key, gang, cliques)
        if planned is None and gang is not None and is_guest(gang):
            return await self._host(key, gang)
        if planned is None:
            self._patience.forget(key)
            self._unsaid.forget(key)
            if gang is not None:
                await self._remove(gang)
            return None
        pcs, wanted = planned
        if gang is not None and is_left_behind(gang.metadata, owner_reference(pcs, POD_CLIQUE_SETS)):
            return None  # the garbage collector has it soon, and its last event brings us back
        members = members_of(wanted, cliques, self._caches.pods_of_gang(key))
        named_before = _named_in(gang)
        named_now, wait = self._named(key, gang, members)
        contents = contents_of(
            pcs,
            wanted,
            named_now,
            topology=self._topology(pcs),
            default_scheduler=self._settings.default_scheduler,
            backends=self._backends,
        )
        seen, before = await self._written(pcs, key, gang, contents)
        picture = GangSeen(minimums=wanted.minimums, members=members, named_before=named_before, named_now=named_now)
        is_news = named_now != named_before
        later = await self._tell(key, seen, before, status_of(before, picture, now()), at_once=is_news)
        return _again(wait, later)

    async def _host(self, key: Key, gang: PodGang) -> Requeue | None:
        """Looks after a gang of others: says what its pods carry, names them, and tells how far it is."""
        members = guests(gang, self._caches.pods_of_gang(key))
        given = hospitality(gang, self._backends, self._settings.default_scheduler)
        named_before = _named_in(gang)
        named_now, wait = self._named(key, gang, members)
        if patch := change(gang, given, named_now):
            metadata = gang.metadata
            gang = await self._client.merge_patch(
                POD_GANGS, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
            )
        minimums = {group.name: group.min_replicas for group in gang.spec.pod_groups}
        picture = GangSeen(
            minimums=minimums, members=members, named_before=named_before, named_now=named_now, is_up=is_up
        )
        status = status_of(gang.status, picture, now())
        failures = await all_of("", (self._correct(*one) for one in corrections(given, members, named_now, status)))
        later = await self._tell(key, gang, gang.status, status, at_once=named_now != named_before)
        raise_all(failures)
        return _again(wait, later)

    async def _correct(self, pod: Pod, patch: list[dict[str, Any]]) -> None:
        metadata = pod.metadata
        with contextlib.suppress(NotFound):
            await self._client.json_patch(
                PODS, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
            )

    def keys_of_set(self, pcs: PodCliqueSet) -> Iterable[Key]:
        """The gangs of a set that are there or could be."""
        found = {key_of(gang) for gang in self._caches.gangs_of_set(pcs)}
        return found.union(*(gang_key(clique) for clique in self._caches.cliques_of_set(pcs)))

    def keys_of_group(self, group: PodCliqueScalingGroup) -> Iterable[Key]:
        """The gangs of a scaling group's replicas beyond its minimum."""
        replica = names.index_in(group.metadata.labels, names.SET_REPLICA_LABEL)
        pcs = self._caches.set_of(group)
        if pcs is None or replica is None:
            return ()
        name = group.metadata.name
        gangs = self._caches.gangs_of_replica(pcs, replica)
        return [key_of(gang) for gang in gangs if gang.metadata.labels.get(names.SCALING_GROUP_LABEL) == name]

    def keys_of_topology(self, binding: ClusterTopologyBinding) -> Iterable[Key]:
        """The gangs of the sets that name a topology."""
        for pcs in self._caches.sets.items():
            if topology_name(pcs) == binding.metadata.name:
                yield from map(key_of, self._caches.gangs_of_set(pcs))

    def _planned(
        self, key: Key, gang: PodGang | None, cliques: Iterable[PodClique]
    ) -> tuple[PodCliqueSet, PlannedGang] | None:
        """The set that wants the gang of this name, and its plan; the set that has it already comes first.

        It is the PodCliques that speak of a gang that is not there yet; those that go do not.
        """
        holder = gang.metadata.controller if gang is not None else None
        speakers: list[HasMetadata] = [clique for clique in cliques if not clique.metadata.is_deleting]
        if gang is not None:
            speakers.append(gang)
        other = None
        for speaker in speakers:
            pcs = self._caches.set_of(speaker)
            if pcs is None or pcs.metadata.is_deleting:
                continue
            wanted = wanted_gang(pcs, speaker.metadata.labels, lambda name: self._replicas(name, key.namespace))
            if wanted is None or wanted.name != key.name:
                continue
            if holder is None or holder.uid == pcs.metadata.uid:
                return pcs, wanted
            other = other or (pcs, wanted)
        return other

    def _replicas(self, group: str, namespace: str) -> int | None:
        live = self._caches.groups.get(group, namespace)
        return None if live is None else live.spec.replicas

    def _named(self, key: Key, gang: PodGang | None, members: Members) -> tuple[References, float]:
        """The pods to name now, and for how long others have to wait for that."""
        named = _named_in(gang)
        if members.is_complete or members.references == named:
            self._patience.forget(key)
            return members.references, 0.0
        if gang is None:
            return {}, 0.0
        if wait := self._patience.left(key):
            return named, wait
        self._patience.forget(key)
        return members.references, 0.0

    def _topology(self, pcs: PodCliqueSet) -> Topology:
        name = topology_name(pcs) if self._settings.has_topologies else ""
        return Topology(name=name, keys=domain_keys(self._caches.topologies.get(name) if name else None))

    async def _written(
        self, pcs: PodCliqueSet, key: Key, gang: PodGang | None, contents: Contents
    ) -> tuple[HasMetadata, PodGangStatus]:
        """Makes the PodGang say this; gives it as it is then, and its status."""
        if gang is not None and contents.are_in(gang, pcs.metadata.uid):
            return gang, gang.status
        owner = owner_reference(pcs, POD_CLIQUE_SETS)
        try:
            document = await self._writer.apply(self._documents, contents.body(key.name, key.namespace), owner=owner)
        except (ApiError, Foreign) as error:
            self._events.warning(About.of(POD_CLIQUE_SETS, pcs), "PodGangCreateOrUpdateFailed", str(error))
            raise
        if gang is None:
            said = f"PodGang {key.name} was created"
            self._events.normal(About.of(POD_CLIQUE_SETS, pcs), "PodGangCreateOrUpdateSuccessful", said)
        if gang is not None and is_newer(gang, document):
            return gang, gang.status  # what was compared lags behind, and a status from there would be refused
        return document, msgspec.convert(document.content.get("status") or {}, PodGangStatus)

    async def _tell(
        self, key: Key, seen: HasMetadata, before: PodGangStatus, status: PodGangStatus, *, at_once: bool
    ) -> float:
        """Writes the status where it changed; gives the seconds for which one can wait that nobody waits for."""
        if status != before:
            wait = SOON if is_true(before.conditions, INITIALIZED) else AT_FIRST
            if not at_once and not is_urgent(before, status) and (later := self._unsaid.left(key, wait)):
                return later
            if (outcome := self._backends.outcomes.condition(seen)) is not None:
                conditions = set_condition(status.conditions, outcome, now())
                status = msgspec.structs.replace(status, conditions=conditions)
            try:
                await self._writer.patch_status(POD_GANGS, seen, before=before, after=status)
            except NotFound:
                pass  # it was taken away: that event brings us back
            except Conflict:
                return RACE_LOST  # somebody was faster, and their event may have come already
        self._unsaid.forget(key)
        return 0.0

    async def _remove(self, gang: PodGang) -> None:
        """Deletes a gang that its set wants no more; one of a set that goes is left to the garbage collector."""
        pcs = self._caches.set_of(gang)
        if pcs is None or pcs.metadata.is_deleting or not is_controlled_by(gang.metadata, pcs.metadata.uid):
            return
        about = About.of(POD_CLIQUE_SETS, pcs)
        try:
            await self._writer.delete(POD_GANGS, gang)
        except ApiError as error:
            self._events.warning(about, "PodGangDeleteFailed", str(error))
            raise
        self._events.normal(about, "PodGangDeleteSuccessful", f"PodGang {gang.metadata.name} is not wanted any more")


def gang_key(found: HasMetadata) -> Iterable[Key]:
    """The gang that a PodClique's or a pod's label names."""
    name = found.metadata.labels.get(names.GANG_LABEL)
    return (Key(found.metadata.namespace, name),) if name else ()


def _again(wait: float, later: float) -> Requeue | None:
    """When to look again: for pods that wait to be named, or else, at leisure, for a status that is not told yet."""
    if later and not wait:
        return Requeue(after=later, priority=RESYNC)
    return Requeue(after=min(wait, later or wait)) if wait else None


def _named_in(gang: PodGang | None) -> References:
    return {} if gang is None else {group.name: group.pod_references for group in gang.spec.pod_groups}


def _what_matters(pod: Pod) -> tuple[object, ...]:
    metadata = pod.metadata
    return (metadata.is_deleting, metadata.controller, is_scheduled_pod(pod), is_up(pod), metadata.labels)


_pod_matters = field_changed(_what_matters)
