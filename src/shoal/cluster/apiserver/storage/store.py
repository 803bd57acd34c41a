"""The store: what readers, writers and watchers call.

A write is staged at once, which settles who was first; it is committed by the writing thread together with all that was
staged meanwhile; then it is published, in the order of revisions, and only then its writer hears that it is done.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog

from shoal.cluster.apiserver.storage.disk import Disk, Synchronous, open_disk
from shoal.cluster.apiserver.storage.errors import Changed, StorageFailed
from shoal.cluster.apiserver.storage.history import History
from shoal.cluster.apiserver.storage.hub import Hub, Watcher
from shoal.cluster.apiserver.storage.mappings import NONE, SharedMappings
from shoal.cluster.apiserver.storage.pages import Page, page_of
from shoal.cluster.apiserver.storage.records import Change, ChangeType, Encoded, Record
from shoal.cluster.apiserver.storage.shelf import Key, Shelf

log = structlog.get_logger("shoal.cluster.apiserver.storage")

MiB = 1024 * 1024
Encode = Callable[[int], Encoded]
"""Gives the object's bytes once its revision is known."""

_EMPTY = Shelf()
_COMMIT_WRITES = 1_000
_COMMIT_BYTES = 16 * MiB
_GATHER = 0.003
"""Seconds from one commit to the next where several write at once: each costs as much as what is in it."""


