"""A real connection on which faults can be caused: broken streams, refusals, slow answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import msgspec

from shoal.kube import Informer
from shoal.kube.errors import ConnectionFault
from shoal.kube.transport import Request, Response, Stream, Transport, WebSocket
from tests.support.network.scripted import status

Fault = Callable[[Request], Response | None]
"""Looks at a request and answers it itself, or lets it pass."""


class FaultyTransport:
    """Passes everything on to a real transport, but for the faults that a test causes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._streams: set[_CuttableStream] = set()
        self.faults: list[Fault] = []
        self.delay: Callable[[], float] = lambda: 0.0
        self.meanwhile: Callable[[Request], Awaitable[None]] = _nothing
        """What happens between the decision to send a request and its arrival."""
        self.streams_opened = 0
        self.streams_cut = 0

    @property
    def host(self) -> str:
        return self._transport.host

    async def send(self, request: Request) -> Response:
        if (delay := self.delay()) > 0:
            await asyncio.sleep(delay)
        await self.meanwhile(request)
        return self._refused(request) or await self._transport.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[Stream]:
        self.streams_opened += 1
        if refused := self._refused(request):
            yield _WholeStream(refused)
            return
        async with self._transport.stream(request) as real:
            stream = _CuttableStream(real, str(request))
            self._streams.add(stream)
            try:
                yield stream
            finally:
                self._streams.discard(stream)

    def cut_streams(self) -> None:
        """Breaks every open stream, as a lost connection does."""
        for stream in self._streams:
            self.streams_cut += 1
            stream.cut.set()

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        return self._transport.websocket(request, protocols)

    async def close(self) -> None:
        await self._transport.close()

    def _refused(self, request: Request) -> Response | None:
        return next((answer for fault in self.faults if (answer := fault(request)) is not None), None)


@contextmanager
def behind(informer: Informer[Any]) -> Iterator[None]:
    """Keeps what happens from an informer for the length of a block, as a slow watch does."""
    missed: list[Any] = []
    hear = informer.update
    informer.update = missed.extend  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        informer.update = hear  # type: ignore[method-assign]
        hear(missed)


async def _nothing(request: Request) -> None:
    return


def sometimes(share: float, code: int, reason: str, *, seed: int, headers: Mapping[str, str] | None = None) -> Fault:
    """Refuses a share of all requests that are not watches."""
    chance = random.Random(seed)

    def fault(request: Request) -> Response | None:
        if "watch" in dict(request.query) or chance.random() >= share:
            return None
        return Response(code, headers or {}, msgspec.json.encode(status(code, reason)))

    return fault


def expire_watches_once(per_path: set[str]) -> Fault:
    """Answers the first resumed watch of each path as if its version had been forgotten."""

    def fault(request: Request) -> Response | None:
        query = dict(request.query)
        if "watch" not in query or "sendInitialEvents" in query or request.path in per_path:
            return None
        per_path.add(request.path)
        return Response(410, {}, msgspec.json.encode(status(410, "Expired")))

    return fault


class _CuttableStream:
    def __init__(self, stream: Stream, request: str) -> None:
        self._stream = stream
        self._request = request
        self.cut = asyncio.Event()

    @property
    def status(self) -> int:
        return self._stream.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._stream.headers

    async def read(self) -> bytes:
        return await self._stream.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = self._stream.chunks()
        cut = asyncio.ensure_future(self.cut.wait())
        pending: asyncio.Future[bytes | None] | None = None
        try:
            while True:
                pending = asyncio.ensure_future(_next(chunks))
                await asyncio.wait([pending, cut], return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    raise ConnectionFault(f"cut by the test ({self._request})")
                chunk = await pending
                if chunk is None:
                    return
                yield chunk
        finally:
            for task in (cut, pending):
                if task is not None:
                    task.cancel()
                    await asyncio.wait([task])


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


class _WholeStream:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body
