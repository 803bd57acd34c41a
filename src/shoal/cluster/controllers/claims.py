"""Whose children are whose: those that an owner controls already, and those without a controller that it may adopt.

An owner finds its children by the uid in their controller reference. A child that nobody controls belongs to whoever
selects its labels, and is adopted; a child that is controlled but no longer selected is released. Neither is done by an
owner that is being deleted, and an adoption only after the server itself has said that the owner still is what the
cache shows: a child that is adopted by an owner on its way out would be collected with it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from shoal.api.meta import (
    SELECT_NOTHING,
    HasMetadata,
    InvalidSelector,
    LabelSelector,
    LabelSelectorRequirement,
    PartialObject,
    Resource,
    Selector,
    owner_reference,
)
from shoal.cluster.indexes import BY_CONTROLLER, orphans_of
from shoal.kube import Change, Client, Informer, Invalid, Key, NotFound, TerminalError
from shoal.kube.changes import controlling_owner

T = TypeVar("T", bound=HasMetadata)


class Claims:
    """Finds, adopts and releases the children of one kind for owners of another."""

    def __init__(self, client: Client, owners: Resource[Any], children: Resource[Any], *, finalizer: str = "") -> None:
        """``finalizer`` is put on a child that is adopted, and taken off one that is released."""
        self._finalizer = finalizer
        self._client = client
        self._owners = owners
        self._children = children

    async def claim(
        self,
        owner: HasMetadata,
        selector: Selector,
        informer: Informer[T],
        *,
        only: Callable[[T], bool] = lambda child: True,
    ) -> list[T]:
        """The children of an owner, with what had to be adopted or released done; ``informer`` has CHILD_INDEXES.

        Those that are not ``only`` are left as they are, and not given.
        """
        metadata = owner.metadata
        held = [child for child in informer.find(BY_CONTROLLER, metadata.uid) if only(child)]
        kept = [child for child in held if selector.matches(child.metadata.labels)]
        if metadata.is_deleting:
            return kept
        if len(kept) < len(held):
            released = [child for child in held if not selector.matches(child.metadata.labels)]
            await asyncio.gather(*(self.release(owner, child) for child in released))
        orphans = [
            child
            for child in informer.find(BY_CONTROLLER, orphans_of(metadata.namespace))
            if selector.matches(child.metadata.labels) and not child.metadata.is_deleting and only(child)
        ]
        if orphans and await self._may_adopt(owner):
            adopted = await asyncio.gather(*(self._adopt(owner, child) for child in orphans))
            kept += [child for child, is_ours in zip(orphans, adopted, strict=True) if is_ours]
        return kept

    async def release(self, owner: HasMetadata, child: HasMetadata) -> None:
        """Takes an owner's reference off a child; one that is gone or another by now is left alone."""
        reference = {"$patch": "delete", "uid": owner.metadata.uid}
        metadata: dict[str, Any] = {"uid": child.metadata.uid, "ownerReferences": [reference]}
        if self._finalizer:
            metadata["$deleteFromPrimitiveList/finalizers"] = [self._finalizer]
        await self._patch(child, {"metadata": metadata})

    async def _adopt(self, owner: HasMetadata, child: HasMetadata) -> bool:
        reference = msgspec.to_builtins(owner_reference(owner, self._owners))
        metadata = {"uid": child.metadata.uid, "ownerReferences": [reference]}
        if self._finalizer:
            metadata["finalizers"] = [self._finalizer]
        return await self._patch(child, {"metadata": metadata})

    async def _patch(self, child: HasMetadata, patch: dict[str, Any]) -> bool:
        metadata = child.metadata
        try:
            await self._client.strategic_patch(self._children, metadata.name, patch, metadata.namespace)
        except NotFound:
            return False
        except Invalid:
            # It has another uid, or got another controller, since: not ours, and nothing to mend.
            return False
        return True

    async def _may_adopt(self, owner: HasMetadata) -> bool:
        metadata = owner.metadata
        try:
            live = await self._client.get(self._owners.view(PartialObject), metadata.name, metadata.namespace)
        except NotFound:
            return False
        return bool(live.metadata.uid == metadata.uid and not live.metadata.is_deleting)


def keys_of_claimants(
    owners: Resource[Any], informer: Informer[Any], selector_of: Callable[[Any], Selector]
) -> Callable[[Any], Iterable[Key]]:
    """Whose reconcile a child's change asks for: its controller's, or, where it has none, that of all who select it."""
    controlled = controlling_owner(owners)

    def selects(owner: Any, child: Any) -> bool:
        try:
            return selector_of(owner).matches(child.metadata.labels)
        except InvalidSelector:
            return False

    def keys(child: Any) -> Iterable[Key]:
        if child.metadata.controller is not None:
            return controlled(child)
        if not child.metadata.labels:
            return ()
        return [
            Key(owner.metadata.namespace, owner.metadata.name)
            for owner in informer.items(child.metadata.namespace)
            if selects(owner, child)
        ]

    return keys


def concerns_claimants(change: Change[Any]) -> bool:
    """Whether a child's change can matter to whom ``keys_of_claimants`` names.

    Of a child without a controller only what decides about its adoption does: finding all who select it is dear, and
    the rest of its life is nobody's business.
    """
    before, after = change.before, change.after
    if after is None:
        return change.latest.metadata.controller is not None
    if before is None or after.metadata.controller is not None or before.metadata.controller is not None:
        return True
    return bool(before.metadata.labels != after.metadata.labels)


def selector_of_spec(owner: Any) -> Selector:
    """What an owner's ``spec.selector`` selects; an empty one selects nothing, as everywhere in workloads.

    It may also be the plain labels that older kinds have. Raises InvalidSelector.
    """
    selector: LabelSelector | dict[str, str] | None = owner.spec.selector
    if selector is None:
        return SELECT_NOTHING
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    expressions = tuple((one.key, one.operator, tuple(one.values)) for one in selector.match_expressions)
    compiled = _compiled(tuple(selector.match_labels.items()), expressions)
    return SELECT_NOTHING if compiled.is_everything else compiled


def selector_or_give_up(owner: Any) -> Selector:
    """What an owner's ``spec.selector`` selects, for a reconcile: one that is wrong will not get better by itself."""
    try:
        return selector_of_spec(owner)
    except InvalidSelector as problem:
        raise TerminalError(str(problem)) from problem


@functools.lru_cache(maxsize=16_384)
def _compiled(
    labels: tuple[tuple[str, str], ...], expressions: tuple[tuple[str, str, tuple[str, ...]], ...]
) -> Selector:
    """A selector, compiled once: an owner's is the same at each of its reconciles."""
    return Selector.of(
        LabelSelector(
            match_labels=dict(labels),
            match_expressions=[
                LabelSelectorRequirement(key=key, operator=operator, values=list(values))
                for key, operator, values in expressions
            ],
        )
    )
