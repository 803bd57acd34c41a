"""Ends of pipes and terminals, as things to await.

Nothing is read before it is asked for and nothing written is held back here, so that a pipe's own size is all that is
between its two ends: who is slow at one of them slows the other.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable

PIECE = 32 * 1024


class ReadEnd:
    """The end of a pipe or terminal that is read; it owns the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._end = _End(descriptor)
        self._patience: float | None = None

    async def read(self) -> bytes:
        """What was written; nothing at the end."""
        while True:
            try:
                return os.read(self._end.descriptor, PIECE)
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                if not await self._end.ready(loop.add_reader, loop.remove_reader, self._patience):
                    return b""
            except OSError:
                # A terminal that nobody holds any more.
                return b""

    def expect_little(self, patience: float) -> None:
        """From now on, silence for so many seconds is the end."""
        self._patience = patience
        self._end.hurry(patience)

    def close(self) -> None:
        """Closes it."""
        self._end.close()


class WriteEnd:
    """The end of a pipe or terminal that is written to; it owns the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._end = _End(descriptor)

    def write_now(self, data: bytes) -> bytes:
        """Writes what fits and gives back the rest. Raises OSError where nobody reads."""
        while data:
            try:
                data = data[os.write(self._end.descriptor, data) :]
            except BlockingIOError:
                break
        return data

    async def write(self, data: bytes) -> None:
        """Writes all of it; waits while the other end reads none. Raises OSError where nobody reads."""
        loop = asyncio.get_running_loop()
        while data := self.write_now(data):
            await self._end.ready(loop.add_writer, loop.remove_writer, None)

    def resize(self, *, columns: int, rows: int) -> None:
        """Tells a terminal its size; whatever runs in it hears of it."""
        limit = 0xFFFF
        size = struct.pack("HHHH", min(rows, limit), min(columns, limit), 0, 0)
        fcntl.ioctl(self._end.descriptor, termios.TIOCSWINSZ, size)

    def close(self) -> None:
        """Closes it."""
        self._end.close()


class _End:
    """A descriptor, and whoever waits for it."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._is_open = True
        self._waiter: asyncio.Future[bool] | None = None
        self._stop_waiting: Callable[[int], object] | None = None

    async def ready(
        self, add: Callable[[int, Callable[[], None]], object], remove: Callable[[int], object], patience: float | None
    ) -> bool:
        """Waits until there is something to be done; False where patience ran out, or it was closed."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiter = waiter
        add(self.descriptor, lambda: _settle(waiter, True))
        self._stop_waiting = remove
        try:
            if patience is not None:
                self.hurry(patience)
            return await waiter
        finally:
            self._waiter = None
            self._unregister()

    def hurry(self, patience: float) -> None:
        """Ends the waiting that goes on, if it goes on for so long."""
        if self._waiter is not None:
            asyncio.get_running_loop().call_later(patience, _settle, self._waiter, False)

    def close(self) -> None:
        """Closes the descriptor."""
        if self._is_open:
            self._is_open = False
            self._unregister()
            os.close(self.descriptor)
            if self._waiter is not None:
                _settle(self._waiter, False)

    def _unregister(self) -> None:
        if self._stop_waiting is not None:
            self._stop_waiting(self.descriptor)
            self._stop_waiting = None


def _settle(waiter: asyncio.Future[bool], is_ready: bool) -> None:
    if not waiter.done():
        waiter.set_result(is_ready)
