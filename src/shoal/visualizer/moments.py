"""What listeners have been told of lately, so that one who comes back is told the rest and not everything again.

No messages are kept but the views that they led to: what happened since one of them is found by comparing it with the
latest. Views share what they have in common, so that keeping one costs what has changed since.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from shoal.api.visualizer import ClusterView

MOMENTS = 600
CHANGES = 200_000
"""Objects that are kept only because somebody may come back: tens of megabytes."""


class Moment(NamedTuple):
    """What a listener knows once it has had the message of this version."""

    version: int
    view: ClusterView
    summary: bytes


class Moments:
    """The last moments, as many as the bounds allow; the newest in any case."""

    def __init__(self, *, moments: int = MOMENTS, changes: int = CHANGES) -> None:
        self._most_moments = moments
        self._most_changes = changes
        self._kept: deque[tuple[Moment, int]] = deque()
        self._changes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def newest(self) -> Moment | None:
        """The last one."""
        return self._kept[-1][0] if self._kept else None

    def keep(self, moment: Moment, changes: int) -> None:
        """Keeps a moment, so many changes after the one before it."""
        newest = self.newest
        if newest is not None and newest.version >= moment.version:
            return
        self._kept.append((moment, changes if self._kept else 0))
        self._changes += self._kept[-1][1]
        while len(self._kept) > 1 and (len(self._kept) > self._most_moments or self._changes > self._most_changes):
            self._kept.popleft()
            self._changes -= self._kept[0][1]  # kept for the sake of the one before it alone

    def find(self, version: int) -> Moment | None:
        """A moment that is still known."""
        return next((moment for moment, _ in self._kept if moment.version == version), None)

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()
        self._changes = 0
