"""Several writes at once, of which one that fails does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, NamedTuple

from shoal.gangs.last_errors import GangError
from shoal.kube import Conflict

AT_ONCE = 10
"""How many writes for one object are under way at a time."""


class Failure(NamedTuple):
    """Something that failed, and the word that a status has for such; one that is awaited passes with an event."""

    code: str
    error: Exception
    is_awaited: bool = False


async def all_of(code: str, steps: Iterable[Awaitable[Any]]) -> list[Failure]:
    """Takes all steps, and tells what failed."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(step: Awaitable[Any]) -> Failure | None:
        async with limit:
            try:
                await step
            except Exception as error:
                return Failure(code, error)
        return None

    # Groups are at rest most of the time: no tasks for nothing.
    waiting = [one(step) for step in steps]
    return [failure for failure in await asyncio.gather(*waiting) if failure is not None] if waiting else []


def worth_telling(failures: Iterable[Failure]) -> list[Exception]:
    """What a status should tell of: a lost race is none of it, since it is tried again at once."""
    return [
        failure.error if isinstance(failure.error, GangError) else GangError(failure.code, str(failure.error))
        for failure in failures
        if not isinstance(failure.error, Conflict)
    ]


def raise_all(failures: Iterable[Failure]) -> None:
    """Hands the errors to the runtime, which tries again later."""
    errors = [failure.error for failure in failures if not failure.is_awaited]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several writes failed", errors)
