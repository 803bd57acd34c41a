"""The reconcile of a PodClique: its claims, its pods, their gates, its update, and its status."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from shoal.api.core import PODS, Pod, is_finished
from shoal.api.grove import (
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    PodClique,
    PodCliqueSet,
    PodCliqueStatus,
    PodCliqueUpdate,
    names,
)
from shoal.api.meta import Document, now
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.gangs.backends import Backends
from shoal.gangs.caches import OURS, POD_INDEXES, Caches
from shoal.gangs.cliques import rolling, shared_claims, wakes
from shoal.gangs.cliques.gates import NOT_LIFTED, Gating, correction, gating, is_gated
from shoal.gangs.cliques.indexes import free_indexes
from shoal.gangs.cliques.membership import (
    has_predecessors,
    is_gang_of,
    is_standalone,
    is_wanted,
    own_pods,
    planned_clique,
)
from shoal.gangs.cliques.plan import sizing
from shoal.gangs.cliques.pod_writes import Failures, PodWrites
from shoal.gangs.cliques.pods import Mould, marks_of, wanted_pod
from shoal.gangs.cliques.shared_claims import SharedClaims
from shoal.gangs.cliques.status import ALL_LOST, Reached, has_lost_all, is_urgent, wanted_status
from shoal.gangs.last_errors import last_errors
from shoal.gangs.plan import PlannedClique
from shoal.gangs.retries import RETRIES
from shoal.gangs.settings import GangSettings
from shoal.gangs.updates import Hashes, expected_hashes, updating_replicas
from shoal.kube import About, Change, Conflict, Controller, Key, Manager, Requeue, Watch
from shoal.kube.changes import controlling_owner
from shoal.kube.queue import RESYNC

SOON = 0.5
"""Seconds after which a status is told that nobody waits for: most of them are superseded by then."""
AT_FIRST = 3.0
"""The same for the first report of a clique: pods that start at once are told of once, when they have."""
_REMEMBERED = 1000


def add_cliques(manager: Manager, caches: Caches, settings: GangSettings, backends: Backends) -> None:
    """Adds the controller of PodCliques."""
    cliques = Cliques(manager, caches, settings, backends)
    found = wakes.Wakes(caches)
    watches = [
        Watch(
            resource=PODS,
            keys=controlling_owner(POD_CLIQUES),
            when=wakes.pod_concerns,
            label_selector=caches.pod_selector,
            indexes=POD_INDEXES,
        ),
        Watch(resource=POD_GANGS, keys=wakes.cliques_of_gang, when=wakes.gang_concerns),
        Watch(resource=POD_GANGS, keys=found.waiting_for_gang, when=wakes.base_gang_concerns),
        Watch(resource=POD_CLIQUES, keys=found.waiting_for_clique, when=wakes.schedule_concerns),
        Watch(resource=POD_CLIQUE_SETS, keys=found.of_set, when=wakes.templates_concern),
        Watch(resource=POD_CLIQUE_SETS, keys=found.in_turn, when=wakes.turn_concerns),
        Watch(
            resource=RESOURCE_CLAIMS,
            keys=controlling_owner(POD_CLIQUES),
            when=_has_gone,
            label_selector=OURS,
            indexes=shared_claims.INDEXES,
        ),
        Watch(resource=RESOURCE_CLAIM_TEMPLATES, keys=cliques.claims.cliques_of_template),
    ]
    manager.add(
        Controller(
            "podclique",
            POD_CLIQUES,
            cliques.reconcile,
            when=wakes.clique_concerns,
            watches=watches,
            workers=settings.workers.cliques,
            retries=RETRIES,
        )
    )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A clique and what belongs to it, as the caches show it."""

    key: Key
    clique: PodClique
    pcs: PodCliqueSet
    planned: PlannedClique | None
    """What the set's template says of it; nothing where the clique is about to go."""
    gang: PodGang | None
    is_wanted: bool
    """Whether the set still asks for the replica that the clique is part of."""
    pods: Sequence[Pod]
    has_predecessors: bool
    """Whether pods of an earlier clique of the same name are still to go; this one's own are made after that."""

    @property
    def template_hash(self) -> str:
        """The template that pods are made from now."""
        return self.clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL, "")


