"""The latest changes, for those who come back to a watch and for lists that go on at an older revision."""

from __future__ import annotations

from collections import deque

from shoal.cluster.apiserver.storage.errors import Compacted, TooNew
from shoal.cluster.apiserver.storage.records import Change, ChangeType, Record
from shoal.cluster.apiserver.storage.shelf import Key

_OVERHEAD = 300
"""What a change takes beside the bytes of objects."""


class History:
    """Changes in the order of their revisions, bounded in number and in bytes."""

    def __init__(self, revision: int, *, changes: int, size: int) -> None:
        self.newest = revision
        self.oldest = revision
        """The oldest revision whose state can still be told: that of the last change that was dropped."""
        self._changes: deque[Change] = deque()
        self._most = changes
        self._room = size

    def add(self, change: Change) -> None:
        """Takes a change in, and drops what is beyond the bounds."""
        self._changes.append(change)
        self.newest = change.record.revision
        self._room -= _cost(change)
        while self._changes and (self._room < 0 or len(self._changes) > self._most):
            dropped = self._changes.popleft()
            self._room += _cost(dropped)
            self.oldest = dropped.record.revision

    def since(self, revision: int, storage: str) -> list[Change]:
        """The changes of a kind after a revision, the earliest first."""
        if revision > self.newest:
            raise TooNew(revision, self.newest)
        if revision < self.oldest:
            raise Compacted(revision, self.oldest)
        found = []
        for change in reversed(self._changes):
            if change.record.revision <= revision:
                break
            if change.storage == storage:
                found.append(change)
        found.reverse()
        return found

    def before(self, revision: int, storage: str) -> dict[Key, Record | None]:
        """How the objects that changed after a revision were at it; None where one was not there."""
        states: dict[Key, Record | None] = {}
        for change in self.since(revision, storage):
            states.setdefault((change.record.namespace, change.record.name), change.previous)
        return states


def _cost(change: Change) -> int:
    """The bytes that only the history holds: each outlived state is the previous one of one change, or was deleted."""
    size = _OVERHEAD
    if change.previous is not None:
        size += len(change.previous.data)
    if change.type is ChangeType.DELETED:
        size += len(change.record.data)
    return size
