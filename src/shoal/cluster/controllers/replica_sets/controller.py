"""Keeps as many pods as a ReplicaSet, or a ReplicationController, asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.api.apps import REPLICA_SETS
from shoal.api.core import PODS, REPLICATION_CONTROLLERS, Pod, is_active, is_finished
from shoal.api.meta import Resource, Selector, owner_reference
from shoal.cluster.controllers.claims import (
    Claims,
    concerns_claimants,
    keys_of_claimants,
    selector_of_spec,
    selector_or_give_up,
)
from shoal.cluster.controllers.pod_crew import delete_pods, make_pods
from shoal.cluster.controllers.ranking import first_to_go
from shoal.cluster.controllers.replica_sets.status import failure_condition, next_look, wanted_status
from shoal.cluster.controllers.rests import Rests
from shoal.cluster.controllers.templates import pod_from_template
from shoal.cluster.indexes import BY_CONTROLLER, CHILD_INDEXES, POD_INDEXES, all_pods
from shoal.kube import About, Controller, Key, Manager, Requeue, Watch


def add_replica_sets(
    manager: Manager, *, burst: int = 500, replica_set_workers: int = 5, replication_controller_workers: int = 5
) -> None:
    """Adds the controllers of ReplicaSets and of ReplicationControllers; ``burst`` limits the pods of one reconcile."""
    for kind, workers in (
        (Replicated("replicaset", REPLICA_SETS, tells_terminating=True), replica_set_workers),
        (
            Replicated("replicationcontroller", REPLICATION_CONTROLLERS, tells_terminating=False),
            replication_controller_workers,
        ),
    ):
        sets = ReplicaSets(manager, kind, burst=burst)
        pods = Watch(
            resource=PODS,
            keys=keys_of_claimants(kind.resource, sets.sets, selector_of_spec),
            when=concerns_claimants,
            indexes=POD_INDEXES,
        )
        manager.add(Controller(kind.name, kind.resource, sets.reconcile, watches=[pods], workers=workers))


@dataclass(frozen=True)
class Replicated:
    """A kind that keeps a number of equal pods, and in what it differs from the other one."""

    name: str
    resource: Resource[Any]
    tells_terminating: bool


class ReplicaSets:
    """Makes and deletes pods until there are as many as asked for, and tells how many there are."""

    def __init__(self, manager: Manager, kind: Replicated, *, burst: int) -> None:
        self.kind = kind
        self.burst = burst
        self.sets = manager.cache.informer(kind.resource, indexes=CHILD_INDEXES)
        self.pods = all_pods(manager)
        self.client = manager.client
        self.events = manager.events
        self.writer = manager.writer(f"{kind.name}-controller")
        self.claims = Claims(manager.client, kind.resource, PODS)
        self.rests = Rests()

    async def reconcile(self, key: Key) -> Requeue | None:
        """Brings one set to its size."""
        owner = self.sets.store.get(key)
        if owner is None:
            self.rests.forget(key)
            return None
        if (rest := self.rests.left(owner)) > 0:
            return Requeue(after=rest)
        selector = selector_or_give_up(owner)
        active = await self.claims.claim(owner, selector, self.pods, only=is_active)
        surplus = len(active) - owner.spec.replicas
        error: Exception | None = None
        if not owner.metadata.is_deleting:
            made, error = await self._manage(owner, active, surplus)
            active += made
        now = datetime.now(UTC)
        failure = failure_condition(error, surplus=surplus, now=now) if error is not None else None
        status = wanted_status(owner, owner.status, active, failure=failure, now=now)
        if self.kind.tells_terminating:
            status = msgspec.structs.replace(status, terminating_replicas=self._terminating(owner, selector))
        await self.writer.patch_status(self.kind.resource, owner, before=owner.status, after=status)
        if error is not None:
            raise error
        if surplus == 0:
            self.rests.begin(owner, children=len(active))
        after = next_look(status, active, min_ready_seconds=owner.spec.min_ready_seconds, now=now)
        return Requeue(after=after) if after is not None else None

    async def _manage(self, owner: Any, active: Sequence[Pod], surplus: int) -> tuple[list[Pod], Exception | None]:
        """Makes or deletes as many pods as it takes; those that were made, and what went wrong first, if anything."""
        if surplus < 0:
            return await self._make(owner, min(-surplus, self.burst))
        if surplus > 0:
            return [], await self._delete(owner, active, min(surplus, self.burst))
        return [], None

    async def _make(self, owner: Any, count: int) -> tuple[list[Pod], Exception | None]:
        metadata = owner.metadata
        body = pod_from_template(owner.spec.template, namespace=metadata.namespace, generate_name=f"{metadata.name}-")
        return await make_pods(
            count,
            lambda number: body,
            owner=owner_reference(owner, self.kind.resource),
            about=About.of(self.kind.resource, owner),
            writer=self.writer,
            events=self.events,
        )

    async def _delete(self, owner: Any, active: Sequence[Pod], count: int) -> Exception | None:
        leaving = active
        if count < len(active):
            leaving = first_to_go(active, related_on_node=self._related_on_node(owner), now=datetime.now(UTC))[:count]
        about = About.of(self.kind.resource, owner)
        return await delete_pods(leaving, about=about, client=self.client, events=self.events)

    def _related_on_node(self, owner: Any) -> Mapping[str, int]:
        """How many active pods each node has of this set and its siblings; a set without a controller has none."""
        controller = owner.metadata.controller
        if controller is None:
            return {}
        siblings = self.sets.find(BY_CONTROLLER, controller.uid)
        pods = (pod for sibling in siblings for pod in self.pods.find(BY_CONTROLLER, sibling.metadata.uid))
        return Counter(pod.spec.node_name for pod in pods if is_active(pod))

    def _terminating(self, owner: Any, selector: Selector) -> int:
        return sum(
            pod.metadata.is_deleting and not is_finished(pod) and selector.matches(pod.metadata.labels)
            for pod in self.pods.find(BY_CONTROLLER, owner.metadata.uid)
        )
