"""Long computations run in worker threads, so that the event loop keeps answering other clients.

Reading, patching and validating an object takes time in proportion to its size, and all of it is plain computation on
values that belong to one request. Below a size that takes a few milliseconds it is done at once; above it, a thread
does it, and the interpreter switches between the threads every few milliseconds. One user has one computation at a
time and two users have one each, so that a client with a hundred large requests delays its own and no others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from shoal.cluster.apiserver.cel.costs import Allowance, ExceedsAllowance, allowance
from shoal.cluster.apiserver.refusals import too_many_requests

T = TypeVar("T")

HEAVY_BYTES = 32 * 1024
"""From this size on an object is computed with in a worker thread."""
SWITCH_SECONDS = 0.001
"""How long the event loop waits for the interpreter while a worker computes; Python's own choice is five times that."""

_WORKERS = 2
_STEPS_AT_ONCE = 5_000
"""What the CEL rules of one small object may take on the event loop: about ten milliseconds."""
_MOST_WAITING = 64
"""How many computations of one user may wait: each of them holds a body of up to 3 MB."""


class Offload:
    """A few worker threads that users share fairly."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="apiserver-offload")
        self._busy: set[str] = set()
        """The users who have a computation under way."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The computations that wait, the users in the order of their turns."""

    async def compute(self, user: str, size: int, work: Callable[[], T]) -> T:
        """The result of a pure computation on so many bytes, which is repeated where it turns out to take long."""
        if size >= HEAVY_BYTES:
            return await self.run(user, work)
        reset = allowance.set(Allowance(_STEPS_AT_ONCE))
        try:
            return work()
        except ExceedsAllowance:
            pass
        finally:
            allowance.reset(reset)
        return await self.run(user, work)

    async def run(self, user: str, work: Callable[[], T]) -> T:
        """The result of a computation that takes long; refused where too many of the user's wait already."""
        await self._turn(user)
        try:
            running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        except BaseException:
            self._finished(user)
            raise
        running.add_done_callback(lambda done: self._finished(user, done))
        # A client that leaves does not free the thread: the next one has its turn when the computation is over.
        return await asyncio.shield(running)

    def close(self) -> None:
        """Lets what runs come to its end, and starts nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, user: str) -> None:
        if len(self._busy) < _WORKERS and user not in self._busy:
            self._busy.add(user)
            return
        queue = self._waiting.setdefault(user, deque())
        if len(queue) >= _MOST_WAITING:
            raise too_many_requests("Too many requests, please try again later.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._finished(user)
            raise

    def _finished(self, user: str, done: asyncio.Future[T] | None = None) -> None:
        if done is not None and not done.cancelled():
            done.exception()  # where nobody waits any more, nobody needs to hear of it
        self._busy.discard(user)
        for next_user in list(self._waiting):
            if len(self._busy) >= _WORKERS:
                return
            if next_user not in self._busy:
                self._start_next(next_user)

    def _start_next(self, user: str) -> None:
        queue = self._waiting.pop(user)
        while queue:
            turn = queue.popleft()
            if not turn.done():
                self._busy.add(user)
                turn.set_result(None)
                break
        if queue:
            self._waiting[user] = queue  # behind the other users
