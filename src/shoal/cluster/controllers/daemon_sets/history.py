"""The revisions of a DaemonSet: the one of its present template, found, numbered or made, and the older ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.api.apps import DAEMON_SETS, REVISION_HASH, ControllerRevision, DaemonSet
from shoal.api.core import PODS, Pod
from shoal.api.meta import Selector
from shoal.cluster.controllers.revisions import (
    Draft,
    RevisionHistory,
    in_order,
    latest_number,
    revision_data,
    same_data,
    surplus,
)
from shoal.cluster.controllers.template_hash import template_hash
from shoal.kube import Manager, Writer


class DaemonHistory:
    """Reads and writes the revisions of DaemonSets."""

    def __init__(self, manager: Manager, writer: Writer) -> None:
        self._client = manager.client
        self._writer = writer
        self._revisions = RevisionHistory(manager, DAEMON_SETS, writer)

    async def of(
        self, daemon_set: DaemonSet, selector: Selector, pods: Sequence[Pod]
    ) -> tuple[ControllerRevision, list[ControllerRevision], int | None]:
        """The revision of the present template, the older ones, and the collisions of names so far."""
        collisions = daemon_set.status.collision_count
        data = revision_data(daemon_set.spec.template)
        same: list[ControllerRevision] = []
        old: list[ControllerRevision] = []
        for found in in_order(await self._revisions.of(daemon_set, selector)):
            has_hash = REVISION_HASH in found.metadata.labels
            revision = found if has_hash else await self._revisions.label(found, REVISION_HASH, found.metadata.name)
            (same if same_data(revision.data, data) else old).append(revision)
        number = latest_number(old) + 1
        if not same:
            draft = self._draft(daemon_set, number)
            current, collisions = await self._revisions.create(daemon_set, draft, collisions)
            return current, old, collisions
        current = same[-1]
        if len(same) > 1:
            await self._merge(current, same[:-1], pods)
        if current.revision < number:
            current = await self._revisions.renumber(current, number)
        return current, old, collisions

    async def truncate(self, daemon_set: DaemonSet, old: Sequence[ControllerRevision], pods: Iterable[Pod]) -> None:
        """Lets the oldest revisions go that are more than the DaemonSet keeps, and that no pod is made from."""
        limit = daemon_set.spec.revision_history_limit
        if len(old) <= limit:
            return
        live = {pod.metadata.labels.get(REVISION_HASH) for pod in pods}
        for revision in surplus(
            old,
            limit=limit,
            is_live=lambda found: found.metadata.labels.get(REVISION_HASH) in live,
            live_count=True,
        ):
            await self._revisions.delete(revision)

    def _draft(self, daemon_set: DaemonSet, number: int) -> Draft:
        template = daemon_set.spec.template
        return Draft(
            number=number,
            data=revision_data(template),
            labels=(template.get("metadata") or {}).get("labels") or {},
            annotations=daemon_set.metadata.annotations,
            hash_label=REVISION_HASH,
            hash_of=lambda count: template_hash(template, count),
        )

    async def _merge(
        self, kept: ControllerRevision, doubles: Sequence[ControllerRevision], pods: Sequence[Pod]
    ) -> None:
        """Makes one of several revisions of the same template: the pods of all of them become pods of the one kept."""
        short_hash = kept.metadata.labels[REVISION_HASH]
        for pod in pods:
            if pod.metadata.labels.get(REVISION_HASH) != short_hash:
                patch = {"metadata": {"uid": pod.metadata.uid, "labels": {REVISION_HASH: short_hash}}}
                await self._client.merge_patch(
                    PODS, pod.metadata.name, patch, pod.metadata.namespace, field_manager=self._writer.manager
                )
        for double in doubles:
            await self._revisions.delete(double)
