"""The file in which the scheduler's own memory outlives it."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from shoal.scheduler.shares.usage.history import UnreadableHistory, UsageHistory

_log = structlog.get_logger("shoal.scheduler.usage")


class UsageStore:
    """One file of a directory. It is replaced as a whole, so that there is always one that can be read.

    A file that cannot be read or written is told once and done without: queues are then divided as if nobody had used
    anything before.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self.path = directory / f"{name}.json"
        self._is_failing = False

    def load(self, history: UsageHistory) -> None:
        """Takes up what was kept, if anything was."""
        try:
            history.restore(self.path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, UnreadableHistory) as problem:
            _log.warning("past use of queues is not taken up", file=str(self.path), reason=str(problem))

    def save(self, encoded: bytes) -> None:
        """Keeps a history."""
        beside = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(encoded)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as problem:
            if not self._is_failing:
                _log.warning("past use of queues is not kept", file=str(self.path), reason=str(problem))
            self._is_failing = True
            return
        self._is_failing = False
