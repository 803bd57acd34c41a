"""One controller for each backend: it keeps the scheduler's objects as the PodGangs of its label say.

What a backend wrote is found by the owner that it carries and by the backend's own label, so that a gang which is given
to another backend leaves nothing behind, also where that happened while nobody was looking. Whether it worked is told
in the PodGang's condition ``BackendReady``, and as an event whenever that changes for the worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import structlog

from shoal.api.grove import POD_CLIQUE_SETS, PodCliqueSet, names
from shoal.api.meta import (
    Document,
    OwnerReference,
    Resource,
    find_condition,
    is_controlled_by,
    is_left_behind,
    now,
    owner_reference,
    remove_condition,
    set_condition,
)
from shoal.api.scheduler_grove_io import BACKEND_READY, PENDING, POD_GANGS, PodGang, is_guest
from shoal.gangs.backends.backend import Backend, FieldsDropped, Untranslatable, Wanted, require_served
from shoal.gangs.backends.outcome import Outcome, refused, synced, told_by
from shoal.gangs.backends.registry import Backends, informer_of, selector_of
from shoal.gangs.caches import Caches
from shoal.gangs.retries import RETRIES
from shoal.gangs.versions import is_newer
from shoal.kube import (
    About,
    ApiError,
    Change,
    Controller,
    Foreign,
    Informer,
    Key,
    Manager,
    Requeue,
    Watch,
    by_owner,
    changes,
)
from shoal.kube.errors import BadRequest, Forbidden, Invalid
from shoal.kube.queue import RESYNC
from shoal.kube.store import key_of

log = structlog.get_logger("shoal.gangs.backends")

LOOK_AGAIN = 30.0
"""Seconds after which is looked again at what no watch tells: a name that somebody else holds, a schema too old."""

GOOD_NEWS = 10.0
"""Seconds within which that a scheduler was told is written down, if not sooner with what else is said of the gang."""

_UNDECLARED = "field not declared in schema"
"""What an API server says of a field that its kind does not have, as a fault of its own."""

_BY_OWNER = "owner"
_OWNER = changes.controlling_owner(POD_GANGS)


def add_backends(
    manager: Manager,
    caches: Caches,
    backends: Backends,
    *,
    workers: int = 5,
    look_again: float = LOOK_AGAIN,
    good_news: float = GOOD_NEWS,
) -> None:
    """Adds the controllers of all backends."""
    log.info("Setting up backend controllers")
    for backend in backends:
        keeper = BackendController(manager, caches, backends, backend, look_again=look_again, good_news=good_news)
        controller = Controller(
            f"backend-{backend.name}",
            POD_GANGS,
            keeper.reconcile,
            when=changes.all_of(keeper.concerns, changes.any_of(changes.field_changed(_what_is_said), _is_untold)),
            watches=list(keeper.watches()),
            workers=workers,
            retries=RETRIES,
        )
        manager.add(controller)
        keeper.on_serving(controller)
        log.info("Registered backend controller", backend=backend.name)
    log.info("Backend controllers registered successfully")


class BackendController:
    """Keeps the objects of one scheduler as the gangs of its label say."""

    def __init__(
        self,
        manager: Manager,
        caches: Caches,
        backends: Backends,
        backend: Backend,
        *,
        look_again: float,
        good_news: float,
    ) -> None:
        self._backend = backend
        self._backends = backends
        self._caches = caches
        self._client = manager.client
        self._events = manager.events
        self._writer = manager.writer(f"grove-backend-{backend.name}")
        self._look_again = look_again
        self._good_news = good_news
        self._children: dict[Resource[Document], Informer[Document]] = {
            kind: informer_of(manager, backend, kind) for kind in backend.kinds
        }

    def watches(self) -> Iterator[Watch]:
        """The sets, and every kind that is written: what others change or delete there is put right."""
        yield Watch(resource=POD_CLIQUE_SETS, keys=self._gangs_of, when=_template_changed)
        for kind in self._children:
            yield Watch(
                resource=kind,
                keys=_OWNER,
                when=changes.all_of(changes.field_changed(_what_is_ours), self._is_news),
                label_selector=selector_of(self._backend),
                indexes={_BY_OWNER: by_owner},
            )

    def on_serving(self, controller: Controller) -> None:
        """Has all gangs looked at again when the cluster begins, or ceases, to serve a kind."""

        def look_at_all() -> None:
            for gang in self._caches.gangs.items():
                if self._is_ours(gang):
                    controller.enqueue(key_of(gang))

        for informer in self._children.values():
            informer.on_serving(look_at_all)

    def concerns(self, change: Change[PodGang]) -> bool:
        """A gang that is, or was until now, this backend's."""
        return any(gang is not None and self._is_ours(gang) for gang in (change.before, change.after))

    async def reconcile(self, key: Key) -> Requeue | None:
        """Says to the scheduler what a gang says, and to the gang how that went."""
        gang = self._caches.gangs.store.get(key)
        if gang is None or gang.metadata.is_deleting:
            self._backends.outcomes.forget(key)
            return None  # what is owned by it goes with it
        owner = self._caches.set_of(gang)
        if not self._is_ours(gang):
            await self._leave(gang, owner)
            return None
        if owner is None and not is_guest(gang):
            return None
        log.info("Processing PodGang with backend", backend=self._backend.name, podgang=str(key))
        gang = await self._mark(gang)
        try:
            outcome = await self._synchronize(gang, owner)
        except (BadRequest, Forbidden, Invalid) as error:
            await self._tell(gang, refused(error))
            raise
        except (Foreign, Untranslatable) as error:
            await self._tell(gang, told_by(error))
            return Requeue(after=self._look_again) if isinstance(error, (Foreign, FieldsDropped)) else None
        later = await self._tell(gang, outcome)
        return Requeue(after=later, priority=RESYNC) if later else None

    async def _synchronize(self, gang: PodGang, owner: PodCliqueSet | None) -> Outcome:
        served = self._backends.served()
        wanted = list(self._backend.translate(gang, owner, served))
        reference = owner_reference(gang, POD_GANGS)
        for one in wanted:
            require_served(one.resource, served)
            informer = self._children[one.resource.documents()]
            body = self._labelled(one.body, gang)
            seen = informer.get(body["metadata"]["name"], gang.metadata.namespace)
            if seen is not None and is_left_behind(seen.metadata, reference):
                return Outcome.waiting(f"{one.resource.kind} {seen.metadata.name} of an earlier gang goes first")
            if seen is not None and is_controlled_by(seen.metadata, reference.uid) and _is_to_go(seen, one):
                await self._writer.delete(informer.resource, seen)
                return Outcome.waiting(f"{one.resource.kind} {seen.metadata.name} goes, and is made anew then")
            await self._apply(informer, one, body, reference)
        await self._prune(gang, wanted)
        return synced(wanted)

    async def _apply(
        self, informer: Informer[Document], wanted: Wanted, body: Mapping[str, Any], reference: OwnerReference
    ) -> None:
        try:
            made = await self._writer.apply(informer, body, owner=reference, initial=wanted.initial)
        except ApiError as error:
            if _UNDECLARED in error.message:
                raise FieldsDropped(wanted, error.message.rpartition("): ")[2]) from error
            raise
        if dropped := sorted(set(body.get("spec", {})) - set(made.content.get("spec", {}))):
            raise FieldsDropped(wanted, f"spec.{dropped[0]} is dropped")

    async def _prune(self, gang: PodGang, wanted: Iterable[Wanted]) -> None:
        """Removes what was made for the gang and is not wanted any more, in whatever version it is seen."""
        kept = {(one.resource.full_name, one.body["metadata"]["name"]) for one in wanted}
        for informer in self._children.values():
            for seen in informer.find(_BY_OWNER, gang.metadata.uid):
                is_kept = (informer.resource.full_name, seen.metadata.name) in kept
                if not is_kept and is_controlled_by(seen.metadata, gang.metadata.uid):
                    await self._writer.delete(informer.resource, seen)

    async def _mark(self, gang: PodGang) -> PodGang:
        """Puts on the gang what the scheduler must see there."""
        marks = self._backend.gang_marks(gang)
        patch = {
            "labels": _missing(marks.labels, gang.metadata.labels),
            "annotations": _missing(marks.annotations, gang.metadata.annotations),
        }
        return await self._patch(gang, patch)

    async def _leave(self, gang: PodGang, owner: PodCliqueSet | None) -> None:
        """Takes back all that was done for a gang that is another backend's now."""
        await self._prune(gang, ())
        other = self._backends.of(gang)
        keep = {*owner.metadata.annotations, *owner.metadata.labels} if owner is not None else set()
        if other is not None:
            theirs = other.gang_marks(gang)
            keep |= {*theirs.labels, *theirs.annotations}
        marks = self._backend.gang_marks(gang)
        patch = {
            "labels": _present(marks.labels, gang.metadata.labels, keep),
            "annotations": _present(marks.annotations, gang.metadata.annotations, keep),
        }
        gang = await self._patch(gang, patch)
        if other is None:
            self._backends.outcomes.forget(key_of(gang))
            conditions = remove_condition(gang.status.conditions, BACKEND_READY)
            after = msgspec.structs.replace(gang.status, conditions=conditions)
            await self._writer.patch_status(POD_GANGS, gang, before=gang.status, after=after)

    async def _patch(self, gang: PodGang, patch: Mapping[str, Mapping[str, str | None]]) -> PodGang:
        changed = {key: value for key, value in patch.items() if value}
        if not changed:
            return gang
        metadata = gang.metadata
        body = {"metadata": {"uid": metadata.uid, **changed}}
        return await self._client.merge_patch(
            POD_GANGS, metadata.name, body, metadata.namespace, field_manager=self._writer.manager
        )

    async def _tell(self, gang: PodGang, outcome: Outcome) -> float:
        """Writes the condition where it changed, beside those of others; gives the seconds that good news can wait."""
        latest = self._caches.gangs.store.get(key_of(gang))
        if latest is not None and is_newer(latest, gang):
            gang = latest  # others have written to it meanwhile, and a patch of what we read would be refused
        before = find_condition(gang.status.conditions, BACKEND_READY)
        since = self._backends.outcomes.note(gang, outcome)
        if outcome.is_ready and before is None and since < self._good_news:
            return self._good_news - since
        conditions = set_condition(gang.status.conditions, outcome.condition, now())
        phase = gang.status.phase or PENDING  # a status without one is refused
        after = msgspec.structs.replace(gang.status, phase=phase, conditions=conditions)
        await self._writer.patch_status(POD_GANGS, gang, before=gang.status, after=after)
        if outcome.event and (before is None or (before.reason, before.message) != (outcome.reason, outcome.message)):
            self._events.warning(About.of(POD_GANGS, gang), outcome.event, outcome.message)
        return 0.0

    def _labelled(self, body: Mapping[str, Any], gang: PodGang) -> dict[str, Any]:
        """With the labels by which what this backend made is found again."""
        metadata = body["metadata"]
        ours = {names.SCHEDULER_BACKEND_LABEL: self._backend.name, names.MANAGED_BY_LABEL: names.MANAGER}
        place = {"namespace": gang.metadata.namespace}
        return {**body, "metadata": {**metadata, **place, "labels": {**metadata.get("labels", {}), **ours}}}

    def _is_news(self, change: Change[Document]) -> bool:
        """That an object appears is no news where its gang is ours: it was just made for it, or both are seen first."""
        if change.before is not None or change.after is None:
            return True
        gangs = [self._caches.gangs.store.get(key) for key in _OWNER(change.after)]
        return any(gang is None or not self._is_ours(gang) for gang in gangs)

    def _gangs_of(self, pcs: PodCliqueSet) -> Iterable[Key]:
        return [key_of(gang) for gang in self._caches.gangs_of_set(pcs) if self._is_ours(gang)]

    def _is_ours(self, gang: PodGang) -> bool:
        return gang.metadata.labels.get(names.SCHEDULER_BACKEND_LABEL) == self._backend.name


