"""Another client of the same API, in a process of its own: how long it waits for a read and for a small create.

One of each is due every so often, whether or not the last ones were answered, and is timed from when it was due: a
server that stops for a second makes all wait that were due in it.
"""

from __future__ import annotations

import gc
import json
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bench.serving.load import Connection, Load, Target
from bench.serving.objects import Requests
from shoal.kube import load_connection
from shoal.kube.tls import client_context

EVERY = 0.05
CONNECTIONS = 32


@dataclass
class Latencies:
    """Seconds that answers took."""

    get: Load = field(default_factory=Load)
    create: Load = field(default_factory=Load)


@contextmanager
def probing(kubeconfig: Path, token: str, *, names: str) -> Iterator[Latencies]:
    """Probes for the length of a block; the figures are there after it. What it creates begins with ``names``."""
    command = [sys.executable, "-m", "bench.starting.probe", str(kubeconfig), names]
    root = Path(__file__).resolve().parent.parent.parent
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
    latencies = Latencies()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(token.encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()  # it has its connections
        yield latencies
        process.stdin.close()
        measured = json.loads(process.stdout.read())
        latencies.get.latencies, latencies.create.latencies = measured["get"], measured["create"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    kubeconfig, names = Path(sys.argv[1]), sys.argv[2]
    connection = load_connection(kubeconfig)
    where = urlsplit(connection.server)
    assert where.hostname is not None
    assert where.port is not None
    token = sys.stdin.readline().strip()
    target = Target(host=where.hostname, port=where.port, context=client_context(connection.tls), token=token)
    measured = _probe(target, names)
    print(json.dumps(measured))


def _probe(target: Target, names: str) -> dict[str, list[float]]:
    gc.disable()
    requests = Requests(target)
    free = [Connection(target) for _ in range(CONNECTIONS)]
    by_number = {connection.socket.fileno(): connection for connection in free}
    first = free[0]
    first.send(requests.create_small(f"{names}-read"))
    while not first.receive():
        select.select([first.socket], [], [], 1)
    read = next(requests.reading(f"{names}-read"))
    print("ready", flush=True)
    poll = select.epoll()
    poll.register(0, select.EPOLLIN | select.EPOLLHUP)
    for connection in free:
        poll.register(connection.socket, select.EPOLLIN)
    measured: dict[str, list[float]] = {"get": [], "create": []}
    due: deque[tuple[str, float, bytes]] = deque()
    under_way: dict[int, tuple[str, float]] = {}
    tick, number, ends = time.perf_counter(), 0, False
    while not ends or under_way:
        now = time.perf_counter()
        while not ends and tick <= now:
            due.append(("get", tick, read))
            due.append(("create", tick + EVERY / 2, requests.create_small(f"{names}-{number:06}")))
            tick, number = tick + EVERY, number + 1
        while free and due and due[0][1] <= now and not ends:
            what, since, request = due.popleft()
            connection = free.pop()
            under_way[connection.socket.fileno()] = what, since
            connection.send(request)
        wake = min(tick, due[0][1]) if due and free else tick
        for descriptor, _ in poll.poll(max(0.0005, min(wake - time.perf_counter(), 1.0))):
            if descriptor == 0:
                ends = True
                poll.unregister(0)
            elif descriptor in under_way and by_number[descriptor].receive():
                what, since = under_way.pop(descriptor)
                measured[what].append(time.perf_counter() - since)
                free.append(by_number[descriptor])
    return measured


if __name__ == "__main__":
    main()
