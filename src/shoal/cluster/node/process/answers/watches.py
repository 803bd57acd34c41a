"""Folders that are watched for change (inotify).

One watch of the system's serves all who watch: a user may have few of them. Where there are none left, folders are
looked at twice a second instead.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

logger = structlog.get_logger(__name__)

_MODIFY, _MOVED_TO, _CREATE = 0x2, 0x80, 0x100
_CHANGES = _MODIFY | _MOVED_TO | _CREATE
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_LOOKS_EVERY = 0.5

_system = ctypes.CDLL(None, use_errno=True)


class Watches:
    """The folders that somebody watches now."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._watching: dict[int, list[asyncio.Event]] = {}

    @contextmanager
    def on(self, folder: Path) -> Iterator[asyncio.Event]:
        """An event that is set whenever files in a folder are written to or begun; who waits for it clears it."""
        changed = asyncio.Event()
        watch = self._watch(folder)
        if watch is None:
            with _looking(changed):
                yield changed
            return
        self._watching.setdefault(watch, []).append(changed)
        try:
            yield changed
        finally:
            self._forget(watch, changed)

    def close(self) -> None:
        """Watches nothing any more."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _watch(self, folder: Path) -> int | None:
        if self._descriptor is None:
            descriptor = _system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if descriptor < 0:
                _warn(folder)
                return None
            self._descriptor = descriptor
            asyncio.get_running_loop().add_reader(descriptor, self._read)
        watch: int = _system.inotify_add_watch(self._descriptor, os.fsencode(folder), _CHANGES)
        if watch < 0:
            _warn(folder)
            return None
        return watch

    def _forget(self, watch: int, changed: asyncio.Event) -> None:
        waiting = self._watching.get(watch)
        if waiting is None:
            return
        waiting.remove(changed)
        if not waiting:
            del self._watching[watch]
            _system.inotify_rm_watch(self._descriptor, watch)

    def _read(self) -> None:
        assert self._descriptor is not None
        try:
            data = os.read(self._descriptor, 64 * 1024)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, offset)
            offset += _EVENT.size + length
            if mask & _OVERFLOW:
                for waiting in self._watching.values():
                    _wake(waiting)
            elif mask & _IGNORED:
                # The folder is gone, and nothing will be heard of it again.
                _wake(self._watching.pop(watch, []))
            else:
                _wake(self._watching.get(watch, []))


def _wake(waiting: list[asyncio.Event]) -> None:
    for changed in waiting:
        changed.set()


def _warn(folder: Path) -> None:
    problem = os.strerror(ctypes.get_errno())
    logger.warning("a folder cannot be watched and is looked at instead", folder=str(folder), problem=problem)


@contextmanager
def _looking(changed: asyncio.Event) -> Iterator[None]:
    async def look() -> None:
        while True:
            await asyncio.sleep(_LOOKS_EVERY)
            changed.set()

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
