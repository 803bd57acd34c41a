"""What a reconcile has written, so that the next one of the same key waits until the cache shows it.

A cache lags behind the server. A controller that creates a pod and is called again before the pod's event arrives would
create a second one. Resource versions are comparable, so it suffices to remember the newest version written to each
resource, and what was deleted, and to let the cache catch up before the next reconcile of that key.

The log travels in a context variable: the client notes every write into whichever log is open, and nobody has to hand
it around.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from shoal.api.meta.resource import Resource

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


@dataclass
class WriteLog:
    """The newest version written to each resource and namespace, and the deletions asked for."""

    versions: dict[tuple[Place, str], int] = field(default_factory=dict)
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


def note_write(resource: Resource[Any], metadata: Any) -> None:
    """Called by the client after each write that was answered with the object."""
    log = _open_log.get()
    if log is None or not metadata.resource_version.isdigit():
        return
    where = (place_of(resource), metadata.namespace)
    log.versions[where] = max(log.versions.get(where, 0), int(metadata.resource_version))


def note_delete(resource: Resource[Any], namespace: str, name: str, uid: str) -> None:
    """Called by the client after each deletion."""
    log = _open_log.get()
    if log is not None:
        log.deletions.append(Deleted(place_of(resource), namespace, name, uid))
