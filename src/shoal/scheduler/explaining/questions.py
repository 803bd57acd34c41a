"""Questions to a scheduler: they are answered at the end of a cycle, by its thread, before its session is closed.

So whoever asks never touches a model that is being worked on, and a cycle that nobody asked does no more than look
whether somebody did.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from shoal.scheduler.session.session import Session

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds that a question waits for the end of a cycle."""
_MOST: Final = 256


class CycleOutcome(Protocol):
    """What one cycle came to."""

    @property
    def number(self) -> int:
        """Which cycle it was."""

    @property
    def session(self) -> Session:
        """Its session, all actions done."""


Question = Callable[[CycleOutcome], T]


class Unanswered(Exception):
    """No cycle ended in time, or too many ask."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    question: Question[Any]
    future: asyncio.Future[Any]


class Questions:
    """Questions that wait for a cycle."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """``wake``: has a cycle begin soon, where all are at rest."""
        self._wake = wake
        self._asked: deque[_Asked] = deque()

    async def ask(self, question: Question[T], *, patience: float = PATIENCE) -> T:
        """Puts a question to the next cycle that ends; raises Unanswered."""
        if len(self._asked) >= _MOST:
            raise Unanswered(f"{_MOST} questions wait already: try again in a moment")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        asked = _Asked(question, future)
        self._asked.append(asked)
        self._wake()
        try:
            async with asyncio.timeout(patience):
                return await future
        except TimeoutError as error:
            raise Unanswered(
                f"no scheduling cycle ended within {patience:.0f} s: another replica leads, or the cycle is a long one"
            ) from error
        finally:
            with suppress(ValueError):
                self._asked.remove(asked)

    def answer(self, outcome: CycleOutcome) -> None:
        """Answers all that were asked; to be called in the cycle's thread, before its session is closed."""
        while self._asked:
            try:
                asked = self._asked.popleft()
            except IndexError:  # whoever asked has just gone
                return
            if asked.future.done():
                continue
            try:
                result: Any = asked.question(outcome)
            except Exception as error:  # whoever asked is told, and the cycle goes on
                _hand(asked.future, error=error)
            else:
                _hand(asked.future, result=result)


def _hand(future: asyncio.Future[Any], *, result: Any = None, error: Exception | None = None) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    with suppress(RuntimeError):  # its loop was closed meanwhile
        future.get_loop().call_soon_threadsafe(settle)
