"""How much memory the bodies of requests under way may take, in all and of one user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.cluster.apiserver.refusals import too_many_requests

MOST_BYTES = 512 * 1024 * 1024
MOST_BYTES_OF_ONE = 128 * 1024 * 1024


class BodyMemory:
    """Counts the bodies that are read and not answered yet."""

    def __init__(self) -> None:
        self._total = 0
        self._of_users: Counter[str] = Counter()

    @contextmanager
    def held(self, user: str, size: int) -> Iterator[None]:
        """Room for a body while its request is carried out; refused where the user, or all together, have too many."""
        if self._total + size > MOST_BYTES or self._of_users[user] + size > MOST_BYTES_OF_ONE:
            raise too_many_requests("Too many requests, please try again later.")
        self._total += size
        self._of_users[user] += size
        try:
            yield
        finally:
            self._total -= size
            self._of_users[user] -= size
            if not self._of_users[user]:
                del self._of_users[user]
