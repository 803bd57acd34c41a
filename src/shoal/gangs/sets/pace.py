"""When a set is looked at again while it changes all the time.

A set of five hundred replicas is woken thousands of times while it starts. The first change is looked at once; those
that follow soon are looked at together, as soon as it is quiet for a moment or the first of them has waited long
enough. Either way the last state is always seen. A look that failed is taken again later each time, however often the
set is woken meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.kube import Key
from shoal.kube.backoff import Backoff

QUIET = 0.1
"""Seconds without a change after which there is nothing to wait for."""
LONGEST = 1.0
"""Seconds that a change waits at most."""
AFTER_FAILURE = Backoff(initial=QUIET, cap=10.0)


@dataclass
class _Look:
    generation: int
    at: float
    failures: int = 0
    since: float | None = None
    """When the first change came that was not looked at yet."""
    due: float = 0.0


class Pace:
    """How long a look at each set can wait, by a clock in seconds."""

    def __init__(self, *, quiet: float = QUIET, longest: float = LONGEST) -> None:
        self._quiet = quiet
        self._longest = longest
        self._looks: dict[Key, _Look] = {}

    def wait(self, key: Key, generation: int, now: float) -> float:
        """Seconds to wait, and 0 for a look that is taken now: what is asked for newly never waits."""
        look = self._looks.get(key)
        if look is None or look.generation != generation:
            self._looks[key] = _Look(generation, now)
            return 0.0
        left = self._left(look, now)
        if left <= 0:
            self._looks[key] = _Look(generation, now, look.failures)
            return 0.0
        return left

    def failed(self, key: Key) -> None:
        """The look that was taken last failed."""
        if look := self._looks.get(key):
            look.failures += 1

    def succeeded(self, key: Key) -> None:
        """The look that was taken last went well."""
        if look := self._looks.get(key):
            look.failures = 0

    def forget(self, key: Key) -> None:
        """A set that is gone."""
        self._looks.pop(key, None)

    def _left(self, look: _Look, now: float) -> float:
        if look.failures:
            return look.at + AFTER_FAILURE.delay(look.failures) - now
        if now - look.at >= self._longest:
            return 0.0
        if look.since is None:
            look.since = now
        elif now >= look.due:
            return 0.0
        look.due = min(now + self._quiet, look.since + self._longest)
        return look.due - now
