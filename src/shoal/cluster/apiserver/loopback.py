"""A transport of the client runtime that calls a service in the same process, so that a test needs no socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from shoal.cluster.apiserver.calls import Answer, Call, Streaming
from shoal.cluster.apiserver.service import Service
from shoal.kube.transport import Request, Response, Stream, WebSocket


class LoopbackTransport:
    """Calls a service as its owner, or with a token; WebSockets are HTTP's alone."""

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
        body = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
        return Response(reply.status, {**reply.headers, "Content-Type": reply.content_type}, body)

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
        """Not here: exec and port-forward need a real connection."""
        raise NotImplementedError(f"{request}: a WebSocket ({protocols[0]}) needs a connection, use HttpTransport")

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
            yield self._reply.body if isinstance(self._reply.body, bytes) else b"".join(self._reply.body)
            return
        async for chunk in self._reply.chunks:
            yield chunk

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def close(self) -> None:
        if isinstance(self._reply, Streaming) and hasattr(self._reply.chunks, "aclose"):
            await self._reply.chunks.aclose()
