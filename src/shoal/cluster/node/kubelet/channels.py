"""What a command and its client tell each other, whichever way the client came.

The client sends input, sizes of its terminal and that its input has ended. The agent sends output and, last of all, a
Status that says how the command ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from aiohttp import web

from shoal.cluster.node.kubelet.answers import Refused
from shoal.kube.streams.commands import ERROR, RESIZE, STDERR, STDIN, STDOUT

__all__ = [
    "ERROR",
    "RESIZE",
    "STDERR",
    "STDIN",
    "STDOUT",
    "Channels",
    "Close",
    "Ends",
    "Input",
    "Said",
    "Size",
    "Wanted",
]

PIECE = 32 * 1024
"""How much is sent at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The streams that a client takes part in."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @staticmethod
    def of(query: Mapping[str, str]) -> Wanted:
        """Reads the kubelet's query; raises Refused where nothing is wanted."""
        tty = _flag(query, "tty")
        # A terminal has one stream of output.
        wanted = Wanted(
            stdin=_flag(query, "input"),
            stdout=_flag(query, "output"),
            stderr=_flag(query, "error") and not tty,
            tty=tty,
        )
        if not (wanted.stdin or wanted.stdout or wanted.stderr):
            raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")
        return wanted


class Size(msgspec.Struct, frozen=True, rename="pascal"):
    """The size of a terminal in characters."""

    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Input:
    """What the client wrote."""

    data: bytes


class Close:
    """The client will write no more."""


Said = Input | Close | Size


class Ends(Protocol):
    """The agent's ends of the channels, by one protocol or another."""

    @property
    def response(self) -> web.StreamResponse:
        """What the client was answered with."""
        ...

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Can be used for the length of a block. Raises ConnectionError where the client is not there for it."""
        ...

    async def receive(self) -> Said | None:
        """What the client says next; None when it has left."""
        ...

    async def send(self, channel: int, data: bytes) -> None:
        """Sends output; waits while the client takes none. Raises ConnectionError where it has left."""
        ...

    async def finish(self, status: bytes) -> None:
        """Says how it ended, and closes."""
        ...


class Channels:
    """The agent's ends, with a memory for what was heard too early."""

    def __init__(self, request: web.Request, ends: Ends) -> None:
        self.request = request
        self._ends = ends
        self._held: Said | None = None

    async def receive(self) -> Said | None:
        """What the client says next; None when it has left."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        return await self._ends.receive()

    async def first_size(self, within: float) -> Size:
        """The size of the client's terminal where it says so at once, as kubectl does; otherwise none."""
        try:
            async with asyncio.timeout(within):
                said = await self.receive()
        except TimeoutError:
            return Size()
        if isinstance(said, Size):
            return said
        self._held = said
        return Size()

    async def send(self, channel: int, data: bytes) -> None:
        """Sends output; waits while the client takes none. Raises ConnectionError where it has left."""
        await self._ends.send(channel, data)

    async def finish(self, status: dict[str, Any]) -> None:
        """Says how it ended, and closes."""
        await self._ends.finish(msgspec.json.encode(status))


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name) in ("1", "true")
