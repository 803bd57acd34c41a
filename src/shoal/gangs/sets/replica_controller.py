"""The reconcile of one replica of a PodCliqueSet: everything that is made for it alone, or what is left of it.

It is woken by changes of the set that ask for something, and of this replica's own children; what is observed of those
does not concern it. So a set of many replicas costs no more than the replicas that change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.api.grove import POD_CLIQUE_SETS, PodCliqueSet, names
from shoal.api.meta import Document, is_controlled_by
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES
from shoal.gangs.caches import OURS, Caches
from shoal.gangs.claims import external_templates, replica_claims
from shoal.gangs.claims.wanted import split
from shoal.gangs.compute_domains.wanted import compute_domains
from shoal.gangs.plan import standalone_cliques
from shoal.gangs.retries import RETRIES
from shoal.gangs.sets import wakes
from shoal.gangs.sets.accounts import has_token
from shoal.gangs.sets.autoscalers import autoscalers
from shoal.gangs.sets.children import Child, Children, Kind, has_changed
from shoal.gangs.sets.cliques import initial_clique, standalone_clique
from shoal.gangs.sets.groups import initial_scaling_group, scaling_group
from shoal.gangs.sets.progress import Progress
from shoal.gangs.sets.replica_keys import key_of_replica, key_of_set, keys_of_replicas, replica_index, set_key
from shoal.gangs.sets.services import headless_service
from shoal.gangs.settings import GangSettings
from shoal.kube import ApiError, Change, Conflict, Controller, Key, ReconcileError, Watch


class Replicas:
    """Keeps what is made for each replica of each set."""

    def __init__(self, caches: Caches, children: Children, settings: GangSettings, progress: Progress) -> None:
        self._sets = caches.sets
        self._children = children
        self._settings = settings
        self._progress = progress
        watches = [
            *(kind.watch(key_of_replica, self._concerns_replica) for kind in children.of_replicas()),
            Watch(
                resource=children.secrets.resource,
                keys=self._keys_of_secret,
                when=wakes.token_concerns,
                label_selector=OURS,
            ),
            Watch(resource=RESOURCE_CLAIM_TEMPLATES, keys=self._keys_of_template),
        ]
        self.controller = Controller(
            "podcliqueset-replica",
            POD_CLIQUE_SETS,
            self.reconcile,
            keys=_keys_of_set,
            subject=set_key,
            when=wakes.set_concerns,
            watches=watches,
            workers=settings.workers.sets,
            retries=RETRIES,
        )

    async def reconcile(self, key: Key) -> None:
        """Makes everything of a replica as it should be; of one that is not wanted any more nothing is left."""
        pcs = self._sets.store.get(set_key(key))
        if pcs is None or pcs.metadata.is_deleting:
            await self._children.release_left(key)
            return
        if names.SET_FINALIZER not in pcs.metadata.finalizers:
            return
        index = replica_index(key)
        try:
            if index >= pcs.spec.replicas:
                await self._remove(pcs, index)
                self._progress.gone(pcs, index)
            elif await self._keep(pcs, index):
                self._progress.passed(pcs, index)
        except (ReconcileError, ApiError) as problem:
            if not isinstance(problem, Conflict) and not (isinstance(problem, ApiError) and problem.is_retryable):
                self._progress.failed(pcs, index, problem)
            raise

    async def _keep(self, pcs: PodCliqueSet, index: int) -> bool:
        """Whether all of a replica is there; what cannot be made yet is made when what it waits for changes."""
        is_complete = True
        for kind, wanted in self._wanted(pcs, index):
            if kind is self._children.cliques and not self._has_token(pcs):
                return False
            for child in wanted:
                is_complete = await self._children.apply(pcs, kind, child) and is_complete
            seen = kind.of_replica(pcs, index)
            await self._children.prune(pcs, kind, seen, keep={child.name for child in wanted})
        return is_complete

    async def _remove(self, pcs: PodCliqueSet, index: int) -> None:
        for kind in reversed(self._children.of_replicas()):
            await self._children.prune(pcs, kind, kind.of_replica(pcs, index), keep=set())

    def _wanted(self, pcs: PodCliqueSet, index: int) -> Iterator[tuple[Kind, list[Child]]]:
        """What there should be of a replica, kind by kind, in the order in which it is made."""
        children = self._children
        yield children.services, [Child(body=headless_service(pcs, index))]
        claims = replica_claims(pcs, index, templates=children.templates(external_templates(pcs)))
        yield children.claims, [Child(body=body, initial=initial) for body, initial in map(split, claims)]
        if children.compute_domains is not None:
            yield children.compute_domains, [Child(body=body) for body in compute_domains(pcs, index, self._settings)]
        yield (
            children.cliques,
            [
                Child(body=standalone_clique(pcs, planned), initial=initial_clique(planned))
                for planned in standalone_cliques(pcs, index)
            ],
        )
        yield (
            children.groups,
            [
                Child(body=scaling_group(pcs, index, group), initial=initial_scaling_group(group))
                for group in pcs.spec.template.pod_clique_scaling_groups
            ],
        )
        # Last, so that what they scale is there when they look for it.
        yield children.autoscalers, [Child(body=body) for body in autoscalers(pcs, index)]

    def _has_token(self, pcs: PodCliqueSet) -> bool:
        """Whether the pods of the set could wait for each other: they need a token for that."""
        secret = self._children.secrets.informer.get(names.token_secret(pcs.metadata.name), pcs.metadata.namespace)
        return secret is not None and is_controlled_by(secret.metadata, pcs.metadata.uid) and has_token(secret)

    def _concerns_replica(self, change: Change[Document]) -> bool:
        """Whether a change of a child asks for work: one that we just made and want does not."""
        if change.before is not None or change.is_resync:
            return has_changed(change)
        child = change.latest
        pcs = next((self._sets.store.get(key) for key in key_of_set(child)), None)
        if pcs is None or not is_controlled_by(child.metadata, pcs.metadata.uid):
            return False
        return any(replica_index(key) >= pcs.spec.replicas for key in key_of_replica(child))

    def _keys_of_secret(self, secret: Document) -> Iterable[Key]:
        sets = (self._sets.store.get(key) for key in key_of_set(secret))
        return [key for pcs in sets if pcs is not None for key in keys_of_replicas(pcs)]

    def _keys_of_template(self, template: Document) -> Iterable[Key]:
        place = (template.metadata.namespace, template.metadata.name)
        return [key for pcs in self._sets.items() if place in external_templates(pcs) for key in keys_of_replicas(pcs)]


def _keys_of_set(pcs: PodCliqueSet) -> Iterable[Key]:
    """All replicas, once the set is known not to go without a word."""
    return keys_of_replicas(pcs) if names.SET_FINALIZER in pcs.metadata.finalizers else ()
