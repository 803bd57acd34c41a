"""A load generator that costs little: requests prepared as bytes, answers looked at no further than their end.

One request is on its way on each connection. Plain sockets and epoll: an event loop's transports would take longer than
some of the answers. Whoever uses it sees how much of its own core it took.
"""

from __future__ import annotations

import gc
import math
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

_AT_ONCE = 256 * 1024
_PATIENCE = 60.0


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server, and who asks it."""

    host: str
    port: int
    context: ssl.SSLContext
    token: str

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """A request as it goes over the wire."""
        head = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Accept: application/json",
            f"Authorization: Bearer {self.token}",
            "User-Agent: bench/1",
        ]
        if body:
            head += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        return "\r\n".join([*head, "", ""]).encode() + body


class WrongAnswer(Exception):
    """A server refused what it was to do, or ended a connection."""


class Connection:
    """One TLS connection; counts what comes in."""

    def __init__(self, target: Target) -> None:
        plain = socket.create_connection((target.host, target.port), timeout=_PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = target.context.wrap_socket(plain, server_hostname=target.host)
        self.socket.setblocking(False)
        self.sent_at = 0.0
        self.received = 0
        self._tail = b""
        self._left = -1
        """Bytes that are still to come; -1 before the head, -2 where only the last chunk says that it is the last."""

    def send(self, request: bytes) -> None:
        self._left, self._tail, self.received = -1, b"", 0
        self.sent_at = time.perf_counter()
        while request:
            try:
                request = request[self.socket.send(request) :]
            except ssl.SSLWantWriteError:
                select.select([], [self.socket], [], _PATIENCE)

    def receive(self) -> bool:
        """Takes in what has come; whether the answer is whole."""
        while (data := self.read()) is not None:
            if self._left == -1:
                data = self._after_head(self._tail + data)
                if data is None:
                    continue
            self.received += len(data)
            if self._left == -2:
                self._tail = (self._tail + data[-7:])[-7:]
                if self._tail == b"\r\n0\r\n\r\n":
                    return True
            elif self.received >= self._left:
                return True
        return False

    def read(self) -> bytes | None:
        """What has come, as it came; None where there is nothing yet."""
        try:
            data = self.socket.recv(_AT_ONCE)
        except (ssl.SSLWantReadError, BlockingIOError):
            return None
        if not data:
            raise WrongAnswer("the server has closed a connection")
        return data

    def close(self) -> None:
        self.socket.close()

    def _after_head(self, data: bytes) -> bytes | None:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._tail = data
            return None
        if data[9:10] != b"2":
            raise WrongAnswer(data[:2000].decode(errors="replace"))
        self._tail = b""
        start = data.find(b"Content-Length: ", 0, end)
        self._left = -2 if start < 0 else int(data[start + 16 : data.index(b"\r", start)])
        return data[end + 4 :]


@dataclass
class Load:
    """What a number of connections got done."""

    seconds: float = 0.0
    client_cpu: float = 0.0
    """CPU seconds of this process meanwhile."""
    latencies: list[float] = field(default_factory=list)
    received: int = 0

    @property
    def answers(self) -> int:
        return len(self.latencies)

    @property
    def rate(self) -> float:
        return self.answers / self.seconds

    def percentile(self, share: float) -> float:
        """The latency that this share of the answers did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Crew:
    """Connections that take their requests from one source, one after the other."""

    def __init__(self, target: Target, requests: Iterator[bytes], connections: int) -> None:
        self._requests = requests
        self._connections = [Connection(target) for _ in range(connections)]

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for connection in self._connections:
            connection.close()

    @property
    def connections(self) -> Sequence[Connection]:
        return self._connections

    def next(self) -> bytes | None:
        return next(self._requests, None)


def drive(
    crew: Crew, *, seconds: float = math.inf, beside: Crew | None = None, until: Callable[[], bool] | None = None
) -> tuple[Load, Load]:
    """Keeps every connection busy until the time is over or the requests are, and waits for the last answers.

    Another crew may work beside the first, for as long as that does; ``until`` says when no more is to be sent.
    """
    load, other = Load(), Load()
    crews = [(crew, load)] + ([(beside, other)] if beside is not None else [])
    poll = select.epoll()
    busy: dict[int, tuple[Connection, Crew, Load]] = {}
    collects = gc.isenabled()
    gc.disable()
    cpu, start = time.process_time(), time.perf_counter()
    end = start + seconds
    try:
        for each, its in crews:
            for connection in each.connections:
                if (request := each.next()) is not None:
                    poll.register(connection.socket, select.EPOLLIN)
                    busy[connection.socket.fileno()] = connection, each, its
                    connection.send(request)
        active = sum(owner is crew for _, owner, _ in busy.values())
        while busy:
            events = poll.poll(_PATIENCE)
            if not events:
                raise WrongAnswer(f"{len(busy)} requests were not answered within {_PATIENCE:.0f} s")
            for number, _ in events:
                connection, owner, its = busy[number]
                if not connection.receive():
                    continue
                now = time.perf_counter()
                its.latencies.append(now - connection.sent_at)
                its.received += connection.received
                goes_on = now < end and active > 0 and not (until is not None and until())
                request = owner.next() if goes_on else None
                if request is not None:
                    connection.send(request)
                else:
                    del busy[number]
                    poll.unregister(number)
                    active -= owner is crew
        load.seconds = other.seconds = time.perf_counter() - start
        load.client_cpu = time.process_time() - cpu
    finally:
        poll.close()
        if collects:
            gc.enable()
    return load, other
