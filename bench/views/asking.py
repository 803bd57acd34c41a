"""Somebody who asks, one request after the other over one connection, and reads each answer to its end."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shoal.visualizer import PREFIX


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One kind of request."""

    what: str
    path: str
    gzip: bool = False
    is_known: bool = False
    """Asks again for what it has, as a page that refreshes does."""
    requests: int = 200


ASKS = (
    Ask(what="summary", path="summary"),
    Ask(what="queues", path="queues"),
    Ask(what="nodes", path="nodes"),
    Ask(what="nodes gzip", path="nodes", gzip=True),
    Ask(what="jobs, namespace", path="jobs?namespace=team-7"),
    Ask(what="nodes 304", path="nodes", is_known=True),
    Ask(what="jobs 304", path="jobs", is_known=True),
    Ask(what="jobs", path="jobs", requests=60),
    Ask(what="jobs gzip", path="jobs", gzip=True, requests=60),
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the server says of itself."""

    reckoned: int
    memory: int
    publishing: float
    at: float


class Server:
    """The other process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        port, pods = self._read().split()
        self.port, self.pods = int(port), int(pods)

    def order(self, order: str) -> None:
        self._write(order)
        self._read()

    def report(self) -> Report:
        self._write("report")
        reckoned, memory, publishing = self._read().split()
        return Report(reckoned=int(reckoned), memory=int(memory), publishing=float(publishing), at=time.perf_counter())

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server has ended")
        return line


@contextmanager
def server(nodes: int) -> Iterator[Server]:
    command = [sys.executable, "-m", "bench.views.server", str(nodes)]
    folder = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(command, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Server(process)
    finally:
        process.kill()
        process.wait()


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._tags: dict[str, str] = {}

    def ask(self, ask: Ask) -> tuple[float, int, int]:
        """Asks once: the seconds until the last byte was read, the status and the size."""
        headers = {"Accept-Encoding": "gzip" if ask.gzip else "identity"}
        if ask.is_known and ask.path in self._tags:
            headers["If-None-Match"] = self._tags[ask.path]
        began = time.perf_counter()
        self._connection.request("GET", f"{PREFIX}/{ask.path}", headers=headers)
        response = self._connection.getresponse()
        body = response.read()
        took = time.perf_counter() - began
        assert response.status in (200, 304), body[:200]
        if ask.is_known:
            self._tags[ask.path] = response.headers["ETag"]
        return took, response.status, len(body)
