"""Reading a store into memory."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec

from shoal.cluster.apiserver.storage.errors import StorageFailed, StoreUnreadable
from shoal.cluster.apiserver.storage.mappings import SharedMappings
from shoal.cluster.apiserver.storage.records import Record
from shoal.cluster.apiserver.storage.shelf import Shelf

_NOT_OF_THE_FILE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)
"""What the disk is to blame for: even to read, SQLite has to write an index of its log."""


def load(path: Path) -> tuple[int, dict[str, Shelf]]:
    """The newest revision and all objects by storage.

    It reads through a connection that cannot write: of a damaged file and its log not a byte is changed, not even by
    folding the one into the other.
    """
    storages: dict[str, list[Record]] = {}
    newest = 1
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            for storage, record in _records(connection):
                newest = max(newest, record.revision)
                storages.setdefault(storage, []).append(record)
            ((noted,),) = connection.execute("SELECT value FROM meta WHERE name = 'revision'").fetchall()
    except (sqlite3.Error, ValueError, TypeError) as problem:
        if isinstance(problem, sqlite3.OperationalError) and problem.sqlite_errorcode & 0xFF in _NOT_OF_THE_FILE:
            raise StorageFailed(f"{path} could not be read, the disk may be full: {problem}") from problem
        raise StoreUnreadable(path, f"it is damaged ({problem})") from problem
    finally:
        _tidy(path)
    return max(newest, noted), {storage: Shelf(records) for storage, records in storages.items()}


def _tidy(path: Path) -> None:
    """Removes what reading leaves behind: the log's index, which the writer keeps in memory, and an empty log."""
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    log = path.with_name(path.name + "-wal")
    if log.exists() and not log.stat().st_size:
        log.unlink()


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"")


class _Stored(msgspec.Struct, gc=False):
    metadata: _Metadata


def _records(connection: sqlite3.Connection) -> Iterator[tuple[str, Record]]:
    mappings = SharedMappings()
    namespaces: dict[str, str] = {}
    decode = msgspec.json.Decoder(_Stored).decode
    query = "SELECT storage, namespace, name, revision, data, fields FROM objects"
    for storage, namespace, name, revision, data, fields in connection.execute(query):
        metadata = decode(data).metadata
        record = Record(
            namespaces.setdefault(namespace, namespace),
            name,
            revision,
            data,
            mappings.decoded(bytes(metadata.labels)),
            mappings.decoded(fields or b""),
            metadata.uid,
        )
        yield storage, record