def _is_to_go(seen: Document, wanted: Wanted) -> bool:
    """Whether an object stands in the way of the one that is wanted: it is going, or cannot be changed into it."""
    return seen.metadata.is_deleting or wanted.fixed(seen.content) != wanted.fixed(wanted.body)


def _missing(wanted: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if present.get(key) != value}


def _present(marks: Mapping[str, str], present: Mapping[str, str], keep: set[str]) -> dict[str, str | None]:
    return {key: None for key, value in marks.items() if present.get(key) == value and key not in keep}


def _what_is_said(gang: PodGang) -> Any:
    """All of a gang that decides what its scheduler is told; which pods are meant matters only by their number."""
    spec, metadata = gang.spec, gang.metadata
    groups = [
        (group.name, group.min_replicas, group.topology_constraint, len(group.pod_references))
        for group in spec.pod_groups
    ]
    topology = (spec.topology_constraint, spec.topology_constraint_group_configs, spec.priority_class_name)
    return metadata.labels, metadata.annotations, metadata.is_deleting, groups, topology


def _is_untold(change: Change[PodGang]) -> bool:
    """Somebody changed or took away what we said of a gang."""
    before, after = (
        find_condition(gang.status.conditions, BACKEND_READY) if gang is not None else None
        for gang in (change.before, change.after)
    )
    return before is not None and before != after


def _what_is_ours(child: Document) -> Any:
    """What of an object may be of our making, which its status never is."""
    metadata = child.metadata
    return (
        metadata.labels,
        metadata.annotations,
        metadata.owner_references,
        metadata.is_deleting,
        child.content.get("spec"),
    )


def _template_changed(change: Change[PodCliqueSet]) -> bool:
    """Backends read a set's labels, annotations and template; how many replicas there are, and their state, no."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    if (before.metadata.labels, before.metadata.annotations) != (after.metadata.labels, after.metadata.annotations):
        return True
    return before.metadata.generation != after.metadata.generation and before.spec.template != after.spec.template
