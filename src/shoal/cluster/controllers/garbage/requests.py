"""What the collector asks of the server: an object's metadata as they are, its deletion, a change of its metadata."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shoal.api.meta import ObjectMeta, PartialObject, Resource
from shoal.cluster.controllers.garbage.edits import Patch
from shoal.cluster.controllers.garbage.monitors import Item
from shoal.kube import Client, Conflict, Invalid, Key, NotFound
from shoal.kube.queries import Propagation


class Requests:
    """Acts on an object as it was judged, and never on another one."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def live(self, resource: Resource[Any], key: Key) -> ObjectMeta | None:
        """An object's metadata by the server's own word; None where there is no such object."""
        try:
            return (await self._client.get(resource.view(PartialObject), key.name, key.namespace)).metadata
        except NotFound as error:
            if error.status.details.name != key.name:
                raise  # it is the kind that is not there, which says nothing of the object
            return None

    async def delete(self, item: Item, judged: ObjectMeta, propagation: Propagation) -> None:
        """Deletes an object; one whose owners are others by now is left to its next event."""
        resource, key = item.monitor.resource, item.key
        try:
            await self._client.delete(
                resource,
                key.name,
                key.namespace,
                uid=item.uid,
                resource_version=judged.resource_version,
                propagation=propagation,
            )
        except NotFound:
            return
        except Conflict:
            live = await self.live(resource, key)
            if live is None or live.uid != item.uid or live.owner_references != judged.owner_references:
                return
            # Only the rest of it has changed: an object that changes all the time is not to live for ever.
            with suppress(NotFound):
                await self._client.delete(resource, key.name, key.namespace, uid=item.uid, propagation=propagation)

    async def edit(self, item: Item, seen: ObjectMeta, change: Callable[[ObjectMeta], Patch]) -> ObjectMeta | None:
        """Patches an object as it was seen, or, where it has changed, as it is; what it is then, if it was patched."""
        resource, key = item.monitor.resource.view(PartialObject), item.key
        patch = change(seen)
        if not patch:
            return None
        try:
            return (await self._client.json_patch(resource, key.name, patch, key.namespace)).metadata
        except NotFound:
            return None
        except Invalid:
            live = await self.live(resource, key)
            if live is None or live.uid != item.uid or not (patch := change(live)):
                return None
            return (await self._client.json_patch(resource, key.name, patch, key.namespace)).metadata
