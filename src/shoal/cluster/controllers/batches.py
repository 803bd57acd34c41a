"""Doing the same many times without doing it all in vain: one first, then two, then four, as long as all goes well.

A quota that is used up, or a template that admission refuses, is met once and not a thousand times over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

FIRST = 1
LARGEST = 128
"""At once, however well it goes: a server of one core gains nothing from more."""


async def slow_start(count: int, attempt: Callable[[int], Awaitable[object]]) -> tuple[int, Exception | None]:
    """Calls ``attempt`` with 0, 1, … in growing batches; how many succeeded, and the first error, if any.

    After a batch with an error no further one begins. A cancellation is passed on.
    """
    done = 0
    begun = 0
    size = FIRST
    while begun < count:
        batch = range(begun, min(begun + size, count))
        begun = batch.stop
        results = await asyncio.gather(*(attempt(number) for number in batch), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        done += len(results) - len(errors)
        for error in errors:
            if not isinstance(error, Exception):
                raise error
        if errors:
            first = errors[0]
            assert isinstance(first, Exception)
            return done, first
        size = min(size * 2, LARGEST)
    return done, None
