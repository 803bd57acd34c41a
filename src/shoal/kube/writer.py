"""How a controller writes: only the fields it owns, only where they differ, never to an object that is not its own.

Children are applied (server-side apply, one field manager for each controller). What is in the cache tells whether an
apply would change anything; a controller at rest writes nothing. The first apply of a name follows a live 404, and
takes its fields back where the object was there after all; later ones carry the uid that was seen: an object that
somebody else made under the same name is never taken over.

A few values come back from the server in another form than they were sent (defaults inside an atomic list, say), so
that the comparison can never succeed. For these the writer remembers what it sent and what the server made of it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.api.meta.objects import Document, HasMetadata, OwnerReference
from shoal.api.meta.ownership import is_controlled_by
from shoal.api.meta.resource import Resource
from shoal.kube.client import Client
from shoal.kube.errors import Conflict, Invalid, NotFound, ReconcileError
from shoal.kube.informer import Informer
from shoal.kube.managed_fields import difference, fields_of, owned_part, without
from shoal.kube.patches import merge_patch_between
from shoal.kube.queries import Propagation
from shoal.kube.store import Key

_REMEMBERED = 10_000


class Foreign(ReconcileError):
    """An object of the wanted name exists, and belongs to somebody else."""

    def __init__(self, resource: Resource[Any], found: HasMetadata, owner: OwnerReference) -> None:
        holder = found.metadata.controller
        whose = f"belongs to {holder.kind} {holder.name}" if holder else f"is not owned by {owner.kind} {owner.name}"
        super().__init__(
            f"{resource.kind} {Key(found.metadata.namespace, found.metadata.name)} exists and {whose}: "
            f"delete it, or rename {owner.kind} {owner.name}"
        )


class Writer:
    """Writes as one field manager."""

    def __init__(self, client: Client, manager: str) -> None:
        self._client = client
        self.manager = manager
        self._settled: OrderedDict[tuple[Any, ...], tuple[bytes, bytes]] = OrderedDict()

    async def apply(
        self,
        children: Informer[Document],
        wanted: Mapping[str, Any],
        *,
        owner: OwnerReference | None,
        initial: Mapping[str, Any] | None = None,
    ) -> Document:
        """Makes a child so, and gives it as it is then.

        ``owner`` is written as its controlling owner, and an existing object must have it already. ``initial`` holds
        fields that are set when the child is made and belong to others from then on.
        """
        resource = children.resource
        if resource.type is not Document:
            raise TypeError(f"{resource.plural} are applied whole: give the informer of the resource's documents()")
        if not wanted.get("metadata", {}).get("name"):
            raise ValueError(f"the {resource.kind} to apply has no metadata.name: give it one")
        body = with_owner(wanted, owner)
        namespace, name = body["metadata"].get("namespace", ""), body["metadata"]["name"]
        seen = children.get(name, namespace)
        if seen is None:
            seen = await self._live(resource, name, namespace)
        if seen is None:
            return await self._make(resource, body, owner, initial)
        if owner is not None and not is_controlled_by(seen.metadata, owner.uid):
            raise Foreign(resource, seen, owner)
        if self._is_settled(resource, body, seen, "", initial):
            return seen
        if initial is not None:
            seen = await self._hand_over(resource, seen, initial)
        return await self._send(resource, body, self.manager, uid=seen.metadata.uid)

    async def apply_status(
        self, resource: Resource[Document], seen: Document, status: Mapping[str, Any] | msgspec.Struct
    ) -> Document:
        """Makes a status so by server-side apply: for kinds whose condition list is a map by type."""
        identity = {"name": seen.metadata.name, "namespace": seen.metadata.namespace}
        body = {"metadata": {key: value for key, value in identity.items() if value}, "status": _plain(status)}
        if self._is_settled(resource, body, seen, "status"):
            return seen
        return await self._send(resource, body, self.manager, uid=seen.metadata.uid, subresource="status")

    async def patch_status(
        self,
        resource: Resource[Any],
        seen: HasMetadata,
        *,
        before: Mapping[str, Any] | msgspec.Struct,
        after: Mapping[str, Any] | msgspec.Struct,
    ) -> bool:
        """Changes a status from what was read to what it should be; False where there was nothing to change.

        The patch carries the version that was read, and is refused where the object has changed since.
        """
        patch = merge_patch_between(_plain(before), _plain(after))
        if not patch:
            return False
        version = {"resourceVersion": seen.metadata.resource_version}
        await self._client.merge_patch(
            resource,
            seen.metadata.name,
            {"metadata": version, "status": patch},
            seen.metadata.namespace,
            subresource="status",
            field_manager=self.manager,
        )
        return True

    async def create(self, resource: Resource[Any], body: Mapping[str, Any], *, owner: OwnerReference | None) -> Any:
        """Creates an object that is not applied later, such as a pod."""
        content = with_owner(body, owner)
        namespace = content["metadata"].get("namespace", "")
        return await self._client.create(resource, content, namespace, field_manager=self.manager)

    async def delete(
        self, resource: Resource[Any], found: HasMetadata, *, propagation: Propagation | None = "Background"
    ) -> None:
        """Deletes the very object that was seen; one that is gone or going is left alone."""
        metadata = found.metadata
        if getattr(metadata, "deletion_timestamp", None) is not None:
            return
        try:
            await self._client.delete(
                resource, metadata.name, metadata.namespace, uid=metadata.uid, propagation=propagation
            )
        except NotFound:
            return

    async def prune(self, resource: Resource[Any], seen: Iterable[HasMetadata], keep: Iterable[str]) -> None:
        """Deletes those of the children seen that are not wanted any more, by name."""
        kept = set(keep)
        for child in seen:
            if child.metadata.name not in kept:
                await self.delete(resource, child)

    async def set_finalizer(self, resource: Resource[Any], found: HasMetadata, finalizer: str) -> bool:
        """Makes sure that an object is not gone before we have cleaned up after it; False where it was set."""
        finalizers = found.metadata.finalizers
        if finalizer in finalizers or found.metadata.is_deleting:
            return False
        await self._finalizers(resource, found, [*finalizers, finalizer])
        return True

    async def clear_finalizer(self, resource: Resource[Any], found: HasMetadata, finalizer: str) -> bool:
        """Lets an object go; False where the finalizer was not there, or the object is gone."""
        finalizers = found.metadata.finalizers
        if finalizer not in finalizers:
            return False
        try:
            await self._finalizers(resource, found, [name for name in finalizers if name != finalizer])
        except NotFound:
            return False
        return True

    async def _finalizers(self, resource: Resource[Any], found: HasMetadata, names: list[str]) -> None:
        metadata = found.metadata
        patch = {"metadata": {"resourceVersion": metadata.resource_version, "finalizers": names}}
        await self._client.merge_patch(resource, metadata.name, patch, metadata.namespace, field_manager=self.manager)

    async def _make(
        self,
        resource: Resource[Document],
        wanted: Mapping[str, Any],
        owner: OwnerReference | None,
        initial: Mapping[str, Any] | None,
    ) -> Document:
        """Makes an object that is not there; one that somebody else makes in the same moment is left to them."""
        made = await self._send(resource, wanted, self.manager, force=False, initial=initial)
        others = [
            entry for entry in made.content["metadata"].get("managedFields", ()) if entry["manager"] != self.manager
        ]
        if others and owner is not None:
            # It was there after all, and had none of our fields: we take them back, and our claim with them.
            await self._send(resource, {"metadata": _identity(made)}, self.manager, uid=made.metadata.uid)
            raise Foreign(resource, made, owner)
        return made

    async def _hand_over(self, resource: Resource[Document], seen: Document, initial: Mapping[str, Any]) -> Document:
        """Gives the initial fields that are still ours to a manager that applies them this once, before we let go.

        They stay ours after the child was made until we have something else to write, which would take them away. Their
        values are the live ones: what is initial may have changed since. That manager does not insist: where somebody
        has changed one of them since it was read it is theirs, and this is a lost race.
        """
        held = owned_part(fields_of(seen.content, self.manager) or {}, initial, seen.content)
        if not held:
            return seen
        body = merged({"metadata": _identity(seen)}, held)
        keeper = f"{self.manager}-initial"
        return await self._send(resource, body, keeper, uid=seen.metadata.uid, force=False)

    def _is_settled(
        self, resource: Resource[Any], wanted: Mapping[str, Any], seen: Document, subresource: str,
        initial: Mapping[str, Any] | None = None,
    ) -> bool:  # fmt: skip
        owned = fields_of(seen.content, self.manager, subresource=subresource)
        if owned is None:
            return False
        owned = without(owned, initial or {})
        if difference(wanted, seen.content, owned) is None:
            return True
        remembered = self._settled.get((resource, seen.metadata.uid, subresource))
        return remembered == (_digest(wanted), _state(seen, owned, subresource))

    async def _send(
        self, resource: Resource[Document], wanted: Mapping[str, Any], manager: str, *, uid: str = "",
        subresource: str = "", force: bool = True, initial: Mapping[str, Any] | None = None,
    ) -> Document:  # fmt: skip
        metadata = wanted["metadata"]
        body = merged({**wanted, "metadata": metadata | ({"uid": uid} if uid else {})}, initial)
        # A controller insists on its fields: whoever took one would otherwise stop it for good.
        try:
            written = await self._client.apply(
                resource, body, metadata.get("namespace", ""), name=metadata["name"], field_manager=manager,
                force=force, subresource=subresource,
            )  # fmt: skip
        except Invalid as error:
            if uid and any(cause.field == "metadata.uid" for cause in error.causes):
                # Another object has taken the name since: a lost race, not a wrong object.
                raise Conflict(error.status, request=error.request) from error
            raise
        owned = fields_of(written.content, manager, subresource=subresource)
        if manager != self.manager or owned is None:
            return written
        owned = without(owned, initial or {})
        if difference(wanted, written.content, owned) is not None:
            place = (resource, written.metadata.uid, subresource)
            self._settled[place] = (_digest(wanted), _state(written, owned, subresource))
            self._settled.move_to_end(place)
            if len(self._settled) > _REMEMBERED:
                self._settled.popitem(last=False)
        return written

    async def _live(self, resource: Resource[Document], name: str, namespace: str) -> Document | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None


def with_owner(body: Mapping[str, Any], owner: OwnerReference | None) -> dict[str, Any]:
    """An object with its controlling owner written in."""
    if owner is None:
        return dict(body)
    metadata = {**body["metadata"], "ownerReferences": [msgspec.to_builtins(owner)]}
    return {**body, "metadata": metadata}


def merged(wanted: Mapping[str, Any], more: Mapping[str, Any] | None) -> dict[str, Any]:
    """Two partial objects as one; maps are merged, anything else of ``more`` wins."""
    result = dict(wanted)
    for key, value in (more or {}).items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return result


def _identity(found: Document) -> dict[str, str]:
    identity = {"name": found.metadata.name, "namespace": found.metadata.namespace}
    return {key: value for key, value in identity.items() if value}


def _plain(status: Mapping[str, Any] | msgspec.Struct) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(status))
    return plain


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).digest()


def _state(found: Document, owned: Mapping[str, Any], subresource: str) -> bytes:
    """What of an object decides whether our apply would change it: our record, and everything but bookkeeping."""
    hidden = {"metadata"} if subresource else {"metadata", "status"}
    content = {key: value for key, value in found.content.items() if key not in hidden}
    return _digest([content, owned, found.metadata.labels, found.metadata.annotations])
