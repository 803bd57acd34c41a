"""Long work in short turns: an answer of many megabytes in the making must not keep the short ones waiting."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

TURN = 0.004
THREADS_TURN = 0.001


def take_short_turns() -> None:
    """Has the threads of this process hand the interpreter on after a millisecond, rather than five.

    For a process that answers in one thread and schedules in another. Each time that an answer waits for a socket, it
    then waits for the interpreter, too: at most so long.
    """
    sys.setswitchinterval(THREADS_TURN)


async def in_slices(work: Iterator[None]) -> None:
    """Carries work out that says by its yields where it may pause."""
    began = time.perf_counter()
    for _ in work:
        if time.perf_counter() - began > TURN:
            await asyncio.sleep(0)
            began = time.perf_counter()
