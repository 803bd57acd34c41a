"""Who owns whom: the references by which the garbage collector deletes children after their owners.

An owner is known by its uid alone. One of the same kind and name but another uid is another object, whose children are
on their way out, and they are not to be adopted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from shoal.api.meta.objects import HasMetadata, OwnerReference
from shoal.api.meta.resource import Resource


class Owned(Protocol):
    """Metadata that names owners; a view may name just this field."""

    @property
    def owner_references(self) -> Sequence[OwnerReference]:
        """The owners, one of them at most the controller."""
        ...


class AlreadyControlled(ValueError):
    """An object has one controller, and may not get a second."""

    def __init__(self, present: OwnerReference, refused: OwnerReference) -> None:
        self.present = present
        self.refused = refused
        super().__init__(
            f"{_described(refused)} cannot be the controller: {_described(present)} already is; "
            "remove that reference first, or own without controller"
        )


def owner_reference(
    owner: HasMetadata, resource: Resource[Any], *, controller: bool = True, block_owner_deletion: bool = True
) -> OwnerReference:
    """The reference that a child of this object carries.

    The kind is the resource's, since objects that came in a list do not say theirs.
    """
    metadata = owner.metadata
    if not metadata.uid:
        raise ValueError(
            f"{resource.kind} {metadata.name!r} has no uid: only an object that was read or created can own"
        )
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=controller,
        block_owner_deletion=block_owner_deletion,
    )


def is_owned_by(metadata: Owned, uid: str) -> bool:
    """Whether the object of this uid is among the owners."""
    return any(owner.uid == uid for owner in metadata.owner_references)


def is_controlled_by(metadata: Owned, uid: str) -> bool:
    """Whether the object of this uid is the owner that manages this one."""
    return any(owner.uid == uid and owner.controller for owner in metadata.owner_references)


def is_left_behind(metadata: Owned, owner: OwnerReference) -> bool:
    """Whether an earlier object of the owner's kind and name manages this one, which is on its way out with it."""
    return any(
        known.controller and (known.kind, known.name) == (owner.kind, owner.name) and known.uid != owner.uid
        for known in metadata.owner_references
    )


def with_owner(owners: list[OwnerReference], owner: OwnerReference) -> list[OwnerReference]:
    """The owners with one added, or replaced where its uid is among them; the same list where nothing changes.

    Raises AlreadyControlled where that would make a second controller.
    """
    if owner.controller:
        for present in owners:
            if present.controller and present.uid != owner.uid:
                raise AlreadyControlled(present, owner)
    if owner in owners:
        return owners
    if any(present.uid == owner.uid for present in owners):
        return [owner if present.uid == owner.uid else present for present in owners]
    return [*owners, owner]


def without_owner(owners: list[OwnerReference], uid: str) -> list[OwnerReference]:
    """The owners less the one of this uid; the same list where it is not among them."""
    kept = [owner for owner in owners if owner.uid != uid]
    return kept if len(kept) < len(owners) else owners


def _described(owner: OwnerReference) -> str:
    return f"{owner.kind} {owner.name!r} (uid {owner.uid})"
