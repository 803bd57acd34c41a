"""How many connections there may be at once, in all and of one client: descriptors are few, and belong to everyone."""

from __future__ import annotations

import resource
from collections import Counter

_SPARE = 256
"""Descriptors that are for everything else in this process."""


def allow_many() -> None:
    """Lets this process have as many descriptors as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Turns:
    """Counts what is under way."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._of_one = max(limit // 2, 1)
        self._clients: Counter[str] = Counter()
        self._total = 0

    @classmethod
    def of_process(cls) -> Turns:
        """As many as this process may have descriptors for, each taking two."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(max((soft - _SPARE) // 2, 64))

    def take(self, client: str) -> bool:
        """Whether one more may begin; it is counted then."""
        if self._total >= self._limit or self._clients[client] >= self._of_one:
            return False
        self._total += 1
        self._clients[client] += 1
        return True

    def give_back(self, client: str) -> None:
        """One has ended."""
        self._total -= 1
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]
