"""The main process of a container, as somebody who joins it sees it: what it writes from now on, and its input.

What it writes is read from its log, in which every piece is found the moment that it is written: any number may watch,
and none of them holds the container up. It goes on when they leave, and they are told when it ends.

An input that is closed after its first client (`stdinOnce`, as `kubectl run --stdin` asks for) makes that client the
one whom the container was started for. It sees everything: a short program has often said all that it has to say before
anybody could join it. kubectl reads the log before it joins, and is shown what came after what it has read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from aiohttp import web

from shoal.cluster.node.kubelet.channels import PIECE, STDERR, STDOUT, Channels, Wanted
from shoal.cluster.node.kubelet.joining import join
from shoal.cluster.node.kubelet.outcomes import failed, success
from shoal.cluster.node.process.answers.commands import feed
from shoal.cluster.node.process.answers.descriptors import WriteEnd
from shoal.cluster.node.process.answers.log_files import LogFiles
from shoal.cluster.node.process.answers.logs import Ended, followed, in_thread
from shoal.cluster.node.process.answers.records import records
from shoal.cluster.node.process.answers.residents import Runtime
from shoal.cluster.node.process.answers.watches import Watches
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.runtime.protocol import ContainerSpec


class Attaching:
    """Lets clients join containers."""

    def __init__(self, runtime: Runtime, watches: Watches, shown: dict[str, bytes]) -> None:
        """``shown`` is the time up to which the log of a container, by its path, was read before somebody joins it."""
        self._runtime = runtime
        self._watches = watches
        self._shown = shown

    async def attach(self, request: web.Request, spec: ContainerSpec, ended: Ended) -> web.StreamResponse:
        """Serves one client until it leaves, or the container ends."""
        wanted = Wanted.of(request.query)
        path = Path(spec.log)
        files = LogFiles(path, is_followed=True)

        def go_to_end() -> None:
            files.open()
            files.skip_to_last(0)

        try:
            # Before anything is put in: what is written in answer to it is not to be missed.
            await in_thread(go_to_end)
            blocks = followed(files, path, self._watches, ended)
            return await join(request, wanted, lambda channels: self._talk(channels, wanted, spec, files, blocks))
        finally:
            files.close()

    async def _talk(
        self,
        channels: Channels,
        wanted: Wanted,
        spec: ContainerSpec,
        files: LogFiles,
        blocks: AsyncGenerator[bytes, None],
    ) -> None:
        taken = {channel for channel, is_taken in ((STDOUT, wanted.stdout), (STDERR, wanted.stderr)) if is_taken}
        after = b""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(aclosing(blocks))
            try:
                stdin = await self._input(spec) if wanted.stdin and spec.has_stdin else None
            except RuntimeFault as fault:
                await channels.finish(failed(f"error attaching to container: {fault.message}"))
                return
            if stdin is not None:
                stack.callback(stdin.close)
                if spec.closes_stdin and not spec.has_tty:
                    after = self._shown.pop(spec.log, b"")
                    await in_thread(files.open)
            try:
                async with asyncio.TaskGroup() as group:
                    feeding = group.create_task(feed(channels, stdin, has_tty=spec.has_tty))
                    async for block in blocks:
                        for channel, piece in _pieces(block, after):
                            if channel in taken:
                                await channels.send(channel, piece)
                    feeding.cancel()
            except ExceptionGroup as problems:
                raise problems.exceptions[0] from problems
        # How it ended is in the pod's status, where kubectl looks for it: an error here would be that of the attaching.
        await channels.finish(success())

    async def _input(self, spec: ContainerSpec) -> WriteEnd | None:
        """What leads into the container, where anything does."""
        try:
            return WriteEnd(await self._runtime.stdin(spec.id))
        except RuntimeFault as fault:
            if fault.reason != "NoStdin":
                raise
            return None


def _pieces(block: bytes, after: bytes) -> Iterator[tuple[int, bytes]]:
    """What was written to each stream, in its order, in pieces that are fit to be sent."""
    for stream, written in groupby(records(block, after=after), key=attrgetter("stream")):
        text = b"".join([record.text for record in written])
        channel = STDERR if stream == "stderr" else STDOUT
        yield from ((channel, text[start : start + PIECE]) for start in range(0, len(text), PIECE))
