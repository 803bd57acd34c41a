"""What the store refuses, and what can befall it."""

from __future__ import annotations

from pathlib import Path

from shoal.cluster.apiserver.storage.records import Record


class Changed(Exception):
    """The object is no longer what the writer saw; nothing was written."""

    def __init__(self, latest: Record | None) -> None:
        self.latest = latest
        super().__init__("the object was changed" if latest else "the object does not exist")


class Compacted(Exception):
    """That revision is older than what the history holds."""

    def __init__(self, revision: int, oldest: int) -> None:
        self.revision = revision
        self.oldest = oldest
        super().__init__(f"revision {revision} is no longer kept: the oldest is {oldest}")


class TooNew(Exception):
    """That revision has not been reached."""

    def __init__(self, revision: int, newest: int) -> None:
        self.revision = revision
        self.newest = newest
        super().__init__(f"revision {revision} has not been reached: the newest is {newest}")


class Overrun(Exception):
    """A watcher fell too far behind and was cut off; it must read the state anew."""


class StorageFailed(Exception):
    """The disk refused a write: neither it nor what was staged with it or upon it has happened."""


class DataDirInUse(Exception):
    """Another process has the store open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} is in use by another process: stop it, or choose another data directory")


class StoreUnreadable(Exception):
    """The file is damaged, of a newer format or none of ours; it was left as it is."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be read: {why}; nothing was changed in it")
