"""How long to wait before trying again, and how often to try at all."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Exponential delays: ``initial``, then ``factor`` times longer each time up to ``cap``, with jitter on top."""

    initial: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.0
    """The largest share of a delay that is added at random, so that many clients do not come back at once."""

    def delay(self, failures: int, *, random: Callable[[], float] = random.random) -> float:
        """Seconds to wait after this many failures in a row (1 is the first)."""
        # The exponent is bounded before it is used: 2.0 ** 2000 does not fit a float.
        exponent = min(max(failures, 1) - 1, 64)
        delay = min(self.initial * self.factor**exponent, self.cap)
        return delay * (1 + self.jitter * random())


class TokenBucket:
    """Lets ``rate`` operations through each second on average, and up to ``burst`` at once.

    A reservation may be for the future: callers that wait are served in the order in which they asked.
    """

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs rate > 0 and burst ≥ 1, not rate={rate} and burst={burst}")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._updated = clock()

    def reserve(self) -> float:
        """Takes one token and says how many seconds to wait until it is really there."""
        self._refill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def try_take(self) -> bool:
        """Takes one token if it is there now."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def acquire(self) -> None:
        """Waits for a token."""
        if (delay := self.reserve()) > 0:
            await asyncio.sleep(delay)

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
