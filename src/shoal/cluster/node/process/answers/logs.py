"""Logs of containers, as they are asked for: parts of what was written, and what goes on to be written.

What is read is kept no longer than it takes to pass it on, a block at a time, so that a log's size costs nothing; the
disk is read beside the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from shoal.cluster.node.kubelet import LogOptions
from shoal.cluster.node.process.answers.log_files import LogFiles
from shoal.cluster.node.process.answers.records import Reading, last_time, timestamp
from shoal.cluster.node.process.answers.watches import Watches

Given = TypeVar("Given")

Ended = Callable[[], Awaitable[None]]
"""Returns when the container that writes a log has ended, and all that it wrote is in the log."""


async def log_text(
    path: Path,
    options: LogOptions,
    watches: Watches,
    ended: Ended | None,
    shown: Callable[[bytes], None] = lambda time: None,
) -> AsyncGenerator[bytes, None]:
    """What is wanted of a log; the first piece is empty. ``ended`` is of a container that is to be followed.

    ``shown`` is told the time of the last record of each piece.
    """
    yield b""
    since = timestamp(options.since) if options.since is not None else b""
    reading = Reading(since=since, timestamps=options.timestamps)
    files = LogFiles(path, is_followed=ended is not None)

    def open_files() -> None:
        files.open()
        files.skip_before(since)
        if options.tail is not None:
            files.skip_to_last(options.tail)

    try:
        await in_thread(open_files)
        blocks = followed(files, path, watches, ended) if ended is not None else kept(files)
        async for block in blocks:
            shown(last_time(block))
            yield reading.text(block)
    finally:
        files.close()


async def kept(files: LogFiles) -> AsyncGenerator[bytes, None]:
    """The records that there are."""
    while block := await in_thread(files.read):
        yield block


async def followed(files: LogFiles, path: Path, watches: Watches, ended: Ended) -> AsyncGenerator[bytes, None]:
    """The records that there are and those that come, until the container has ended."""
    ending = asyncio.ensure_future(ended())
    try:
        with watches.on(path.parent) as changed:
            ending.add_done_callback(lambda _: changed.set())
            is_over = False
            while not is_over:
                # Both are looked at before the reading: what comes during it is seen by the next one.
                changed.clear()
                is_over = ending.done()
                while block := await in_thread(files.read):
                    yield block
                if not is_over and not ending.done():
                    await changed.wait()
    finally:
        ending.cancel()


async def in_thread(work: Callable[[], Given]) -> Given:
    """What some work on files gives. It is never left alone: whoever is cancelled may close the files at once."""
    working = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        raise
