"""Which part of the past counts: the last so many hours, or what happened since a moment that returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from shoal.scheduler.shares.usage.cron import Cron


class Window(Protocol):
    """A part of the past that ends now."""

    def start(self, now: float) -> float:
        """The moment from which on the past counts."""
        ...


@dataclass(frozen=True, slots=True)
class Sliding:
    """The last so many seconds."""

    size: float

    def start(self, now: float) -> float:
        """So long ago."""
        return now - self.size


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size, one after the other, of which the first began at ``first``: the one that is open now."""

    size: float
    first: float

    def start(self, now: float) -> float:
        """When the window opened that is open now, or closes now; before the first one, nothing counts."""
        if now <= self.first:
            return now
        return self.first + (math.ceil((now - self.first) / self.size) - 1) * self.size


@dataclass(frozen=True, slots=True)
class Since:
    """What happened since the last time that a calendar names."""

    cron: Cron

    def start(self, now: float) -> float:
        """The last such time before now."""
        return self.cron.last_before(now)


def weight(age: float, half_life: float | None) -> float:
    """What use counts that is so many seconds old: all of it, or half for every half-life that passed."""
    return 1.0 if half_life is None else 0.5 ** (age / half_life)
