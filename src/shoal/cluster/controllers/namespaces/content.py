"""Deletes all objects of one kind in one namespace, and says what is left of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from shoal.api.meta import PartialObject, Resource
from shoal.cluster.controllers.discovery import ServedKind
from shoal.kube import ApiError, Client, ConnectionFault, Key, Listing, NotFound

AT_ONCE = 10
FINALIZER_SECONDS = 15
"""How long finalizers are thought to take."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left of a kind in a namespace after its deletion was asked for."""

    resource: Resource[PartialObject]
    objects: dict[str, Key] = field(default_factory=dict)
    """The keys of what is still there, by uid."""
    version: str = ""
    """The resource version as of which they were there."""
    finalizers: Counter[str] = field(default_factory=Counter)
    seconds: int = 0
    """How long the rest is thought to take; 0 where nothing says so."""
    problem: str = ""
    """Why it could not be deleted, in words."""

    @property
    def count(self) -> int:
        """How many are still there."""
        return len(self.objects)


async def empty(client: Client, kind: ServedKind, namespace: str, *, seconds: int = 0) -> Left:
    """Deletes a kind's objects; ``seconds`` is the time that they are given to go by themselves."""
    resource = kind.resource
    try:
        found = await _listed(client, kind, namespace)
        if found is None or not _is_on_its_way(found):
            await _delete_all(client, kind, namespace, found)
            found = await _listed(client, kind, namespace)
    except (ApiError, ConnectionFault) as error:
        return Left(resource=resource, seconds=seconds, problem=getattr(error, "message", "") or str(error))
    if found is None:
        return Left(resource=resource, seconds=seconds)
    return _left(resource, namespace, found, seconds)


def _left(resource: Resource[PartialObject], namespace: str, found: Listing[PartialObject], seconds: int) -> Left:
    objects = _keys(found)
    if not objects:
        return Left(resource=resource)
    finalizers = Counter(name for item in found.items for name in item.metadata.finalizers)
    problem = ""
    if not seconds and finalizers:
        seconds = FINALIZER_SECONDS
    elif not seconds:
        place = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        problem = f"unexpected items still remain in namespace: {namespace} for gvr: {place}"
    return Left(
        resource=resource,
        objects=objects,
        version=found.resource_version,
        finalizers=finalizers,
        seconds=seconds,
        problem=problem,
    )


def _is_on_its_way(found: Listing[PartialObject]) -> bool:
    """Whether the deletion of every object has been asked for: asking again changes nothing."""
    return not found.undecodable and all(item.metadata.is_deleting for item in found.items)


def _keys(found: Listing[PartialObject]) -> dict[str, Key]:
    keys = {item.metadata.uid: Key(item.metadata.namespace, item.metadata.name) for item in found.items}
    return keys | {error.uid: Key(error.namespace, error.name) for error in found.undecodable}


async def _listed(client: Client, kind: ServedKind, namespace: str) -> Listing[PartialObject] | None:
    """All objects of a kind; None where it cannot be listed."""
    if not kind.can("list"):
        return None
    try:
        return await client.list(kind.resource, namespace)
    except ApiError as error:
        if _is_unsupported(error):
            return None
        raise


async def _delete_all(client: Client, kind: ServedKind, namespace: str, found: Listing[PartialObject] | None) -> None:
    if kind.can("deletecollection"):
        try:
            # Nothing is to be orphaned: all that is in the namespace goes.
            await client.delete_collection(kind.resource, namespace, propagation="Background")
            return
        except ApiError as error:
            if not _is_unsupported(error):
                raise
    if found is None:
        return
    limit = asyncio.Semaphore(AT_ONCE)

    async def delete(name: str) -> None:
        async with limit:
            try:
                await client.delete(kind.resource, name, namespace, propagation="Background")
            except ApiError as error:
                if not _is_unsupported(error):
                    raise

    await asyncio.gather(*(delete(key.name) for key in _keys(found).values()))


def _is_unsupported(error: ApiError) -> bool:
    """Whether there is no such verb, or no such thing (any more)."""
    return isinstance(error, NotFound) or error.code == 405
