"""A transport of the client runtime that calls a service in the same process, so that a test needs no socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from shoal.cluster.apiserver.calls import Answer, Call, Streaming, Upgrade
from shoal.cluster.apiserver.service import Service
from shoal.kube.errors import error_from_response
from shoal.kube.transport import Request, Response, Stream, WebSocket


class LoopbackTransport:
    """Calls a service as its owner, or with a token."""

    def __init__(self, service: Service, *, token: str = "", agent: str = "shoal") -> None:
        self._service = service
        self._token = token
        self._agent = agent

    @property
    def host(self) -> str:
        """Which server it leads to, for metrics."""
        return "loopback"

    async def send(self, request: Request) -> Response:
        """One request and its whole answer."""
        reply = await self._service.answer(self._call(request))
        assert isinstance(reply, Answer), "only an answer of known length can be sent whole"
        return Response(reply.status, {**reply.headers, "Content-Type": reply.content_type}, _whole(reply))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """One request and an answer that goes on."""
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[Stream]:
        reply = await self._service.answer(self._call(request))
        assert isinstance(reply, Answer | Streaming)
        stream = _Stream(reply)
        try:
            yield stream
        finally:
            await stream.close()

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        """A two-way stream of messages; an answer other than an upgrade is raised as the ApiError it means."""
        return self._websocket(request, protocols)

    @asynccontextmanager
    async def _websocket(self, request: Request, protocols: tuple[str, ...]) -> AsyncIterator[WebSocket]:
        call = self._call(request)
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-protocol": ", ".join(protocols)}
        call.headers = {**call.headers, **upgrade}
        reply = await self._service.answer(call)
        if not isinstance(reply, Upgrade):
            assert isinstance(reply, Answer)
            raise error_from_response(reply.status, _whole(reply), request=str(request))
        there, back = _messages(), _messages()
        ours = _Socket(reply.protocol, outgoing=there, incoming=back)
        theirs = _Socket(reply.protocol, outgoing=back, incoming=there)
        serving = asyncio.create_task(_served(reply, theirs))
        try:
            yield ours
        finally:
            await ours.close()
            serving.cancel()
            await asyncio.wait([serving])

    async def close(self) -> None:
        """Nothing is open."""

    def _call(self, request: Request) -> Call:
        pairs = request.query.items() if isinstance(request.query, Mapping) else request.query
        query: dict[str, list[str]] = {}
        for name, value in pairs:
            query.setdefault(name, []).append(value)
        headers = {"accept": request.accept, "content-type": request.content_type, "user-agent": self._agent}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        return Call(
            method=request.method,
            path=request.path,
            query=query,
            headers=headers,
            body=request.body or b"",
            is_trusted=not self._token,
        )


def _whole(answer: Answer) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)


_Messages = asyncio.Queue[bytes | None]
"""The messages of one direction; None is its end."""


def _messages() -> _Messages:
    """As few under way as on a connection whose reader is slow."""
    return asyncio.Queue(maxsize=16)


async def _served(reply: Upgrade, socket: _Socket) -> None:
    try:
        await reply.serve(socket)
    finally:
        # After all that was sent before it; whoever has left by then cancels the wait.
        await socket.end()


class _Socket:
    """One end of a WebSocket whose other end is in the same process."""

    def __init__(self, protocol: str, *, outgoing: _Messages, incoming: _Messages) -> None:
        self.protocol = protocol
        self._outgoing = outgoing
        self._incoming = incoming
        self._is_closed = False

    async def send(self, data: bytes) -> None:
        if self._is_closed:
            raise ConnectionResetError("the WebSocket is closed")
        await self._outgoing.put(data)

    async def messages(self) -> AsyncIterator[bytes]:
        while (message := await self._incoming.get()) is not None:
            yield message

    async def end(self) -> None:
        self._is_closed = True
        await self._outgoing.put(None)

    async def close(self) -> None:
        """Leaves at once: where the other end is behind, it loses the last message, as where a connection breaks."""
        if not self._is_closed:
            self._is_closed = True
            if self._outgoing.full():
                self._outgoing.get_nowait()
            self._outgoing.put_nowait(None)


class _Stream:
    def __init__(self, reply: Answer | Streaming) -> None:
        self._reply = reply

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._reply, Answer):
            yield _whole(self._reply)
            return
        async for chunk in self._reply.chunks:
            yield chunk

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def close(self) -> None:
        if isinstance(self._reply, Streaming) and hasattr(self._reply.chunks, "aclose"):
            await self._reply.chunks.aclose()
