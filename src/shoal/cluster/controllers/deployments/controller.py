"""Brings the newest version of a Deployment's template to its size, and lets the earlier ones go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from shoal.api.apps import (
    DEPLOYMENTS,
    RECREATE,
    REPLICA_SETS,
    REVISION,
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
    ReplicaSet,
)
from shoal.api.core import PODS, Pod, is_finished
from shoal.api.meta import is_controlled_by, now, owner_reference
from shoal.cluster.controllers.claims import (
    Claims,
    concerns_claimants,
    keys_of_claimants,
    selector_of_spec,
    selector_or_give_up,
)
from shoal.cluster.controllers.deployments import revisions, sizes, status
from shoal.cluster.controllers.deployments.sizes import Resize
from shoal.cluster.indexes import BY_CONTROLLER, CHILD_INDEXES, POD_INDEXES, all_pods
from shoal.kube import (
    About,
    AlreadyExists,
    ApiError,
    Change,
    Controller,
    Key,
    Manager,
    Requeue,
    Watch,
)
from shoal.kube.patches import merge_patch_between


def add_deployments(manager: Manager, *, workers: int = 5) -> None:
    """Adds the controller of Deployments."""
    deployments = Deployments(manager)
    sets = Watch(
        resource=REPLICA_SETS,
        keys=keys_of_claimants(DEPLOYMENTS, deployments.deployments, selector_of_spec),
        when=concerns_claimants,
        indexes=CHILD_INDEXES,
    )
    last_pods = Watch(resource=PODS, keys=deployments.waiting_for_the_last, when=_is_gone, indexes=POD_INDEXES)
    manager.add(
        Controller("deployment", DEPLOYMENTS, deployments.reconcile, watches=[sets, last_pods], workers=workers)
    )


@dataclass
class _Draft:
    """What a reconcile is about to tell of a Deployment; it is written once, at the end."""

    deployment: Deployment
    conditions: list[DeploymentCondition]
    revision: str
    now: datetime


class Deployments:
    """Rolls Deployments out, scales them, and tells how far they are."""

    def __init__(self, manager: Manager) -> None:
        self.deployments = manager.cache.informer(DEPLOYMENTS, indexes=CHILD_INDEXES)
        self.sets = manager.cache.informer(REPLICA_SETS, indexes=CHILD_INDEXES)
        self.pods = all_pods(manager)
        self.client = manager.client
        self.events = manager.events
        self.writer = manager.writer("deployment-controller")
        self.claims = Claims(manager.client, DEPLOYMENTS, REPLICA_SETS)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Takes one Deployment a step further."""
        deployment = self.deployments.store.get(key)
        if deployment is None:
            return None
        selector = selector_or_give_up(deployment)
        claimed = await self.claims.claim(deployment, selector, self.sets)
        annotations = deployment.metadata.annotations
        draft = _Draft(deployment, deployment.status.conditions, annotations.get(REVISION, ""), now())
        new, old = revisions.versions(deployment, claimed)
        if not deployment.metadata.is_deleting:
            draft.conditions = status.paused_or_resumed(deployment, draft.conditions, draft.now)
        if new is not None:
            new = await self._refreshed(draft, new, old)
        if deployment.metadata.is_deleting:
            return await self._tell(draft, status.counted(deployment, draft.conditions, new, old, draft.now))
        everyone = [*old, new] if new is not None else old
        if deployment.spec.paused or sizes.is_being_scaled(deployment, everyone):
            return await self._scale(draft, new, old)
        if deployment.spec.strategy.type == RECREATE:
            return await self._recreate(draft, new, old)
        return await self._roll(draft, new, old)

    def waiting_for_the_last(self, pod: Pod) -> Iterable[Key]:
        """The Deployment that may go on since the last of its pods is gone: one that makes new pods only then."""
        controller = pod.metadata.controller
        owner = self.sets.get(controller.name, pod.metadata.namespace) if controller is not None else None
        if owner is None or controller is None or owner.metadata.uid != controller.uid:
            return ()
        above = owner.metadata.controller
        found = self.deployments.get(above.name, pod.metadata.namespace) if above is not None else None
        if found is None or above is None or found.metadata.uid != above.uid:
            return ()
        if found.spec.strategy.type != RECREATE or self._pods_of(self.sets.find(BY_CONTROLLER, above.uid)):
            return ()
        return (Key(found.metadata.namespace, found.metadata.name),)

    # The ways of a reconcile

    async def _scale(self, draft: _Draft, new: ReplicaSet | None, old: list[ReplicaSet]) -> Requeue | None:
        """Gives every version its share of another size; a rollout does not go on meanwhile."""
        deployment = draft.deployment
        resized = await self._resize(deployment, sizes.scaled_sizes(deployment, new, old))
        new, old = resized.get(new.metadata.name, new) if new is not None else None, _replaced(old, resized)
        if deployment.spec.paused:
            await self._forget_history(deployment, old)
        return await self._tell(draft, status.counted(deployment, draft.conditions, new, old, draft.now))

    async def _recreate(self, draft: _Draft, new: ReplicaSet | None, old: list[ReplicaSet]) -> Requeue | None:
        """Lets all old pods go, and only then makes new ones."""
        deployment = draft.deployment
        resized = await self._resize(deployment, [Resize(one, 0) for one in old if one.spec.replicas > 0])
        old = _replaced(old, resized)
        remaining = any(one.status.replicas for one in old) or any(not is_finished(pod) for pod in self._pods_of(old))
        if resized or remaining:
            return await self._tell_rollout(draft, new, old)
        if new is None:
            new = await self._made(draft, old)
            if new is None:
                return None
        if new.spec.replicas != deployment.spec.replicas:
            new = (await self._resize(deployment, [Resize(new, deployment.spec.replicas)]))[new.metadata.name]
        return await self._finish(draft, new, old)

    async def _roll(self, draft: _Draft, new: ReplicaSet | None, old: list[ReplicaSet]) -> Requeue | None:
        """Makes a few new pods, lets a few old ones go, and so on."""
        deployment = draft.deployment
        if new is None:
            new = await self._made(draft, old)
            if new is None:
                return None
        total = new.spec.replicas + sum(one.spec.replicas for one in old)
        size = sizes.new_size(deployment, new.spec.replicas, total)
        if size != new.spec.replicas:
            new = (await self._resize(deployment, [Resize(new, size)]))[new.metadata.name]
            return await self._tell_rollout(draft, new, old)
        if sizes.removable(deployment, new, old) > 0:
            unhealthy = await self._resize(deployment, sizes.unhealthy_first(deployment, new, old))
            old = _replaced(old, unhealthy)
            surplus = await self._resize(deployment, sizes.surplus_last(deployment, new, old))
            old = _replaced(old, surplus)
            if unhealthy or surplus:
                return await self._tell_rollout(draft, new, old)
        return await self._finish(draft, new, old)

    async def _finish(self, draft: _Draft, new: ReplicaSet, old: list[ReplicaSet]) -> Requeue | None:
        if status.is_complete(draft.deployment, draft.deployment.status):
            await self._forget_history(draft.deployment, old)
        return await self._tell_rollout(draft, new, old)

    # ReplicaSets

    async def _refreshed(self, draft: _Draft, new: ReplicaSet, old: Sequence[ReplicaSet]) -> ReplicaSet:
        """The ReplicaSet of the present template, with its place in the history and what it takes over up to date."""
        deployment, metadata = draft.deployment, new.metadata
        wanted = revisions.annotations_of_new(deployment, metadata.annotations, revisions.next_revision(old))
        patch: dict[str, Any] = {}
        if changed := merge_patch_between(metadata.annotations, wanted):
            patch["metadata"] = {"annotations": changed}
        if new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            patch["spec"] = {"minReadySeconds": deployment.spec.min_ready_seconds}
        if patch:
            new = await self._patched(new, patch)
        draft.revision = wanted.get(REVISION, "")
        draft.conditions = status.found_set(deployment, draft.conditions, metadata.name, draft.now)
        return new

    async def _made(self, draft: _Draft, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
        """The new ReplicaSet of a template that has none; None where that must wait, and why is told."""
        deployment = draft.deployment
        about = About.of(DEPLOYMENTS, deployment)
        replicas = sizes.new_size(deployment, 0, sum(one.spec.replicas for one in old))
        revision = revisions.next_revision(old)
        body = revisions.wanted_set(deployment, revision=revision, replicas=replicas)
        name = body["metadata"]["name"]
        try:
            new: ReplicaSet = await self.writer.create(
                REPLICA_SETS, body, owner=owner_reference(deployment, DEPLOYMENTS)
            )
        except AlreadyExists:
            if not self._is_taken(deployment, name):
                raise
            # The next try, which this change asks for, looks for another name.
            count = (deployment.status.collision_count or 0) + 1
            await self._tell(draft, msgspec.structs.replace(deployment.status, collision_count=count))
            return None
        except ApiError as error:
            if error.has_cause("NamespaceTerminating"):
                return None
            problem = f'Failed to create new replica set "{name}": {error.message}'
            conditions = status.refused_set(deployment, draft.conditions, problem, draft.now)
            await self._tell(draft, msgspec.structs.replace(deployment.status, conditions=conditions))
            self.events.warning(about, "ReplicaSetCreateError", problem)
            raise
        if replicas > 0:
            self.events.normal(about, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
        draft.revision = str(revision)
        draft.conditions = status.created_set(deployment, draft.conditions, name, draft.now)
        return new

    def _is_taken(self, deployment: Deployment, name: str) -> bool:
        """Whether another ReplicaSet has this name; False also where the cache does not show it yet."""
        holder = self.sets.get(name, deployment.metadata.namespace)
        if holder is None:
            return False
        is_ours = is_controlled_by(holder.metadata, deployment.metadata.uid)
        return not (is_ours and revisions.same_template(holder.spec.template, deployment.spec.template))

    async def _resize(self, deployment: Deployment, resizes: Iterable[Resize]) -> dict[str, ReplicaSet]:
        """Gives ReplicaSets their sizes; those that had another one, as they are then, by name."""
        resized = {}
        told = revisions.size_annotations(deployment)
        for found, size in resizes:
            before, annotations = found.spec.replicas, found.metadata.annotations
            if size == before and told.items() <= annotations.items():
                continue
            patch = {"metadata": {"annotations": told}, "spec": {"replicas": size}}
            resized[found.metadata.name] = await self._patched(found, patch)
            if size != before:
                way = "up" if size > before else "down"
                message = f"Scaled {way} replica set {found.metadata.name} from {before} to {size}"
                self.events.normal(About.of(DEPLOYMENTS, deployment), "ScalingReplicaSet", message)
        return resized

    async def _forget_history(self, deployment: Deployment, old: Iterable[ReplicaSet]) -> None:
        for one in revisions.forgettable(old, status.history_limit(deployment)):
            await self.writer.delete(REPLICA_SETS, one)

    async def _patched(self, found: ReplicaSet, patch: dict[str, Any]) -> ReplicaSet:
        metadata = found.metadata
        version = {"resourceVersion": metadata.resource_version}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
        return await self.client.merge_patch(
            REPLICA_SETS, metadata.name, body, metadata.namespace, field_manager=self.writer.manager
        )

    def _pods_of(self, sets: Iterable[ReplicaSet]) -> list[Pod]:
        return [pod for one in sets for pod in self.pods.find(BY_CONTROLLER, one.metadata.uid)]

    # What is told

    async def _tell_rollout(self, draft: _Draft, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Requeue | None:
        return await self._tell(draft, status.rolled_out(draft.deployment, draft.conditions, new, old, draft.now))

    async def _tell(self, draft: _Draft, after: DeploymentStatus) -> Requeue | None:
        """Writes status and revision where they differ; else says when to look whether the rollout is late."""
        deployment = draft.deployment
        metadata: dict[str, Any] = {"resourceVersion": deployment.metadata.resource_version}
        if draft.revision != deployment.metadata.annotations.get(REVISION, ""):
            metadata["annotations"] = {REVISION: draft.revision}
        patch = merge_patch_between(msgspec.to_builtins(deployment.status), msgspec.to_builtins(after))
        if not patch and "annotations" not in metadata:
            seconds = status.next_look(deployment, after, draft.now)
            is_rolling = not deployment.spec.paused and not deployment.metadata.is_deleting
            return Requeue(after=seconds) if seconds is not None and is_rolling else None
        await self.client.merge_patch(
            DEPLOYMENTS,
            deployment.metadata.name,
            {"metadata": metadata, "status": patch},
            deployment.metadata.namespace,
            subresource="status",
            field_manager=self.writer.manager,
        )
        return None


def _replaced(sets: Iterable[ReplicaSet], by: dict[str, ReplicaSet]) -> list[ReplicaSet]:
    return [by.get(one.metadata.name, one) for one in sets]


def _is_gone(change: Change[Any]) -> bool:
    return change.after is None
