"""What a reconcile has written, so that the next one of the same key waits until the cache shows it.

A cache lags behind the server. A controller that creates a pod and is called again before the pod's event arrives would
create a second one. Resource versions are comparable, so it suffices to remember the newest version written to each
resource, and what was deleted, and to let the cache catch up before the next reconcile of that key.

An informer that selects is told of some objects of its kind alone, and nobody may wait for what it is never told of. So
each write is put to the selections there are. What an informer shows from then on is waited for by its version; what it
does not show any more, or never did, is waited for as long as the informer holds it: it is told that this one is gone.

The log travels in a context variable: the client notes every write into whichever log is open, and nobody has to hand
it around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.api.meta.resource import Resource
from shoal.kube.selection import Answered

if TYPE_CHECKING:
    from shoal.kube.informer import Informer

_open_log: ContextVar[WriteLog | None] = ContextVar("shoal_write_log", default=None)

Place = tuple[str, str, str]
"""A resource's group, version and plural: what a write and a cache have in common, whatever their view."""


@dataclass(frozen=True)
class Deleted:
    """One object whose deletion was asked for."""

    place: Place
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class Written:
    """One object at the version that a write gave it."""

    namespace: str
    name: str
    uid: str
    version: int


@dataclass
class WriteLog:
    """The newest version written to each resource and namespace, and the deletions asked for."""

    selecting: Callable[[Place], Iterable[Informer[Any]]] = lambda place: ()
    """The informers of a resource that select."""
    versions: dict[tuple[Place, str], int] = field(default_factory=dict)
    selected: dict[Informer[Any], int] = field(default_factory=dict)
    """The newest version that each of them is told of."""
    unselected: list[tuple[Informer[Any], Written]] = field(default_factory=list)
    """What lies outside of a selection, or was answered without its labels: it matters to those who hold it."""
    deletions: list[Deleted] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.versions or self.deletions)


@contextmanager
def recording(log: WriteLog) -> Iterator[None]:
    """Takes down in this log the writes made inside."""
    token = _open_log.set(log)
    try:
        yield
    finally:
        _open_log.reset(token)


def place_of(resource: Resource[Any]) -> Place:
    """Where a resource's objects live, whatever type they are read into."""
    return (resource.group, resource.version, resource.plural)


def note_write(resource: Resource[Any], metadata: Any, body: bytes | None = None) -> None:
    """Called by the client after each write; ``body`` is the answer where that is the object itself."""
    log = _open_log.get()
    if log is None or not metadata.resource_version.isdigit():
        return
    place, namespace, version = place_of(resource), metadata.namespace, int(metadata.resource_version)
    log.versions[place, namespace] = max(log.versions.get((place, namespace), 0), version)
    answered = None if body is None else Answered(metadata, body)
    for informer in log.selecting(place):
        if informer.namespace not in ("", namespace):
            continue
        if answered is not None and informer.selection.shows(answered):
            log.selected[informer] = max(log.selected.get(informer, 0), version)
        else:
            log.unselected.append((informer, Written(namespace, metadata.name, metadata.uid, version)))


def note_delete(resource: Resource[Any], namespace: str, name: str, uid: str) -> None:
    """Called by the client after each deletion."""
    log = _open_log.get()
    if log is not None:
        log.deletions.append(Deleted(place_of(resource), namespace, name, uid))
