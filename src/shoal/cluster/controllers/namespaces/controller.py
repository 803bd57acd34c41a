"""Namespace deletion: pods first, then everything else, then the namespace itself.

What is in the namespace is asked of the server and not of the cache, since a namespace that is let go too early leaves
objects behind that nobody can reach. While pods remain nothing else is deleted: what they use stays with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from shoal.api.core import NAMESPACES, Namespace, Pod, is_finished
from shoal.api.meta import Document, now
from shoal.cluster.controllers.discovery import Discovered, ServedKind, discover
from shoal.cluster.controllers.namespaces.conditions import (
    DISCOVERY,
    Problem,
    conditions_after,
    content_problem,
    discovery_problem,
    remaining_problems,
)
from shoal.cluster.controllers.namespaces.content import AT_ONCE, Left, empty
from shoal.cluster.controllers.namespaces.vigil import Vigil
from shoal.cluster.indexes import BY_NAMESPACE, all_pods
from shoal.kube import ApiError, Change, Controller, Key, Manager, NotFound, Requeue
from shoal.kube.backoff import Backoff
from shoal.kube.changes import all_of, field_changed
from shoal.kube.queue import RetryLimits

FINALIZER = "kubernetes"
PODS = ("", "v1", "pods")
LONGEST_PAUSE = 60.0


def add_namespaces(manager: Manager, *, workers: int = 10) -> None:
    """Adds the controller that empties namespaces."""
    manager.add(Namespaces(manager, workers=workers).controller)


class Namespaces:
    """Deletes what is in namespaces that are being deleted."""

    def __init__(self, manager: Manager, *, workers: int) -> None:
        self._client = manager.client
        self._seen = manager.cache.informer(NAMESPACES)
        self._pods = all_pods(manager)
        self._vigil = Vigil(manager.cache, lambda name: self.controller.enqueue(Key("", name)))
        self.controller = Controller(
            "namespace",
            NAMESPACES,
            self.reconcile,
            # What we write into its status asks for nothing.
            when=all_of(_is_deleting, field_changed(lambda found: (found.metadata.is_deleting, found.spec.finalizers))),
            workers=workers,
            timeout=600.0,
            retries=RetryLimits(backoff=Backoff(initial=0.005, cap=LONGEST_PAUSE)),
        )

    async def reconcile(self, key: Key) -> Requeue | None:
        """Deletes a namespace's content as far as that is possible now, and the namespace after the last of it."""
        self._vigil.end(key.name)
        seen = self._seen.store.get(key)
        if seen is None or not seen.metadata.is_deleting:
            return None
        try:
            return await self._end(key.name)
        except NotFound as error:
            if error.status.details.name == key.name:
                return None
            raise

    async def _end(self, name: str) -> Requeue | None:
        live = await self._client.get(NAMESPACES.documents(), name)
        namespace = msgspec.convert(live.content, Namespace)
        deleted = namespace.metadata.deletion_timestamp
        if deleted is None or FINALIZER not in namespace.spec.finalizers:
            return None
        try:
            discovered = await discover(self._client)
        except ApiError as error:
            await self._report(live, {DISCOVERY: ("DiscoveryFailed", error.message)})
            raise
        left, has_pods = await self._emptied(name, discovered, deleted)
        problems = discovery_problem(discovered) | content_problem(left)
        if not has_pods:
            # While pods remain the others have not been looked at.
            problems |= remaining_problems(left)
        live = await self._report(live, problems)
        if any(one.count or one.problem or one.seconds for one in left) or discovered.failures:
            has_just_gone = any(one.count for one in left) and not self._vigil.keep(name, left)
            if has_just_gone and not any(one.problem for one in left) and not discovered.failures:
                return Requeue(after=0)
            return Requeue(after=_pause(left, deleted, now()))
        await self._finalize(live)
        return None

    async def _emptied(self, namespace: str, discovered: Discovered, deleted: datetime) -> tuple[list[Left], bool]:
        """What is left after this round, and whether that is pods, for which all else waits."""
        kinds = [one for one in discovered.preferred() if one.resource.namespaced and one.can("delete")]
        left: list[Left] = []
        for pods in [one for one in kinds if _place(one) == PODS]:
            seconds = grace_left(self._pods.find(BY_NAMESPACE, namespace), deleted, now())
            left.append(await empty(self._client, pods, namespace, seconds=seconds))
            if left[-1].count:
                return left, True
        left += await self._emptied_all(namespace, [one for one in kinds if _place(one) != PODS])
        return left, False

    async def _emptied_all(self, namespace: str, kinds: Sequence[ServedKind]) -> list[Left]:
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(kind: ServedKind) -> Left:
            async with limit:
                return await empty(self._client, kind, namespace)

        return await asyncio.gather(*map(one, kinds))

    async def _report(self, live: Document, problems: dict[str, Problem]) -> Document:
        """Writes how far it is, where that is not said already; gives the namespace as it is then."""
        status = msgspec.convert(live.content, Namespace).status
        after = conditions_after(status.conditions, problems, now())
        patch: dict[str, Any] = {}
        if after != status.conditions:
            patch["conditions"] = msgspec.to_builtins(after)
        if status.phase != "Terminating":
            patch["phase"] = "Terminating"
        if not patch:
            return live
        version = {"resourceVersion": live.metadata.resource_version}
        return await self._client.merge_patch(
            NAMESPACES.documents(),
            live.metadata.name,
            {"metadata": version, "status": patch},
            subresource="status",
        )

    async def _finalize(self, live: Document) -> None:
        finalizers = sorted({name for name in live.content["spec"]["finalizers"] if name != FINALIZER})
        body = {**live.content, "spec": {**live.content["spec"], "finalizers": finalizers}}
        await self._client.update(NAMESPACES.documents(), body, name=live.metadata.name, subresource="finalize")


def grace_left(pods: Iterable[Pod], deleted: datetime, now: datetime) -> int:
    """The longest time that any running pod was given to end; 0 where that has passed since the deletion."""
    longest = max((pod.spec.termination_grace_period_seconds or 0 for pod in pods if not is_finished(pod)), default=0)
    return longest if (now - deleted).total_seconds() < longest else 0


def _pause(left: Iterable[Left], deleted: datetime, now: datetime) -> float:
    """When to look again though nothing was heard: half of the time that it should take, or ever more rarely."""
    seconds = max((one.seconds for one in left), default=0)
    if seconds and not any(one.problem for one in left):
        return seconds // 2 + 1
    return min(max((now - deleted).total_seconds() / 2, 0.5), LONGEST_PAUSE)


def _is_deleting(change: Change[Any]) -> bool:
    return bool(change.latest.metadata.is_deleting)


def _place(kind: ServedKind) -> tuple[str, str, str]:
    return (kind.resource.group, kind.resource.version, kind.resource.plural)
