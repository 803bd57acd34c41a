"""In a pod: asks the one that serves, by its address and by its Service in turn; leaves the rates as last words.

Its only argument is JSON: seconds of each turn, rounds, megabytes to fetch, clients at once, the two endpoints by their
names, the one for datagrams, and the name to look up.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

_REQUEST = b"GET /%d HTTP/1.1\r\nHost: serve\r\n\r\n"
_SMALL = 2


def main() -> None:
    plan = json.loads(sys.argv[1])
    seconds, clients = plan["seconds"], plan["clients"]
    found: dict[str, dict[str, list[float]]] = {}
    for host, port in plan["endpoints"].values():
        await_answer((host, port))
    for _ in range(plan["rounds"]):
        for way, (host, port) in plan["endpoints"].items():
            endpoint = (host, port)
            rates = {
                "connections": at_once(clients, seconds, partial(connect_often, endpoint)),
                "requests": at_once(clients, seconds, partial(ask_often, endpoint)),
                "latency": 1000 / at_once(1, seconds, partial(ask_often, endpoint)),
                "megabytes": fetch(endpoint, plan["megabytes"]),
            }
            keep(found, way, rates)
        keep(found, "names", {"rate": at_once(1, seconds, partial(look_up_often, plan["name"]))})
        keep(found, "datagrams", {"rate": at_once(1, seconds, partial(send_often, tuple(plan["datagrams"])))})
    Path("/dev/termination-log").write_text(json.dumps(found))


def await_answer(endpoint: tuple[str, int]) -> None:
    """A Service leads to a pod a moment after that is ready."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(endpoint, timeout=30) as connection:
                return ask(connection, _SMALL)
        except (OSError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def keep(found: dict[str, dict[str, list[float]]], way: str, rates: dict[str, float]) -> None:
    for what, rate in rates.items():
        found.setdefault(way, {}).setdefault(what, []).append(rate)


def at_once(clients: int, seconds: float, act: Callable[[float], int]) -> float:
    """How much so many get done in a second; each is told when to stop, and says how much that was."""
    done: list[int] = []
    began = time.perf_counter()
    threads = [threading.Thread(target=lambda: done.append(act(began + seconds))) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == clients, "a client has failed"
    return sum(done) / (time.perf_counter() - began)


def connect_often(endpoint: tuple[str, int], end: float) -> int:
    """A connection for each request."""
    count = 0
    while time.perf_counter() < end:
        with socket.create_connection(endpoint, timeout=30) as connection:
            ask(connection, _SMALL)
        count += 1
    return count


def ask_often(endpoint: tuple[str, int], end: float) -> int:
    """All requests over one connection."""
    count = 0
    with socket.create_connection(endpoint, timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.perf_counter() < end:
            ask(connection, _SMALL)
            count += 1
    return count


def fetch(endpoint: tuple[str, int], megabytes: int) -> float:
    """Megabytes a second."""
    with socket.create_connection(endpoint, timeout=30) as connection:
        began = time.perf_counter()
        ask(connection, megabytes * 1_000_000)
        return megabytes / (time.perf_counter() - began)


def ask(connection: socket.socket, size: int) -> None:
    """One request, and its answer to the end."""
    connection.sendall(_REQUEST % size)
    head, found, body = connection.recv(65536).partition(b"\r\n\r\n")
    assert found, f"not an answer: {head!r}"
    left = size - len(body)
    room = bytearray(min(left, 256 * 1024))
    while left:
        came = connection.recv_into(room)
        assert came, "the answer ended too early"
        left -= came


def look_up_often(name: str, end: float) -> int:
    count = 0
    while time.perf_counter() < end:
        socket.getaddrinfo(name, 80, socket.AF_INET)
        count += 1
    return count


def send_often(endpoint: tuple[str, int], end: float) -> int:
    """A datagram there and back, as a bare bound of what a question for a name takes."""
    count = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(5)
        while time.perf_counter() < end:
            datagrams.sendto(b"?" * 64, endpoint)
            datagrams.recv(2048)
            count += 1
    return count


if __name__ == "__main__":
    main()