class Store:
    """All objects of the cluster. It belongs to the event loop that opened it."""

    def __init__(self, disk: Disk, thread: ThreadPoolExecutor, shelves: dict[str, Shelf], history: History, hub: Hub):
        self._disk = disk
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._shelves = shelves
        self._history = history
        self._hub = hub
        self._mappings = SharedMappings()
        self._changed: dict[str, int] = {}
        self._assigned = history.newest
        self._staged: list[_Write] = []
        self._committing: list[_Write] = []
        self._overlay: dict[tuple[str, str, str], _Write] = {}
        self._waiting: set[tuple[int, asyncio.Future[None]]] = set()
        self._is_settled = asyncio.Event()
        self._is_settled.set()
        self._is_open = True
        self._has_failed = False
        self._began = 0.0
        """When the last commit began."""
        self._is_shared = False
        """Whether several writes were in it: several write at once, and more will come."""

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        history: int = 20_000,
        history_bytes: int = 64 * MiB,
        behind: int = 10_000,
        behind_bytes: int = 32 * MiB,
        synchronous: Synchronous = "FULL",
    ) -> Store:
        """Opens the store in a directory of its own, which is made where it is missing.

        ``history`` bounds the changes that are remembered, ``behind`` those that a watcher may leave unread.
        Raises DataDirInUse and StoreUnreadable.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="shoal-store")
        try:
            opening = asyncio.get_running_loop().run_in_executor(thread, open_disk, path, synchronous)
            disk, revision, shelves = await opening
        except BaseException:
            thread.shutdown(wait=False)
            raise
        past = History(revision, changes=history, size=history_bytes)
        return cls(disk, thread, shelves, past, Hub(past, (behind, behind_bytes)))

    async def close(self) -> None:
        """Commits what is staged, lets the watchers go and closes the file."""
        if not self._is_open:
            return
        self._is_open = False
        await self._is_settled.wait()
        self._hub.close()
        await self._loop.run_in_executor(self._thread, self._disk.close)
        self._thread.shutdown(wait=False)

    @property
    def revision(self) -> int:
        """The newest revision that is committed. It begins at 1 and never goes back."""
        return self._history.newest

    def get(self, storage: str, namespace: str, name: str) -> Record | None:
        """An object as it is committed."""
        return self._shelves.get(storage, _EMPTY).get(namespace, name)

    def latest(self, storage: str, namespace: str, name: str) -> Record | None:
        """An object as it will be once everything staged is committed: what a writer builds upon."""
        write = self._overlay.get((storage, namespace, name))
        if write is None:
            return self.get(storage, namespace, name)
        return None if write.change.type is ChangeType.DELETED else write.change.record

    def put(
        self, storage: str, namespace: str, name: str, encode: Encode, *, previous: Record | None
    ) -> asyncio.Future[Record]:
        """Stages a new object or a new state of one; done once it is durable and published.

        Raises Changed at once where the latest state is not ``previous``. The write goes on when its waiter is gone.
        """
        change = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        return self._stage(change, storage, namespace, name, encode, previous)

    def remove(
        self, storage: str, namespace: str, name: str, encode: Encode, *, previous: Record
    ) -> asyncio.Future[Record]:
        """Stages a deletion; ``encode`` gives the last state, under the deletion's revision, for those who watch."""
        return self._stage(ChangeType.DELETED, storage, namespace, name, encode, previous)

    def count(self, storage: str) -> int:
        """How many objects of a kind are committed."""
        return len(self._shelves.get(storage, _EMPTY))

    def changed(self, storage: str) -> int:
        """The revision of the last change of a kind that this process saw; 0 where there was none."""
        return self._changed.get(storage, 0)

    def problem(self) -> str:
        """Why writes fail, where the last ones did; nothing where all is well."""
        return "the disk refuses writes" if self._has_failed else ""

    def storages(self) -> Iterable[str]:
        """The kinds of which there are objects."""
        return [storage for storage, shelf in self._shelves.items() if len(shelf)]

    def page(
        self,
        storage: str,
        namespace: str | None,
        *,
        at: int | None = None,
        after: Key | None = None,
        limit: int | None = None,
        selects: Callable[[Record], bool] | None = None,
    ) -> Page:
        """Objects in order, as they are, or as they were at a revision that the history still reaches.

        Raises Compacted where it does not, and TooNew where that revision is yet to come.
        """
        past: dict[Key, Record | None] = {} if at is None else self._history.before(at, storage)
        revision = self.revision if at is None else at
        shelf = self._shelves.get(storage, _EMPTY)
        return page_of(shelf, namespace, revision=revision, past=past, after=after, limit=limit, selects=selects)

    def watch(
        self,
        storage: str,
        namespace: str | None,
        *,
        since: int,
        selects: Callable[[Record], bool] | None = None,
        name: str | None = None,
    ) -> Watcher:
        """The changes after a revision, those that have been and those that come. Close it in the end.

        Raises Compacted where the history no longer reaches that far, and TooNew where it is yet to come.
        """
        return self._hub.watch((storage, namespace, name), since=since, selects=selects)

    async def reached(self, revision: int, timeout: float) -> bool:  # noqa: ASYNC109
        """Waits until a revision is committed; False where it was not in time.

        Raises StorageFailed where a write of that revision is lost meanwhile.
        """
        if revision <= self.revision:
            return True
        waiter = (revision, self._loop.create_future())
        self._waiting.add(waiter)
        try:
            async with asyncio.timeout(timeout):
                await waiter[1]
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(waiter)
        return True

    def _stage(
        self, kind: ChangeType, storage: str, namespace: str, name: str, encode: Encode, previous: Record | None
    ) -> asyncio.Future[Record]:
        if not self._is_open:
            raise StorageFailed("the store is closed")
        latest = self.latest(storage, namespace, name)
        if latest is not previous:
            raise Changed(latest)
        encoded = encode(self._assigned + 1)
        self._assigned += 1
        record = Record(
            namespace,
            name,
            self._assigned,
            encoded.data,
            self._mappings.of(encoded.labels, NONE if previous is None else previous.labels),
            self._mappings.of(encoded.fields, NONE if previous is None else previous.fields),
            encoded.uid,
        )
        write = _Write(Change(kind, storage, record, previous), self._loop.create_future())
        self._overlay[write.key] = write
        self._staged.append(write)
        if self._is_settled.is_set():
            self._is_settled.clear()
            # Not at once: what else this turn of the loop brings goes into the same commit.
            self._loop.call_soon(self._commit)
        return write.done

    def _commit(self) -> None:
        """Hands what is staged to the thread, one commit at a time."""
        size = count = 0
        for write in self._staged:
            size += len(write.change.record.data)
            if count == _COMMIT_WRITES or (count and size > _COMMIT_BYTES):
                break
            count += 1
        self._committing, self._staged = self._staged[:count], self._staged[count:]
        self._began, self._is_shared = self._loop.time(), count > 1
        job = self._thread.submit(self._disk.write, [write.change for write in self._committing])
        job.add_done_callback(self._hand_back)

    def _hand_back(self, job: ThreadFuture[None]) -> None:
        # Where the loop is gone there is nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._committed, job.exception())

    def _committed(self, problem: BaseException | None) -> None:
        if problem is None:
            self._publish()
        else:
            self._fail(problem)
        if not self._staged:
            self._is_settled.set()
        elif self._is_shared and (left := self._began + _GATHER - self._loop.time()) > 0:
            self._loop.call_later(left, self._commit)
        else:
            self._commit()

    def _publish(self) -> None:
        committed, self._committing = self._committing, []
        for write in committed:
            change = write.change
            record = change.record
            if self._overlay.get(write.key) is write:
                del self._overlay[write.key]
            shelf = self._shelves.get(change.storage)
            if shelf is None:
                shelf = self._shelves[change.storage] = Shelf()
            if change.type is ChangeType.DELETED:
                shelf.remove(record.namespace, record.name)
                if shelf.is_empty:
                    del self._shelves[change.storage]  # for kinds may go, too
            else:
                shelf.put(record)
            self._changed[change.storage] = record.revision
            self._history.add(change)
            self._hub.tell(change)
        for revision, waiter in self._waiting:
            if revision <= self.revision and not waiter.done():
                waiter.set_result(None)
        for write in committed:
            if not write.done.done():
                write.done.set_result(write.change.record)
        if self._has_failed:
            self._has_failed = False
            log.info("the store can be written again")

    def _fail(self, problem: BaseException) -> None:
        """Fails all that is staged: it was built upon what has just been lost."""
        lost = self._committing + self._staged
        self._committing, self._staged = [], []
        self._overlay.clear()
        if not self._has_failed:
            self._has_failed = True
            log.error("the store cannot be written", problem=str(problem), lost=len(lost))
        revisions = {write.change.record.revision for write in lost}
        for revision, waiter in self._waiting:
            if revision in revisions and not waiter.done():
                waiter.set_exception(StorageFailed(str(problem)))
        for write in lost:
            if not write.done.done():
                failure = StorageFailed(str(problem))
                failure.__cause__ = problem
                write.done.set_exception(failure)


class _Write:
    __slots__ = ("change", "done", "key")

    def __init__(self, change: Change, done: asyncio.Future[Record]) -> None:
        self.change = change
        self.done = done
        self.key = (change.storage, change.record.namespace, change.record.name)
