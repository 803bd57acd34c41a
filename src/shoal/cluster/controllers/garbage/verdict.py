"""What becomes of an object, given how each of its owners stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from shoal.api.meta import ObjectMeta
from shoal.kube.queries import Propagation

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class Standing(Enum):
    """How an owner stands."""

    SOLID = "it is there"
    DANGLING = "it is gone"
    WAITING = "it goes when its dependents have gone"


@dataclass(frozen=True)
class Keep:
    """The object stays as it is."""


@dataclass(frozen=True)
class Detach:
    """The object stays, without its references to these owners."""

    uids: frozenset[str]


@dataclass(frozen=True)
class Delete:
    """The object goes; ``unblock`` says that it must not keep its owners waiting."""

    propagation: Propagation
    unblock: bool = False


Verdict = Keep | Detach | Delete


def verdict(
    owners: Mapping[str, Standing],
    finalizers: Collection[str],
    *,
    has_dependents: bool,
    has_waiting_dependents: bool,
) -> Verdict:
    """What becomes of an object that nobody deletes, by the standing of its owners' uids.

    One solid owner keeps it. Where an owner waits and the object has dependents of its own, these go first; if one of
    them waits too the two may wait for each other, and the object lets go. Otherwise it is deleted as its own
    finalizers ask for.
    """
    if not owners:
        return Keep()
    lost = frozenset(uid for uid, standing in owners.items() if standing is not Standing.SOLID)
    if len(lost) < len(owners):
        return Detach(lost) if lost else Keep()
    if has_dependents and Standing.WAITING in owners.values():
        return Delete("Foreground", unblock=has_waiting_dependents)
    if ORPHAN in finalizers:
        return Delete("Orphan")
    if FOREGROUND in finalizers:
        return Delete("Foreground")
    return Delete("Background")


def waits_for_dependents(metadata: ObjectMeta) -> bool:
    """Whether an object is being deleted and goes only after those that block it."""
    return metadata.is_deleting and FOREGROUND in metadata.finalizers


def blocks(metadata: ObjectMeta, owner: str) -> bool:
    """Whether an object keeps the owner of this uid from going before it."""
    return any(one.uid == owner and one.block_owner_deletion for one in metadata.owner_references)
