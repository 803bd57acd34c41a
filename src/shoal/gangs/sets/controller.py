"""The reconcile of a whole PodCliqueSet: its account, its shared claims, its updates, its broken replicas, its status.

It is woken by every change of what the set is made of, and so does little: what is made for a replica is the business
of ``replica_controller``, and changes that follow each other quickly are looked at together (``pace``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from shoal.api.grove import (
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    ClusterTopologyBinding,
    PodCliqueSet,
    names,
)
from shoal.api.meta import Document, is_controlled_by, is_left_behind, now, owner_reference
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES
from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.gangs.backends import Backends
from shoal.gangs.caches import Caches
from shoal.gangs.claims import MissingTemplate, external_templates, set_claims
from shoal.gangs.claims.wanted import split
from shoal.gangs.hashes import generation_hash
from shoal.gangs.last_errors import GangError
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.retries import RETRIES
from shoal.gangs.sets import accounts, wakes
from shoal.gangs.sets.autoscalers import autoscaler_problems
from shoal.gangs.sets.children import Child, Children, Kind, has_changed
from shoal.gangs.sets.pace import LONGEST, QUIET, Pace
from shoal.gangs.sets.progress import MOST_PROBLEMS, Progress
from shoal.gangs.sets.replica_controller import Replicas
from shoal.gangs.sets.replica_keys import key_of_set
from shoal.gangs.sets.status import SetSeen, gang_names, status_of
from shoal.gangs.sets.teardown import Teardown
from shoal.gangs.settings import GangSettings
from shoal.gangs.termination import due, is_breached
from shoal.gangs.topologies.levels import levels_condition, topology_name
from shoal.gangs.updates import start
from shoal.kube import Controller, Foreign, Key, Manager, ReconcileError, Requeue, Watch
from shoal.kube.store import key_of


def add_sets(manager: Manager, caches: Caches, settings: GangSettings, backends: Backends | None = None) -> None:
    """Adds the controllers of PodCliqueSets and of their replicas."""
    children, progress = Children(manager, settings), Progress()
    sets = Sets(manager, caches, children, settings, progress)
    progress.changed = sets.controller.enqueue
    manager.add(sets.controller)
    manager.add(Replicas(caches, children, settings, progress).controller)


class Sets:
    """Keeps what is there once for each set, and tells how the set is."""

    def __init__(
        self, manager: Manager, caches: Caches, children: Children, settings: GangSettings, progress: Progress
    ) -> None:
        self._caches = caches
        self._children = children
        self._settings = settings
        self._progress = progress
        self._writer = children.writer
        self._teardown = Teardown(manager, caches, self._writer)
        self._pace = Pace(quiet=QUIET * manager.debounce, longest=LONGEST * manager.debounce)
        made_once = (children.accounts, children.roles, children.role_bindings, children.secrets, children.claims)
        watches = [
            Watch(resource=POD_CLIQUES, keys=key_of_set, when=wakes.clique_concerns),
            Watch(resource=SCALING_GROUPS, keys=key_of_set, when=wakes.group_concerns),
            Watch(resource=POD_GANGS, keys=key_of_set, when=wakes.gang_concerns),
            Watch(resource=TOPOLOGY_BINDINGS, keys=self._keys_of_topology, when=wakes.topology_concerns),
            Watch(resource=RESOURCE_CLAIM_TEMPLATES, keys=self._keys_of_template),
            *(kind.watch(key_of_set, has_changed) for kind in made_once),
        ]
        self.controller = Controller(
            "podcliqueset",
            POD_CLIQUE_SETS,
            self.reconcile,
            when=wakes.set_concerns,
            watches=watches,
            workers=settings.workers.sets,
            retries=RETRIES,
        )

    async def reconcile(self, key: Key) -> Requeue | None:
        """Takes the next steps for one set, and tells how it is, also where one of them failed."""
        pcs = self._caches.sets.store.get(key)
        if pcs is None or pcs.metadata.is_deleting:
            self._progress.forget(key)
            self._pace.forget(key)
            if pcs is not None:
                await self._let_go(pcs)
            return None
        if await self._writer.set_finalizer(POD_CLIQUE_SETS, pcs, names.SET_FINALIZER):
            return None
        if wait := self._pace.wait(key, pcs.metadata.generation, time.monotonic()):
            return Requeue(after=wait)
        try:
            requeue = await self._look_at(pcs)
        except BaseException:
            self._pace.failed(key)
            raise
        self._pace.succeeded(key)
        return requeue

    async def _look_at(self, pcs: PodCliqueSet) -> Requeue | None:
        problems = await self._keep(pcs)
        moment = now()
        replicas = [ReplicaSeen.of(pcs, index, self._caches) for index in range(pcs.spec.replicas)]
        broken = due(pcs, [replica for replica in replicas if _has_breach(replica)], moment)
        for index in broken.replicas:
            try:
                await self._teardown.carry_out(pcs, index)
            except GangError as problem:
                problems.append(problem)
        gangs = [gang for gang in self._caches.gangs_of_set(pcs) if is_controlled_by(gang.metadata, pcs.metadata.uid)]
        started = msgspec.structs.replace(pcs, status=start(pcs, generation_hash(pcs), moment))
        seen = SetSeen(
            replicas=replicas,
            gangs=gangs,
            is_complete=self._progress.is_complete(pcs),
            problems=[
                *problems,
                *self._missing_templates(pcs),
                *autoscaler_problems(pcs),
                *islice(self._foreign_gangs(pcs, replicas, gangs), MOST_PROBLEMS),
                *self._progress.problems(pcs),
            ],
            levels=levels_condition(pcs, self._topologies(pcs), self._settings),
        )
        await self._writer.patch_status(POD_CLIQUE_SETS, pcs, before=pcs.status, after=status_of(started, seen, moment))
        if problems:
            raise ExceptionGroup("not everything of the set could be made", problems)
        return None if broken.again_after is None else Requeue(after=broken.again_after)

    async def _keep(self, pcs: PodCliqueSet) -> list[Exception]:
        """Makes what is there once for the set; gives what kept it from that, each on its own."""
        problems: list[Exception] = []
        for kind, child in self._wanted(pcs):
            try:
                await self._children.apply(pcs, kind, child)
            except ReconcileError as problem:
                problems.append(problem)
        return problems

    def _missing_templates(self, pcs: PodCliqueSet) -> list[MissingTemplate]:
        """What the set says of claims, at whatever level, that cannot be made: it is looked at again when they can."""
        named = external_templates(pcs)
        found = self._children.templates(named)
        return [MissingTemplate(*place) for place in named if place not in found]

    def _wanted(self, pcs: PodCliqueSet) -> Iterator[tuple[Kind, Child]]:
        children = self._children
        yield children.accounts, Child(body=accounts.service_account(pcs))
        yield children.roles, Child(body=accounts.role(pcs))
        yield children.role_bindings, Child(body=accounts.role_binding(pcs))
        yield children.secrets, Child(body=accounts.token_secret(pcs))
        for claim in set_claims(pcs, templates=children.templates(external_templates(pcs))):
            body, initial = split(claim)
            yield children.claims, Child(body=body, initial=initial)

    async def _let_go(self, pcs: PodCliqueSet) -> None:
        """Lets a set go that is deleted; what was made for it goes after it, by its owner references."""
        if names.SET_FINALIZER not in pcs.metadata.finalizers:
            return
        if self._children.compute_domains is not None:
            for domain in self._children.compute_domains.of_set(pcs):
                await self._children.release(domain)
        await self._writer.clear_finalizer(POD_CLIQUE_SETS, pcs, names.SET_FINALIZER)

    def _foreign_gangs(
        self, pcs: PodCliqueSet, replicas: Iterable[ReplicaSeen], gangs: Iterable[PodGang]
    ) -> Iterator[GangError]:
        """PodGangs that have the names of the set's own; what an earlier set of its name has left is none of them."""
        own, owner = {gang.metadata.name for gang in gangs}, owner_reference(pcs, POD_CLIQUE_SETS)
        for name in (name for replica in replicas for name in gang_names(pcs, replica) if name not in own):
            found = self._caches.gangs.get(name, pcs.metadata.namespace)
            if found is not None and not is_left_behind(found.metadata, owner):
                yield GangError("ERR_SYNC_PODGANG", str(Foreign(POD_GANGS, found, owner)))

    def _topologies(self, pcs: PodCliqueSet) -> dict[str, ClusterTopologyBinding]:
        found = self._caches.topologies.get(topology_name(pcs))
        return {} if found is None else {found.metadata.name: found}

    def _keys_of_topology(self, binding: ClusterTopologyBinding) -> Iterable[Key]:
        return [key_of(pcs) for pcs in self._caches.sets.items() if topology_name(pcs) == binding.metadata.name]

    def _keys_of_template(self, template: Document) -> Iterable[Key]:
        place = (template.metadata.namespace, template.metadata.name)
        return [key_of(pcs) for pcs in self._caches.sets.items() if place in external_templates(pcs)]


def _has_breach(replica: ReplicaSeen) -> bool:
    return any(map(is_breached, replica.cliques.values())) or any(map(is_breached, replica.groups.values()))
