"""How long something took, over many times."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Seconds, in order."""

    seconds: tuple[float, ...]

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Spread:
        return cls(tuple(sorted(seconds)))

    def percentile(self, share: float) -> float:
        """The nearest rank: no figure that was not measured."""
        return self.seconds[max(0, math.ceil(share * len(self.seconds)) - 1)]

    @property
    def p50(self) -> float:
        return self.percentile(0.5)

    @property
    def p99(self) -> float:
        return self.percentile(0.99)

    @property
    def longest(self) -> float:
        return self.seconds[-1]
