"""The way up from a pod: owner after owner, to the workload that the user made.

Owners of kinds that the grouper knows, or that a definition describes, are followed by informers, which begin when the
first of a kind is met; pods, which may own others, are followed anyway. What else there is, is read when it is needed.
What may not be read ends the way: the last owner that was read is the topmost then.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import structlog

from shoal.api.core import PODS
from shoal.api.meta import Document, OwnerReference, PartialObject, Resource
from shoal.kube import Change, Forbidden, Informer, Manager, NotFound
from shoal.scheduler.grouper.fields import Json, Ungroupable
from shoal.scheduler.grouper.kinds import KNOWN_KINDS, READ_WHOLE
from shoal.scheduler.grouper.kinds.ray import cluster_names
from shoal.scheduler.grouper.kinds.reference import Reference
from shoal.scheduler.grouper.pods import GROUPED_PODS, GroupedPod
from shoal.scheduler.grouper.served_kinds import ServedKinds

MOST_LEVELS: Final = 20
"""No workload has so many owners above each other; a circle of them has."""

_REMEMBERED: Final = 50_000

_Facts = tuple[int, dict[str, str], dict[str, str], list[OwnerReference], tuple[str, ...]]
_Seen = tuple[_Facts, str]

log = structlog.get_logger("shoal.scheduler.grouper")


class OwnerGone(Ungroupable):
    """An owner that a pod or another owner names is not there (any more)."""


class Owners:
    """Finds what owns pods; ``on_change`` is called with the uid of an owner that has changed.

    ``is_described`` says of kinds that no rule knows whether a definition reads more than their metadata.
    """

    def __init__(
        self,
        manager: Manager,
        on_change: Callable[[str], None],
        is_described: Callable[[Resource[Document]], bool],
    ) -> None:
        self._manager = manager
        self._on_change = on_change
        self._is_described = is_described
        self._kinds = ServedKinds(manager.client)
        pods: Informer[GroupedPod] = manager.cache.informer(GROUPED_PODS)
        pods.subscribe(self._changed)
        self._followed: dict[Resource[Document], Informer[Any]] = {PODS.documents(): pods}
        self._plain: OrderedDict[str, tuple[_Seen, Json]] = OrderedDict()

    async def above(self, pod: GroupedPod) -> tuple[Json, ...]:
        """The owners of a pod from the nearest to the topmost; raises Ungroupable where the way up is not clear."""
        found: list[Json] = []
        # A pod may have several owners, of which the first counts; above it each must have one.
        references: Sequence[OwnerReference] = pod.metadata.owner_references[:1]
        while references:
            reference = references[0]
            if len(found) >= MOST_LEVELS:
                raise Ungroupable(f"{reference.kind} {reference.name} is the {MOST_LEVELS + 1}th owner above the pod")
            try:
                owner = await self._read(reference, pod.metadata.namespace, uid=reference.uid)
            except Forbidden:
                log.debug("an owner may not be read: the one below it counts", owner=reference.name)
                break
            if owner is None:
                raise OwnerGone(f"{reference.kind} {reference.name} with uid {reference.uid} owns the pod and is gone")
            found.append(owner)
            references = msgspec.convert(owner["metadata"].get("ownerReferences") or [], list[OwnerReference])
            if len(references) > 1:
                named = ", ".join(f"{one.kind} {one.name}" for one in references)
                raise Ungroupable(
                    f"{reference.kind} {reference.name} has several owners ({named}): leave one, or set annotation "
                    "kai.scheduler/skip-podgrouper on it"
                )
        return tuple(found)

    async def beside(self, reference: Reference, namespace: str) -> Json:
        """An object that a rule asked for."""
        try:
            found = await self._read(reference, namespace)
        except Forbidden as error:
            raise Ungroupable(f"{reference.kind} {reference.name} may not be read: {error.message}") from error
        if found is None:
            raise OwnerGone(f"{reference.kind} {reference.name}, which the pod's group depends on, is not there")
        return found

    async def _read(self, named: OwnerReference | Reference, namespace: str, *, uid: str = "") -> Json | None:
        """An object as it is now, or was a moment ago; None where there is none, or only one of another uid."""
        resource = await self._kinds.resource(named.api_version, named.kind)
        if resource is None:
            return None
        place = namespace if resource.namespaced else ""
        informer = self._followed.get(resource)
        found: Any = informer.get(named.name, place) if informer is not None else None
        if found is None or uid not in ("", found.metadata.uid):
            try:
                found = await self._manager.client.get(resource, named.name, place)
            except NotFound:
                return None
            self._follow(resource)
        return self._shared(resource, found) if uid in ("", found.metadata.uid) else None

    def _shared(self, resource: Resource[Document], found: Any) -> Json:
        """An object as plain values: the same ones for all pods below it, as long as nothing that matters changes."""
        is_described, uid = self._is_described(resource), found.metadata.uid
        # A definition may read any field, also one that the generation does not stand for.
        seen = (_facts(found), found.metadata.resource_version if is_described else "")
        known = self._plain.get(uid)
        if known is not None and known[0] == seen:
            return known[1]
        is_whole = is_described or (resource.group, resource.kind) in READ_WHOLE
        content = found.content if is_whole else {"metadata": msgspec.to_builtins(found.metadata)}
        plain = {**content, "apiVersion": resource.api_version, "kind": resource.kind}
        self._plain[uid] = (seen, plain)
        self._plain.move_to_end(uid)
        if len(self._plain) > _REMEMBERED:
            self._plain.popitem(last=False)
        return plain

    def _follow(self, resource: Resource[Document]) -> None:
        """Begins to watch a kind that is worth it; nobody waits for the watch, which may not be allowed."""
        kind, is_described = (resource.group, resource.kind), self._is_described(resource)
        if resource in self._followed or not (is_described or kind in KNOWN_KINDS):
            return
        shape: Resource[Any] = resource if is_described or kind in READ_WHOLE else resource.view(PartialObject)
        informer = self._manager.cache.informer(shape, is_vital=False)
        self._followed[resource] = informer
        informer.subscribe(self._changed)

    def _changed(self, change: Change[Any]) -> None:
        if change.after is None:
            self._plain.pop(change.latest.metadata.uid, None)
        if change.before is None or change.after is None or _facts(change.before) != _facts(change.after):
            self._on_change(change.latest.metadata.uid)


def _facts(found: Any) -> _Facts:
    """What of an owner a group depends on; the generation stands for its spec."""
    metadata = found.metadata
    return (
        metadata.generation,
        metadata.labels,
        metadata.annotations,
        metadata.owner_references,
        cluster_names(found.content) if isinstance(found, Document) else (),
    )
