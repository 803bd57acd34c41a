"""The state of the cluster: encoded objects in memory, kept in one SQLite file, and told to those who watch.

One process has it open and one thread writes it. Readers see what is committed; writers see what is staged as well.
"""

from shoal.cluster.apiserver.storage.errors import (
    Changed,
    Compacted,
    DataDirInUse,
    Overrun,
    StorageFailed,
    StoreUnreadable,
    TooNew,
)
from shoal.cluster.apiserver.storage.hub import Watcher
from shoal.cluster.apiserver.storage.pages import Page
from shoal.cluster.apiserver.storage.records import Change, ChangeType, Encoded, Record, renumbered
from shoal.cluster.apiserver.storage.store import Store

__all__ = [
    "Change",
    "ChangeType",
    "Changed",
    "Compacted",
    "DataDirInUse",
    "Encoded",
    "Overrun",
    "Page",
    "Record",
    "StorageFailed",
    "Store",
    "StoreUnreadable",
    "TooNew",
    "Watcher",
    "renumbered",
]
