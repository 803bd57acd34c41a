"""Telling changes to those who watch: each gets what it asked for, none waits for another, the slow are cut off.

A watcher is filed under exactly what it asks for, so that a change looks in four places and thousands of watchers of
single objects cost the others nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.cluster.apiserver.storage.errors import Overrun
from shoal.cluster.apiserver.storage.history import History
from shoal.cluster.apiserver.storage.records import Change, ChangeType, Record

Told = tuple[ChangeType, Change]
Place = tuple[str, str | None, str | None]
"""Storage, namespace and name; None is any."""


class Watcher:
    """The changes of one selection of objects, for one reader."""

    def __init__(
        self, hub: Hub, where: Place, selects: Callable[[Record], bool] | None, missed: list[Change], bounds: Bounds
    ) -> None:
        self._hub = hub
        self._where = where
        self._selects = selects
        self._pending: list[Told] = []
        self._bounds = bounds
        # What was missed does not count: it is no fault of a watcher that has just come.
        self._room = bounds[0] + len(missed)
        self._room_bytes = bounds[1] + sum(len(change.record.data) for change in missed)
        self._wake: asyncio.Future[None] | None = None
        self._ended: Exception | None = None
        self._stopped_at: int | None = None
        for change in missed:
            self.offer((change.type, change.afresh()))

    @property
    def revision(self) -> int:
        """Up to here everything was given out, also where nothing of this selection changed."""
        if self._pending:
            return self._pending[0][1].record.revision - 1
        return self._hub.revision if self._stopped_at is None else self._stopped_at

    async def changes(self) -> list[Told]:
        """All changes not yet given, waiting for at least one; none once it is closed. For one reader at a time.

        Each comes with its type for this selection: an object may enter or leave it by being modified. `Change.shown`
        has the state that goes with it.
        """
        while not self._pending:
            if self._ended is not None:
                raise self._ended
            if self._stopped_at is not None:
                return []
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        pending, self._pending = self._pending, []
        self._room, self._room_bytes = self._bounds
        return pending

    def close(self) -> None:
        """Ends it: what is pending is dropped, and the reader is let go."""
        if self._stopped_at is None:
            self._stopped_at = self.revision
        self._pending.clear()
        self.end()

    def end(self) -> None:
        """Takes it off the hub; what is pending can still be read."""
        self._hub.leave(self, self._where)
        if self._stopped_at is None:
            self._stopped_at = self._hub.revision
        self._stir()

    def offer(self, told: Told) -> bool:
        """Takes a change if it is of the selection. False says that the watcher cannot go on."""
        selects = self._selects
        change = told[1]
        if selects is not None:
            previous = change.previous
            try:
                is_in = told[0] is not ChangeType.DELETED and selects(change.record)
                was_in = previous is not None and selects(previous)
            except Exception as fault:
                # The change is committed: one faulty selection must not keep it from the others.
                return self._cut_off(fault, change)
            if not (is_in or was_in):
                return True
            if not is_in:
                told = (ChangeType.DELETED, change)
            else:
                told = (ChangeType.MODIFIED if was_in else ChangeType.ADDED, change)
        self._room -= 1
        self._room_bytes -= len(change.record.data)
        if self._room < 0 or self._room_bytes < 0:
            return self._cut_off(Overrun("the watcher fell too far behind"), change)
        self._pending.append(told)
        self._stir()
        return True

    def _cut_off(self, why: Exception, at: Change) -> bool:
        self._stopped_at = (self._pending[0][1] if self._pending else at).record.revision - 1
        self._pending.clear()
        self._ended = why
        return False

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


Bounds = tuple[int, int]
"""How many changes a watcher may be behind, and how many bytes."""


class Hub:
    """Who watches what."""

    def __init__(self, history: History, bounds: Bounds) -> None:
        self._history = history
        self._bounds = bounds
        # A dict for a set that keeps its order: watchers are told in the order in which they came.
        self._watchers: dict[Place, dict[Watcher, None]] = {}

    @property
    def revision(self) -> int:
        """The newest revision that was told."""
        return self._history.newest

    def watch(self, where: Place, *, since: int, selects: Callable[[Record], bool] | None) -> Watcher:
        """A watcher that has everything after a revision to give, and then what comes."""
        storage, namespace, name = where
        missed = [
            change
            for change in self._history.since(since, storage)
            if namespace in (None, change.record.namespace) and name in (None, change.record.name)
        ]
        watcher = Watcher(self, where, selects, missed, self._bounds)
        self._watchers.setdefault(where, {})[watcher] = None
        return watcher

    def tell(self, change: Change) -> None:
        """Hands a change to all whom it concerns."""
        record = change.record
        told: Told | None = None
        for where in (
            (change.storage, None, None),
            (change.storage, record.namespace, None),
            (change.storage, record.namespace, record.name),
            (change.storage, None, record.name),
        ):
            watchers = self._watchers.get(where)
            if not watchers:
                continue
            if told is None:
                # The history's own stays without encodings, which would outlive their use.
                told = (change.type, change.afresh())
            cut_off = [watcher for watcher in watchers if not watcher.offer(told)]
            for watcher in cut_off:
                watcher.end()

    def leave(self, watcher: Watcher, where: Place) -> None:
        """Forgets a watcher."""
        watchers = self._watchers.get(where)
        if watchers is not None:
            watchers.pop(watcher, None)
            if not watchers:
                del self._watchers[where]

    def close(self) -> None:
        """Lets all watchers go, once they have read what they have."""
        for watchers in list(self._watchers.values()):
            for watcher in list(watchers):
                watcher.end()
