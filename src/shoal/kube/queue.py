"""The work queue of a controller: which key is reconciled next.

A key is in the queue once, however often it is added, and no two workers ever have the same key. One that is added
while it is worked on, or rests after that, comes back when it is done. Fresh changes go before what a resync found;
among keys of equal priority namespaces take turns, so that one with ten thousand changes does not make the others wait;
inside a namespace first come, first served. A key whose work fails waits exponentially longer each time, and all
retries together are limited too.
"""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from shoal.kube.backoff import Backoff, TokenBucket
from shoal.kube.metrics import Metrics
from shoal.kube.store import Key

FRESH = 0
"""The priority of a change that was just seen."""
RESYNC = -100
"""The priority of what was read in bulk."""


class ShutDown(Exception):
    """The queue is closed and nothing is left in it."""


@dataclass(frozen=True, kw_only=True)
class RetryLimits:
    """How failed keys come back; the defaults are client-go's."""

    backoff: Backoff = Backoff(initial=0.005, cap=1000.0)
    rate: float = 10.0
    burst: int = 100


class WorkQueue:
    """Keys that wait for work, for one controller, on one event loop."""

    def __init__(
        self,
        name: str,
        metrics: Metrics | None = None,
        *,
        retries: RetryLimits = RetryLimits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._retries = retries
        self._bucket = TokenBucket(rate=retries.rate, burst=retries.burst, clock=clock)
        self._ready: dict[int, _Turns] = {}
        self._queued: dict[Key, _Waiting] = {}
        self._working: dict[Key, float] = {}
        self._resting: set[Key] = set()
        self._again: dict[Key, int] = {}
        self._delayed: list[tuple[float, int, Key]] = []
        self._due: dict[Key, tuple[float, int, int]] = {}
        self._order = itertools.count()
        self._failures: dict[Key, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        metrics = metrics or Metrics()
        self._depth = functools.cache(lambda priority: metrics.queue_depth.labels(name, name, str(priority)))
        self._depth(FRESH).set(0)
        self._depth(RESYNC).set(0)
        self._adds = metrics.queue_adds.labels(name, name)
        self._retried = metrics.queue_retries.labels(name, name)
        self._waited = metrics.queue_wait.labels(name, name)
        self._worked = metrics.queue_work.labels(name, name)
        metrics.queue_unfinished.labels(name, name).set_function(self._unfinished_seconds)
        metrics.queue_longest.labels(name, name).set_function(self._longest_seconds)

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def is_idle(self) -> bool:
        """Whether nothing comes by itself: no key waits, is worked on, rests after that, or was put off."""
        return not (self._queued or self._working or self._resting or self._due)

    def add(self, key: Key, *, priority: int = FRESH) -> None:
        """Adds a key; where it waits already the higher priority wins."""
        if self._closed:
            return
        if key in self._working or key in self._resting:
            self._again[key] = max(priority, self._again.get(key, priority))
            return
        self._due.pop(key, None)
        waiting = self._queued.get(key)
        if waiting is not None:
            if priority <= waiting.priority:
                return
            self._ready[waiting.priority].remove(key)
            self._count_depth(waiting.priority)
            waiting.priority = priority
        else:
            self._adds.inc()
            self._queued[key] = _Waiting(priority, self._clock())
        self._ready.setdefault(priority, _Turns()).append(key)
        self._count_depth(priority)
        self._wake_one()

    def add_after(self, key: Key, delay: float, *, priority: int = FRESH) -> None:
        """Adds a key once ``delay`` seconds have passed; the earlier of two times wins."""
        if self._closed:
            return
        if delay <= 0:
            self.add(key, priority=priority)
            return
        due = self._clock() + delay
        if key in self._queued and self._queued[key].priority >= priority:
            return
        known = self._due.get(key)
        if known is not None and known[0] <= due:
            if priority > known[2]:
                self._due[key] = (known[0], known[1], priority)
            return
        order = next(self._order)
        self._due[key] = (due, order, max(priority, known[2]) if known else priority)
        heapq.heappush(self._delayed, (due, order, key))
        if len(self._delayed) > 2 * len(self._due) + 64:
            # Most entries were overtaken by an earlier time: forget them before they fall due.
            self._delayed = [(due, order, key) for key, (due, order, _) in self._due.items()]
            heapq.heapify(self._delayed)
        self._set_timer()

    def retry(self, key: Key, *, priority: int = FRESH) -> float:
        """Adds a key whose work failed, later each time; says after how many seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._retried.inc()
        delay = max(self._retries.backoff.delay(failures), self._bucket.reserve())
        self.add_after(key, delay, priority=priority)
        return delay

    def forget(self, key: Key) -> None:
        """The work on a key succeeded: its next failure is its first."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """How often in a row the work on a key has failed."""
        return self._failures.get(key, 0)

    async def get(self) -> tuple[Key, int]:
        """The next key and its priority; waits for one. Every key got must be given to ``done``."""
        while True:
            for priority in sorted(self._ready, reverse=True):
                if self._ready[priority]:
                    return self._begin(priority), priority
            if self._closed:
                raise ShutDown
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # The wake-up that was meant for us goes to the next one who waits.
                if getter.done() and not getter.cancelled():
                    self._wake_one()
                raise

    def done(self, key: Key) -> None:
        """The work on a key has ended, well or not, and so has its rest."""
        if key in self._resting:
            self._resting.remove(key)
        else:
            self._ended(key)
        priority = self._again.pop(key, None)
        if priority is not None:
            self.add(key, priority=priority)

    def rest(self, key: Key) -> None:
        """The work on a key has ended, and it is not to be worked on again before ``done`` is called."""
        self._ended(key)
        self._resting.add(key)

    def close(self) -> None:
        """Takes nothing more and drops what waits; ``get`` raises ShutDown."""
        self._closed = True
        for priority, turns in self._ready.items():
            turns.clear()
            self._count_depth(priority)
        self._ready.clear()
        self._queued.clear()
        self._again.clear()
        self._delayed.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            self._wake_one()

    async def drained(self) -> None:
        """Waits until no key is worked on."""
        await self._idle.wait()

    def _begin(self, priority: int) -> Key:
        key = self._ready[priority].pop()
        waiting = self._queued.pop(key)
        now = self._clock()
        self._waited.observe(now - waiting.since)
        self._working[key] = now
        self._idle.clear()
        self._count_depth(priority)
        return key

    def _ended(self, key: Key) -> None:
        began = self._working.pop(key)
        self._worked.observe(self._clock() - began)
        if not self._working:
            self._idle.set()

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._delayed:
            delay = max(0.0, self._delayed[0][0] - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay, self._release_due)

    def _release_due(self) -> None:
        self._timer = None
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            _, order, key = heapq.heappop(self._delayed)
            known = self._due.get(key)
            if known is not None and known[1] == order:
                del self._due[key]
                self.add(key, priority=known[2])
        self._set_timer()

    def _count_depth(self, priority: int) -> None:
        self._depth(priority).set(len(self._ready.get(priority, ())))

    def _unfinished_seconds(self) -> float:
        now = self._clock()
        return sum(now - began for began in self._working.values())

    def _longest_seconds(self) -> float:
        return max((self._clock() - began for began in self._working.values()), default=0.0)


@dataclass
class _Waiting:
    priority: int
    since: float


class _Turns:
    """Keys in the order of their arrival, namespaces taking turns."""

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, OrderedDict[Key, None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, key: Key) -> None:
        self._by_namespace.setdefault(key.namespace, OrderedDict())[key] = None
        self._count += 1

    def pop(self) -> Key:
        namespace, keys = self._by_namespace.popitem(last=False)
        key, _ = keys.popitem(last=False)
        if keys:
            self._by_namespace[namespace] = keys
        self._count -= 1
        return key

    def clear(self) -> None:
        self._by_namespace.clear()
        self._count = 0

    def remove(self, key: Key) -> None:
        keys = self._by_namespace[key.namespace]
        del keys[key]
        if not keys:
            del self._by_namespace[key.namespace]
        self._count -= 1
