"""Reading and writing the ControllerRevisions of one kind of owner."""

from __future__ import annotations

from typing import Any

from shoal.api.apps import CONTROLLER_REVISIONS, ControllerRevision
from shoal.api.meta import HasMetadata, Resource, Selector, owner_reference
from shoal.cluster.controllers.claims import Claims
from shoal.cluster.controllers.revisions.record import Draft, revision_name, same_data
from shoal.cluster.indexes import CHILD_INDEXES
from shoal.kube import AlreadyExists, Manager, NotFound, Writer


class RevisionHistory:
    """The revisions of the owners of one kind."""

    def __init__(self, manager: Manager, owners: Resource[Any], writer: Writer) -> None:
        self._client = manager.client
        self._owners = owners
        self._writer = writer
        self._claims = Claims(manager.client, owners, CONTROLLER_REVISIONS)
        self._revisions = manager.cache.informer(CONTROLLER_REVISIONS, indexes=CHILD_INDEXES)

    async def of(self, owner: HasMetadata, selector: Selector) -> list[ControllerRevision]:
        """An owner's revisions, with orphans that it selects adopted."""
        return await self._claims.claim(owner, selector, self._revisions)

    async def create(
        self, owner: HasMetadata, draft: Draft, collisions: int | None
    ) -> tuple[ControllerRevision, int | None]:
        """Makes a revision under a name that is free, and says how many collisions that took in all.

        One of the same name and data was made before, and not seen yet: it is taken.
        """
        namespace = owner.metadata.namespace
        reference = owner_reference(owner, self._owners)
        while True:
            short_hash = draft.hash_of(collisions)
            name = revision_name(owner.metadata.name, short_hash)
            metadata: dict[str, Any] = {
                "name": name,
                "namespace": namespace,
                "labels": {**draft.labels, draft.hash_label: short_hash},
            }
            if draft.annotations:
                metadata["annotations"] = dict(draft.annotations)
            body = {"metadata": metadata, "data": draft.data, "revision": draft.number}
            try:
                return await self._writer.create(CONTROLLER_REVISIONS, body, owner=reference), collisions
            except AlreadyExists:
                taken = await self._live(name, namespace)
            if taken is not None:
                if same_data(taken.data, draft.data):
                    return taken, collisions
                collisions = (collisions or 0) + 1

    async def renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        """Gives a revision a new number: it is the newest again."""
        metadata = revision.metadata
        patch = {"metadata": {"resourceVersion": metadata.resource_version}, "revision": number}
        return await self._client.merge_patch(
            CONTROLLER_REVISIONS, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
        )

    async def label(self, revision: ControllerRevision, label: str, value: str) -> ControllerRevision:
        """Sets a label of a revision."""
        metadata = revision.metadata
        patch = {"metadata": {"resourceVersion": metadata.resource_version, "labels": {label: value}}}
        return await self._client.merge_patch(
            CONTROLLER_REVISIONS, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
        )

    async def delete(self, revision: ControllerRevision) -> None:
        """Lets a revision go."""
        await self._writer.delete(CONTROLLER_REVISIONS, revision, propagation=None)

    async def _live(self, name: str, namespace: str) -> ControllerRevision | None:
        try:
            return await self._client.get(CONTROLLER_REVISIONS, name, namespace)
        except NotFound:
            return None
