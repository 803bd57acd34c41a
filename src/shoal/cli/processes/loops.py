"""The event loop of a process, and the signals that ask it to end."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

_YOUNG = 20_000
"""How many new objects there are before the collector looks at them. Nearly all of a request's are gone by themselves
when it ends; with Python's own 700 the collector finds many still in use, and takes a tenth of a busy process' time.
"""

_HAND_OVER = 0.001
"""Seconds after which the loop hands the interpreter to a thread that waits for it, such as the store's, which has
little to do with it; with Python's own 5 ms each commit waits longer for the loop than for the disk.
"""


_GOOD_BYE = 0.03
"""Seconds that closing a TLS connection takes a peer on the same machine, and then some."""


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine to its end, on uvloop where there is one: it answers about twice as many requests."""
    sys.setswitchinterval(_HAND_OVER)
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    runner = asyncio.Runner(loop_factory=_loop_factory())
    try:
        runner.run(_to_its_end(main))
    finally:
        try:
            runner.close()
        except OSError as error:
            # uvloop minds connections that are still being closed; the end of the process closes them.
            if error.errno != errno.EBUSY:
                raise


async def _to_its_end(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine, and leaves connections that it let go of the moment in which TLS says good-bye."""
    try:
        await main
    finally:
        await asyncio.sleep(_GOOD_BYE)


def stop_signalled() -> asyncio.Event:
    """An event that SIGINT and SIGTERM set, even where these were inherited as ignored or blocked."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    return asked


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return uvloop.new_event_loop
