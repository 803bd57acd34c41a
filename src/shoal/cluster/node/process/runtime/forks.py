"""Processes that are copies of this one and do one thing.

A copy has all modules that it needs already: once it sees other files than the machine's there is nothing to load.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

FAILED = 70
"""How a copy ends that did not get to the end of what it does."""


def fork(act: Callable[[], object], *, kept: Iterable[int]) -> int:
    """Starts a copy that acts and ends; returns its pid.

    Of the descriptors beyond the first three it keeps those named: what another copy holds open would never be seen
    to close. Signals do to it what they do by default.
    """
    kept = sorted(kept)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    status = FAILED
    try:
        gc.disable()  # a collection would touch, and so copy, all that is shared
        reset_signals()
        close_others(kept)
        act()
        status = 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


def ended_children() -> Iterator[tuple[int, int]]:
    """The children that have ended by now, with how they did.

    A program can have itself traced by its parent, and is then reported when it merely stops: it is killed.
    """
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = found
            if os.WIFSTOPPED(status):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                continue
            yield pid, status


def reset_signals() -> None:
    """Lets all signals do what they do by default, and lets them through."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def close_others(kept: Iterable[int]) -> None:
    """Closes all descriptors but the first three and those named."""
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = max(first, descriptor + 1)
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))
