"""Writing the store's file: SQLite in WAL mode, held by one process, written by one thread, one statement per commit.

One statement, because each gives the interpreter's lock away and then has to wait for it, up to five milliseconds where
the event loop is busy: 32 rows written one by one took 160 ms beside a busy loop, and 7 ms at once. So all rows of a
commit go into a view, whose triggers write or delete, and the statement is its own transaction.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from shoal.cluster.apiserver.storage.errors import StorageFailed, StoreUnreadable
from shoal.cluster.apiserver.storage.files import check_header, create, locked
from shoal.cluster.apiserver.storage.loading import load
from shoal.cluster.apiserver.storage.records import Change, ChangeType
from shoal.cluster.apiserver.storage.shelf import Shelf

Synchronous = Literal["FULL", "NORMAL", "OFF"]
"""When a write counts as done: FULL, once it would survive a power cut; OFF is for tests."""

# The newest revision is that of some object, unless an object of that revision was deleted: only then it is noted.
_TRIGGERS = """
CREATE TEMP VIEW incoming AS SELECT * FROM objects;
CREATE TEMP TRIGGER written INSTEAD OF INSERT ON incoming WHEN new.data IS NOT NULL BEGIN
    INSERT INTO objects VALUES (new.storage, new.namespace, new.name, new.revision, new.data, new.fields)
    ON CONFLICT DO UPDATE SET revision = excluded.revision, data = excluded.data, fields = excluded.fields;
END;
CREATE TEMP TRIGGER deleted INSTEAD OF INSERT ON incoming WHEN new.data IS NULL BEGIN
    DELETE FROM objects WHERE storage = new.storage AND namespace = new.namespace AND name = new.name;
    UPDATE meta SET value = max(value, new.revision) WHERE name = 'revision';
END;
"""

_ROWS = 64
"""Rows in one statement. Statements of each size up to it are kept prepared."""
_INSERT = "INSERT INTO incoming VALUES "
_WAL_PAGES = 4_000
"""The log is folded into the file when it is this long: 16 MB."""
_LOOK_AFTER = 64
"""After how many commits the free pages are looked at."""
_FREE_PAGES = 4_000
_PAGES_AT_ONCE = 1_000


def open_disk(directory: Path, synchronous: Synchronous) -> tuple[Disk, int, dict[str, Shelf]]:
    """The store in a directory, made where it is missing: its file, its newest revision, its objects by storage."""
    path = directory / "objects.db"
    lock = locked(directory)
    try:
        if not path.exists():
            create(path)
        check_header(path)
        revision, shelves = load(path)
        return Disk(path, lock, synchronous), revision, shelves
    except BaseException as problem:
        os.close(lock)
        if isinstance(problem, OSError | sqlite3.Error):
            raise StorageFailed(f"{path} could not be opened: {problem}") from problem
        raise


class Disk:
    """The file, open for writing. Its methods block and are called one at a time."""

    def __init__(self, path: Path, lock: int, synchronous: Synchronous) -> None:
        self._path = path
        self._lock = lock
        self._commits = 0
        self._connection = _connected(path, synchronous)

    def write(self, changes: Sequence[Change]) -> None:
        """Makes changes durable, all or none."""
        # Of several changes to one object the last is enough.
        rows = list({(row[0], row[1], row[2]): row for row in map(_row, changes)}.values())
        try:
            if len(rows) <= _ROWS:
                self._insert(rows)
            else:
                self._connection.execute("BEGIN")
                for start in range(0, len(rows), _ROWS):
                    self._insert(rows[start : start + _ROWS])
                self._connection.execute("COMMIT")
        except BaseException as problem:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()
            raise StorageFailed(f"{self._path} could not be written: {problem}") from problem
        self._commits += 1
        if self._commits % _LOOK_AFTER == 0:
            # What was written is safe whatever becomes of this.
            with contextlib.suppress(sqlite3.Error):
                self._give_back(_PAGES_AT_ONCE)

    def close(self) -> None:
        """Folds the log into the file and lets go of both."""
        try:
            with contextlib.suppress(sqlite3.Error):
                self._give_back(0)
            self._connection.close()
        finally:
            os.close(self._lock)

    def _insert(self, rows: list[_Row]) -> None:
        places = ",".join(["(?,?,?,?,?,?)"] * len(rows))
        self._connection.execute(_INSERT + places, [value for row in rows for value in row])

    def _give_back(self, pages: int) -> None:
        """Returns free pages to the file system where they are many; nought means all of them."""
        ((free,),) = self._connection.execute("PRAGMA freelist_count").fetchall()
        ((whole,),) = self._connection.execute("PRAGMA page_count").fetchall()
        if free > _FREE_PAGES and free > whole // 4:
            # As a script, which goes on to its end: an ordinary statement would stop after one page.
            self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")


_Row = tuple[str, str, str, int, bytes | None, bytes | None]


def _row(change: Change) -> _Row:
    record = change.record
    if change.type is ChangeType.DELETED:
        return change.storage, record.namespace, record.name, record.revision, None, None
    fields = msgspec.json.encode(record.fields) if record.fields else None
    return change.storage, record.namespace, record.name, record.revision, record.data, fields


def _connected(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=2 * _ROWS)
    try:
        # Alone with the file, SQLite keeps the log's index in memory and asks for no locks.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}").fetchall()
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_PAGES * 4096}").fetchall()
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.executescript(_TRIGGERS)
    except sqlite3.Error as problem:
        connection.close()
        raise StoreUnreadable(path, str(problem)) from problem
    return connection
