"""What queues are measured in: CPU, memory, GPUs. *Unlimited* is infinity: comparing and dividing need no cases."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

UNLIMITED: Final = math.inf
_DIGITS: Final = 6
"""Portions of GPUs are sums of hundredths: rounding keeps thousands of them exact."""


class Amounts(NamedTuple):
    """An amount of each resource that queues share."""

    cpu: float = 0.0
    """In thousandths of a core."""

    memory: float = 0.0
    """In bytes."""

    gpu: float = 0.0
    """In devices."""

    def plus(self, other: Amounts) -> Amounts:
        """The sum."""
        return Amounts(self[0] + other[0], self[1] + other[1], round(self[2] + other[2], _DIGITS))

    def minus(self, other: Amounts) -> Amounts:
        """The difference."""
        return Amounts(self[0] - other[0], self[1] - other[1], round(self[2] - other[2], _DIGITS))

    def times(self, count: float) -> Amounts:
        """So many of it."""
        return Amounts(self[0] * count, self[1] * count, round(self[2] * count, _DIGITS))

    def is_within(self, other: Amounts) -> bool:
        """Whether it is at most the other in every resource."""
        return self[0] <= other[0] and self[1] <= other[1] and self[2] <= other[2]

    def exceeds_somewhere(self, other: Amounts) -> bool:
        """Whether it is more than the other in any resource."""
        return self[0] > other[0] or self[1] > other[1] or self[2] > other[2]


NONE: Final = Amounts()
WITHOUT_LIMIT: Final = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)
