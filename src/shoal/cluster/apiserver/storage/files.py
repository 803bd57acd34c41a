"""The files of a store: the lock that keeps others out, and a database that is ours, whole and of a known format."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path

from shoal.cluster.apiserver.storage.errors import DataDirInUse, StoreUnreadable

_APPLICATION = 0x5368_6F61
"""Marks the file as ours in its header."""
_FORMAT = 1

_SCHEMA = """
CREATE TABLE objects (
    storage TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    data BLOB NOT NULL,
    fields BLOB,
    PRIMARY KEY (storage, namespace, name)
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', 1);
"""


def locked(directory: Path) -> int:
    """Makes the directory where it is missing and takes its lock: a descriptor, to be closed in the end."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise DataDirInUse(directory) from None
    return lock


def create(path: Path) -> None:
    """Makes an empty store, under another name first: the file is there whole or not at all."""
    log = path.with_name(path.name + "-wal")
    if log.exists():
        raise StoreUnreadable(log, f"{path.name}, to which it belongs, is missing")
    unfinished = path.with_name(path.name + ".new")
    for leftover in ("", "-wal", "-shm", "-journal"):
        unfinished.with_name(unfinished.name + leftover).unlink(missing_ok=True)
    # SQLite gives its log and its journal the mode of the file.
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL, 0o600))
    with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.executescript(_SCHEMA)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    unfinished.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def check_header(path: Path) -> None:
    """Looks at the file before SQLite does, which might touch it."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise StoreUnreadable(path, "it is damaged or no store at all")
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        raise StoreUnreadable(path, "it is a database of something else")
    version = int.from_bytes(header[60:64], "big")
    if version != _FORMAT:
        raise StoreUnreadable(path, f"it has format {version} and this version of Shoal reads format {_FORMAT}")
