"""What state a task is in, and the sets of states that rules speak of."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Status(IntEnum):
    """A task's state. ``ALLOCATED`` and ``PIPELINED`` exist within a session alone."""

    PENDING = 0
    GATED = 1
    ALLOCATED = 2
    PIPELINED = 3
    BINDING = 4
    BOUND = 5
    RUNNING = 6
    RELEASING = 7
    STUCK_IN_RELEASING = 8
    SUCCEEDED = 9
    FAILED = 10
    UNKNOWN = 11

    @property
    def word(self) -> str:
        """As people write it: ``StuckInReleasing``."""
        return _WORDS[self]


_WORDS: Final = {status: "".join(part.capitalize() for part in status.name.split("_")) for status in Status}
_WORDS[Status.STUCK_IN_RELEASING] = "StuckInReleasing"
BY_WORD: Final = {word: status for status, word in _WORDS.items()}

ALLOCATED: Final = frozenset({Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING})
"""Holds what it was given, and counts for its queue."""

ACTIVE_ALLOCATED: Final = ALLOCATED | {Status.PIPELINED}
"""Holds what it was given, or was promised it."""

ACTIVE_USED: Final = ACTIVE_ALLOCATED | {Status.RELEASING, Status.STUCK_IN_RELEASING}
"""Occupies a node."""

ALIVE: Final = ACTIVE_ALLOCATED | {Status.PENDING, Status.GATED}
"""Counts towards a gang's minimum."""
