"""What TrainJobs own: where it is seen, and how one object of it is written.

Kinds that others have many objects of are watched by the label that ours have. What is not seen there is looked for on
the server before anything is made of it.
"""

from __future__ import annotations

from typing import Any

from shoal.api.core import CONFIG_MAPS
from shoal.api.meta import Document, OwnerReference, Resource, is_controlled_by, is_left_behind, owner_reference
from shoal.api.trainer import TRAIN_JOBS, TrainJob, names
from shoal.kube import Change, Foreign, Informer, Manager, NotFound, Watch
from shoal.kube.changes import controlling_owner
from shoal.kube.writer import with_owner
from shoal.training.framework import Framework, Seen, Unbuildable, Wanted

TRAIN_JOB_LABEL = f"{names.GROUP}/trainjob-name"
"""On everything that is made for a TrainJob besides its JobSet, with the TrainJob's name."""
LOOK_AGAIN = 5.0
"""Seconds after which something that is on its way out is looked for again, should no event tell that it is gone."""


class OnItsWayOut(Exception):
    """An object of the wanted name is going, and must be gone before it can be made anew."""


class Waiting(Exception):
    """An object cannot be made before something else comes about; says what, and what to do if it does not."""


class Children:
    """The kinds that are made for TrainJobs, and the writing of one object."""

    def __init__(self, manager: Manager, framework: Framework) -> None:
        cache = manager.cache
        self._client = manager.client
        self._writer = manager.writer(names.FIELD_MANAGER)
        self._runs: Informer[Document] = cache.informer(framework.runs)
        kinds = dict.fromkeys([CONFIG_MAPS.documents(), *framework.kinds])
        self._informers: dict[Resource[Document], Informer[Document]] = {
            kind: cache.informer(kind, label_selector=TRAIN_JOB_LABEL) for kind in kinds
        }

    def watches(self) -> list[Watch]:
        """What wakes a TrainJob: any change of what runs it, and of other objects whatever is of our making."""
        keys = controlling_owner(TRAIN_JOBS)
        return [
            Watch(resource=self._runs.resource, keys=keys),
            *(
                Watch(resource=kind, keys=keys, when=has_changed, label_selector=TRAIN_JOB_LABEL)
                for kind in self._informers
            ),
        ]

    def running(self, train_job: TrainJob) -> Document | None:
        """The object that runs a TrainJob's pods, if it is there and its own."""
        found = self._runs.get(train_job.metadata.name, train_job.metadata.namespace)
        return found if found is not None and is_controlled_by(found.metadata, train_job.metadata.uid) else None

    async def stop(self, found: Document) -> None:
        """Deletes the object that runs pods, and the pods after it."""
        await self._writer.delete(self._runs.resource, found)

    def seen(self, train_job: TrainJob) -> Seen:
        """What is there of the kinds that plugins build, in a TrainJob's namespace."""
        return lambda kind, name: self._informers[kind].get(name, train_job.metadata.namespace)

    async def find(self, resource: Resource[Any], train_job: TrainJob, name: str) -> Document | None:
        """An object of a TrainJob, or of somebody else under its name, as it is seen or else as it is on the server.

        Raises OnItsWayOut where it is that of an earlier TrainJob of the same name, or is being deleted.
        """
        kind, namespace = resource.documents(), train_job.metadata.namespace
        found = self._informers[kind].get(name, namespace)
        if found is None:
            try:
                found = await self._client.get(kind, name, namespace)
            except NotFound:
                return None
        check_is_staying(found, _owner(train_job))
        return found

    async def make(self, resource: Resource[Any], train_job: TrainJob, name: str, body: dict[str, Any]) -> Document:
        """Makes an object that was looked for and is not there."""
        kind, namespace = resource.documents(), train_job.metadata.namespace
        whole = with_owner(_identified(body, train_job, name, is_labelled=True), _owner(train_job))
        return await self._client.apply(
            kind, whole, namespace, name=name, field_manager=names.FIELD_MANAGER, force=False
        )

    async def keep(self, train_job: TrainJob, wanted: Wanted) -> None:
        """Makes an object as it should be.

        Raises OnItsWayOut, Waiting, Foreign, Unbuildable, and what the server answers.
        """
        owner = _owner(train_job)
        is_runner = wanted.resource == self._runs.resource
        informer = self._runs if is_runner else self._informers[wanted.resource]
        if not informer.is_served:
            kind = f"{wanted.resource.kind} of {wanted.resource.api_version}"
            raise Unbuildable(f"the cluster does not serve {kind}: {wanted.unserved or 'install it'}")
        if is_runner:
            # All of them are watched: what is not seen is not there.
            seen = informer.get(wanted.name, train_job.metadata.namespace)
        else:
            seen = await self.find(wanted.resource, train_job, wanted.name)
        if seen is not None:
            check_is_staying(seen, owner)
            if not is_controlled_by(seen.metadata, owner.uid):
                raise Foreign(wanted.resource, seen, owner)
            if wanted.is_kept(seen):
                return
        if wanted.waits_for:
            raise Waiting(wanted.waits_for)
        body = _identified(wanted.make(), train_job, wanted.name, is_labelled=not is_runner)
        await self._writer.apply(informer, body, owner=owner, initial=wanted.initial)


def has_changed(change: Change[Document]) -> bool:
    """Whether anything of an object differs that is ours to keep: what is observed of it is not, nor is bookkeeping."""
    if change.before is None or change.after is None:
        return True
    return _kept(change.before) != _kept(change.after)


def check_is_staying(found: Document, owner: OwnerReference) -> None:
    """Raises OnItsWayOut where an object is going: deleted, or left by an earlier owner of the same name."""
    is_ours = is_controlled_by(found.metadata, owner.uid)
    if is_left_behind(found.metadata, owner) or (is_ours and found.metadata.is_deleting):
        raise OnItsWayOut(found.metadata.name)


def _owner(train_job: TrainJob) -> OwnerReference:
    return owner_reference(train_job, TRAIN_JOBS)


def _kept(child: Document) -> tuple[Any, ...]:
    metadata = child.metadata
    content = {key: value for key, value in child.content.items() if key not in ("metadata", "status")}
    return (metadata.labels, metadata.annotations, metadata.owner_references, metadata.is_deleting, content)


def _identified(body: Any, train_job: TrainJob, name: str, *, is_labelled: bool) -> dict[str, Any]:
    """An object with its name, and with the label by which it is watched."""
    metadata = {**(body.get("metadata") or {}), "name": name, "namespace": train_job.metadata.namespace}
    if is_labelled:
        metadata["labels"] = {**(metadata.get("labels") or {}), TRAIN_JOB_LABEL: train_job.metadata.name}
    return {**body, "metadata": metadata}
