"""Waiting for a condition with a deadline, instead of sleeping a fixed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], object], what: str, *, within: float = 60.0) -> None:
    """Returns when the condition holds; fails, naming what was waited for, when it does not in time.

    A condition that takes long to look at (a command, say) is looked at less often: what is waited for needs the
    processors too.
    """
    deadline = time.monotonic() + within
    while True:
        looked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, f"waited {within:.0f} s in vain for {what}"
        time.sleep(min(max(0.02, 2 * (now - looked)), 1.0))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


async def eventually(condition: Callable[[], object], *, within: float = 30.0) -> None:
    """Returns when the condition holds, letting the event loop run meanwhile; fails when it does not in time."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"waited {within:.0f} s in vain"
        await asyncio.sleep(0.005)
