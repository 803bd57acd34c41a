"""How requests reach an API server: the one protocol that the client needs.

``http.HttpTransport`` speaks it over TCP or a Unix socket; a test can hand in a transport that calls a server in the
same process. A transport moves bytes and signs them; retries, limits and errors are the client's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request, relative to the server's base URL; ``query`` values are not yet encoded."""

    method: str
    path: str
    query: Mapping[str, str] | tuple[tuple[str, str], ...] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    timeout: float | None = None
    """Seconds until the whole answer must be there (for a stream: its head); None waits for ever."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An answer whose body goes on: a watch, or a followed log."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; ends when the server ends it, raises ConnectionFault when it breaks."""
        ...

    async def read(self) -> bytes:
        """The rest of the body at once."""
        ...


class WebSocket(Protocol):
    """A two-way stream of binary messages, for exec and port-forward."""

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""
        ...

    async def send(self, data: bytes) -> None: ...
    def messages(self) -> AsyncIterator[bytes]: ...
    async def close(self) -> None: ...


class Transport(Protocol):
    """Moves requests; every fault of the connection is raised as ConnectionFault."""

    @property
    def host(self) -> str:
        """Which server it leads to, for metrics."""
        ...

    async def send(self, request: Request) -> Response: ...
    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]: ...
    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        """Opens a WebSocket; an answer other than an upgrade is raised as the ApiError it means."""
        ...

    async def close(self) -> None: ...
