"""A transport whose answers a test writes down: for faults that a real server does not make on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from shoal.kube.errors import ConnectionFault
from shoal.kube.transport import Request, Response, WebSocket


class Answer:
    """A whole answer, or a stream of frames; an exception among the frames breaks the stream there."""

    def __init__(
        self,
        body: Any = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        frames: list[Any] | None = None,
        stays_open: bool = False,
    ) -> None:
        self.body = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.status = status
        self.headers = headers or {}
        self.frames = frames or []
        self.stays_open = stays_open

    async def read(self) -> bytes:
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        for frame in self.frames:
            if isinstance(frame, Exception):
                raise frame
            if isinstance(frame, asyncio.Event):
                await frame.wait()
                continue
            yield frame if isinstance(frame, bytes) else msgspec.json.encode(frame) + b"\n"
        if self.stays_open:
            await asyncio.Event().wait()


Script = Callable[[Request], Awaitable[Answer]]


class ScriptedTransport:
    """Answers each request by calling the script, and remembers what was asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[Request] = []

    @classmethod
    def of(cls, *answers: Answer | Exception) -> ScriptedTransport:
        """Gives these answers in turn; then no connection can be made."""
        waiting = list(answers)

        async def script(request: Request) -> Answer:
            answer = waiting.pop(0) if waiting else ConnectionFault("the script has ended")
            if isinstance(answer, Exception):
                raise answer
            return answer

        return cls(script)

    host = "scripted"

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        answer = await self._script(request)
        return Response(answer.status, answer.headers, answer.body)

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[Answer]:
        self.requests.append(request)
        yield await self._script(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        return self._stream(request)

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        raise ConnectionFault(f"no script for a WebSocket: {request}")

    async def close(self) -> None:
        return


def event(kind: str, name: str, version: int, *, uid: str = "", **more: Any) -> dict[str, Any]:
    """A watch frame about an object in the namespace ``default``."""
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"type": kind, "object": {"metadata": metadata, **more}}


def bookmark(version: int, *, ends_initial_events: bool = False) -> dict[str, Any]:
    """A watch frame that only tells how far the watch has come."""
    annotations = {"k8s.io/initial-events-end": "true"} if ends_initial_events else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": annotations}}}


def error(code: int, reason: str, message: str = "") -> dict[str, Any]:
    """A watch frame that ends the watch."""
    return {"type": "ERROR", "object": status(code, reason, message)}


def status(code: int, reason: str, message: str = "") -> dict[str, Any]:
    """A Status as the server answers it."""
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message or reason}


def refusal(code: int, reason: str, *, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer that refuses a request."""
    return Answer(status(code, reason), status=code, headers=headers)