class Cliques:
    """Keeps the pods of each clique."""

    def __init__(
        self,
        manager: Manager,
        caches: Caches,
        settings: GangSettings,
        backends: Backends,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caches = caches
        self._settings = settings
        self._backends = backends
        self._events = manager.events
        self._writer = manager.writer("grove-operator-cliques")
        self._pods = PodWrites(manager.client, self._writer, manager.events)
        self.claims = SharedClaims(manager, caches, self._writer)
        self._debounce = manager.debounce
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._hashes: OrderedDict[tuple[str, int], Hashes] = OrderedDict()

    async def reconcile(self, key: Key) -> Requeue | None:
        """Brings one clique to its size and template, lifts what gates it may, and tells how it is."""
        clique = self._caches.cliques.store.get(key)
        if clique is None or clique.metadata.is_deleting:
            await self._let_go(key, clique)
            return None
        pcs = self._caches.set_of(clique)
        if pcs is None or pcs.metadata.is_deleting:
            return None  # without its set nothing is to be made, and the garbage collector has it soon
        await self._writer.set_finalizer(POD_CLIQUES, clique, names.CLIQUE_FINALIZER)
        moment = now()
        failures = Failures()
        seen = self._seen(key, clique, pcs)
        if seen.planned is not None:
            await self.claims.sync(clique, pcs, seen.planned, seen.pods, failures)
        pods = await self._resize(seen, failures, moment)
        pods, gates = await self._lift(seen, pods, failures)
        update, step = self._next_update(seen, pods, moment, is_well=not failures)
        status = wanted_status(
            clique,
            pods,
            Reached(
                update=update,
                generation_hash=self._generation_hash(seen),
                gating=gates,
                errors=last_errors(clique.status.last_errors, failures.told, moment),
            ),
            moment,
        )
        again = await self._tell(seen, status)
        if again is None or update == clique.status.update_progress:
            # What an update has chosen is written down before it is deleted, so that it never chooses too many.
            await self._pods.delete(clique, step.delete, failures)
        if failures.to_retry:
            raise failures.to_retry[0]
        if again is None and not seen.is_wanted:
            return Requeue(after=SOON, priority=RESYNC)  # it goes, or is wanted again, which is no event of its own
        return again

    def _seen(self, key: Key, clique: PodClique, pcs: PodCliqueSet) -> Seen:
        found = self._caches.pods_of_clique(clique)
        return Seen(
            key=key,
            clique=clique,
            pcs=pcs,
            planned=planned_clique(pcs, clique),
            gang=self._gang_of(clique),
            is_wanted=self._is_wanted(pcs, clique),
            pods=own_pods(clique, found),
            has_predecessors=has_predecessors(clique, found),
        )

    def _gang_of(self, clique: PodClique) -> PodGang | None:
        """The gang that the clique's pods may join now.

        What is about to lose its PodGang has none, though a cache may still show it: a set is let go, and a gang
        that is not wanted taken away, only after the caches of this process have shown why.
        """
        pcs = self._caches.set_of(clique)
        if pcs is None or pcs.metadata.is_deleting or not self._is_wanted(pcs, clique):
            return None
        gang = self._caches.gangs.get(clique.metadata.labels.get(names.GANG_LABEL, ""), clique.metadata.namespace)
        return gang if gang is not None and is_gang_of(pcs, gang) else None

    def _is_wanted(self, pcs: PodCliqueSet, clique: PodClique) -> bool:
        name = clique.metadata.labels.get(names.SCALING_GROUP_LABEL, "")
        group = self._caches.groups.get(name, clique.metadata.namespace) if name else None
        return is_wanted(pcs, clique, group)

    async def _resize(self, seen: Seen, failures: Failures, moment: datetime) -> list[Pod]:
        """Makes what is missing, once the gang is there that it is part of, or deletes what is too much."""
        pods, clique = list(seen.pods), seen.clique
        plan = sizing(pods, replicas=clique.spec.replicas, template_hash=seen.template_hash)
        if plan.create and seen.has_predecessors:
            return pods
        if plan.create and seen.gang is not None and seen.planned is not None:
            mould = Mould(
                pcs=seen.pcs,
                clique=clique,
                planned=seen.planned,
                gang=seen.gang,
                backends=self._backends,
                settings=self._settings,
            )
            free = free_indexes(clique.metadata.name, pods, plan.create)
            return pods + await self._pods.make(clique, [wanted_pod(mould, index) for index in free], failures)
        gone = {pod.metadata.uid for pod in await self._pods.delete(clique, plan.delete, failures)}
        return [_leaving(pod, moment) if pod.metadata.uid in gone else pod for pod in pods]

    async def _lift(self, seen: Seen, pods: list[Pod], failures: Failures) -> tuple[list[Pod], Gating]:
        """Lifts the gates that may be lifted, and keeps the marks true by which the scheduler knows the pods.

        It goes by what the caches show by now: pods may have been made since ``seen``, which takes its time.
        """
        clique = seen.clique
        gang = self._gang_of(clique)
        base_name = clique.metadata.labels.get(names.BASE_GANG_LABEL, "")
        gates = gating(
            clique,
            pods,
            gang=gang,
            base_gang=self._caches.gangs.get(base_name, seen.key.namespace) if base_name else None,
            scheduled=lambda name: self._scheduled(name, seen.key.namespace),
        )
        if gang is None:
            return pods, gates
        marks = marks_of(gang, clique, self._backends)
        lift = {pod.metadata.uid for pod in gates.lift}
        patches = [
            (pod, operations)
            for pod in pods
            if not pod.metadata.is_deleting and not is_finished(pod)
            if (operations := correction(pod, marks, lift=pod.metadata.uid in lift))
        ]
        if not patches:
            return pods, gates
        changed = {pod.metadata.uid: pod for pod in await self._pods.patch(clique, patches, failures)}
        after = [changed.get(pod.metadata.uid, pod) for pod in pods]
        if any(is_gated(pod) for pod in after if pod.metadata.uid in lift):
            gates = Gating(reason=NOT_LIFTED, message="gates could not be lifted: lastErrors has why")
        return after, gates

    def _next_update(
        self, seen: Seen, pods: Sequence[Pod], moment: datetime, *, is_well: bool
    ) -> tuple[PodCliqueUpdate | None, rolling.Step]:
        """The update of a clique in no scaling group, and what it does now."""
        clique, pcs = seen.clique, seen.pcs
        if not is_standalone(clique) or seen.planned is None:
            return clique.status.update_progress, rolling.Step()
        turn = rolling.Turn(
            generation_hash=pcs.status.current_generation_hash,
            on_delete=pcs.spec.updates_on_delete,
            is_here=seen.planned.set_replica in updating_replicas(pcs),
            has_template=self._has_template(seen),
            has_old_pods=any(
                pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) != seen.template_hash
                for pod in pods
                if not pod.metadata.is_deleting
            ),
        )
        update = rolling.next_update(clique, turn, moment)
        if update is None or not rolling.is_open(update) or not turn.is_here or not is_well:
            return update, rolling.Step()
        step = rolling.next_step(
            pods,
            target=update.pod_template_hash,
            minimum=clique.spec.minimum,
            replicas=clique.spec.replicas,
            selected=update.ready_pods_selected_to_update,
        )
        return rolling.after_step(update, step, moment), step

    async def _tell(self, seen: Seen, status: PodCliqueStatus) -> Requeue | None:
        """Writes the status where it changed: at once where others wait for it, else a little later."""
        # The newest that the cache has: others change the clique, but the status is ours alone.
        clique = self._caches.cliques.store.get(seen.key)
        if clique is None or clique.metadata.uid != seen.clique.metadata.uid or status == clique.status:
            self._due.pop(seen.key, None)
            return None
        wait = SOON if clique.status.observed_generation is not None else AT_FIRST
        left = self._due.setdefault(seen.key, self._clock() + wait * self._debounce) - self._clock()
        # The gangs of a scaling group's further replicas wait until the base gang has its nodes.
        has_followers = bool(seen.pcs.spec.template.pod_clique_scaling_groups)
        if left > 0 and not is_urgent(clique.status, status, minimum=clique.spec.minimum, has_followers=has_followers):
            return Requeue(after=left, priority=RESYNC)
        self._due.pop(seen.key, None)
        try:
            await self._writer.patch_status(POD_CLIQUES, clique, before=clique.status, after=status)
        except Conflict:
            return Requeue(after=0.02)  # it has just changed, and the cache will show how
        if has_lost_all(clique.status, status):
            message = "no pod has a node any more"
            self._events.warning(About.of(POD_CLIQUES, clique), ALL_LOST, message)
        return None

    async def _let_go(self, key: Key, clique: PodClique | None) -> None:
        """Forgets a clique; its pods are the garbage collector's."""
        self._due.pop(key, None)
        if clique is not None:
            await self._writer.clear_finalizer(POD_CLIQUES, clique, names.CLIQUE_FINALIZER)

    def _scheduled(self, clique: str, namespace: str) -> int:
        found = self._caches.cliques.get(clique, namespace)
        return found.status.scheduled_replicas if found is not None else 0

    def _has_template(self, seen: Seen) -> bool:
        return seen.planned is not None and self._expected_hash(seen.pcs, seen.planned) == seen.template_hash

    def _generation_hash(self, seen: Seen) -> str:
        """The set's templates, where the clique was made from them."""
        return seen.pcs.status.current_generation_hash if self._has_template(seen) else ""

    def _expected_hash(self, pcs: PodCliqueSet, planned: PlannedClique) -> str:
        """The hash of a clique's template; computed once for all cliques of a set."""
        place = (pcs.metadata.uid, pcs.metadata.generation)
        known = self._hashes.get(place)
        if known is None:
            known = self._hashes[place] = expected_hashes(pcs)
            if len(self._hashes) > _REMEMBERED:
                self._hashes.popitem(last=False)
        return known.get(planned.template.name, "")


def _leaving(pod: Pod, moment: datetime) -> Pod:
    """A pod as it is once its deletion was asked for."""
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=moment)
    return msgspec.structs.replace(pod, metadata=metadata)


def _has_gone(change: Change[Document]) -> bool:
    return change.after is None
