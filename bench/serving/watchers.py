"""Many watchers of one collection: how fast all of them hear of changes, and when the last one does."""

from __future__ import annotations

import gc
import select
import time
from dataclasses import dataclass, field

from bench.serving.load import Connection, Target, WrongAnswer

_PATIENCE = 60.0
_QUIET = 0.3


@dataclass
class FanOut:
    """What a number of watchers were told."""

    events: int = 0
    seconds: float = 0.0
    client_cpu: float = 0.0
    received: int = 0
    last_heard: list[float] = field(default_factory=list)
    """For one change at a time: from its request to the moment at which the last watcher has it."""

    @property
    def rate(self) -> float:
        return self.events / self.seconds


class _Watcher:
    def __init__(self, target: Target, request: bytes) -> None:
        self.connection = Connection(target)
        self.heard = 0
        self.received = 0
        self._last = b""
        self.connection.send(request)

    def take(self) -> None:
        """Counts the ends of events: a newline after a brace stands nowhere else, JSON escapes it."""
        while (data := self.connection.read()) is not None:
            self.received += len(data)
            self.heard += data.count(b"}\n") + (self._last + data[:1] == b"}\n")
            self._last = data[-1:]


def fan_out(target: Target, watch: bytes, changes: list[bytes], single: list[bytes], *, watchers: int) -> FanOut:
    """All ``changes`` as fast as eight connections take them, then the ``single`` ones, each after the last."""
    crowd: dict[int, _Watcher] = {}
    poll = select.epoll()
    writers: dict[int, Connection] = {}
    result = FanOut()
    collects = gc.isenabled()
    gc.disable()
    try:
        for _ in range(watchers):
            watcher = _Watcher(target, watch)
            crowd[watcher.connection.socket.fileno()] = watcher
            poll.register(watcher.connection.socket, select.EPOLLIN)
        for _ in range(8):
            writer = Connection(target)
            writers[writer.socket.fileno()] = writer
        _settle(poll, crowd)
        for writer in writers.values():
            poll.register(writer.socket, select.EPOLLIN)

        def run(requests: list[bytes], writing: list[Connection]) -> float:
            """Sends them over these connections; gives the moment at which the last watcher has heard of the last."""
            waiting = iter(requests)
            wanted = min(watcher.heard for watcher in crowd.values()) + len(requests)
            behind = set(crowd)
            free = {writer.socket.fileno() for writer in writing}
            for number in list(free):
                if (request := next(waiting, None)) is not None:
                    free.discard(number)
                    writers[number].send(request)
            while behind or len(free) < len(writing):
                events = poll.poll(_PATIENCE)
                if not events:
                    raise WrongAnswer(f"{len(behind)} watchers did not hear of all changes")
                for number, _ in events:
                    watcher = crowd.get(number)
                    if watcher is not None:
                        watcher.take()
                        if watcher.heard >= wanted:
                            behind.discard(number)
                            last = time.perf_counter()
                    elif writers[number].receive():
                        if (request := next(waiting, None)) is not None:
                            writers[number].send(request)
                        else:
                            free.add(number)
            return last

        everyone = list(writers.values())
        received = sum(watcher.received for watcher in crowd.values())
        cpu, start = time.process_time(), time.perf_counter()
        result.seconds = run(changes, everyone) - start
        result.client_cpu = time.process_time() - cpu
        result.events = len(changes) * watchers
        result.received = sum(watcher.received for watcher in crowd.values()) - received
        for request in single:
            start = time.perf_counter()
            result.last_heard.append(run([request], everyone[:1]) - start)
    finally:
        poll.close()
        for connection in [*writers.values(), *(watcher.connection for watcher in crowd.values())]:
            connection.close()
        if collects:
            gc.enable()
    return result


def _settle(poll: select.epoll, crowd: dict[int, _Watcher]) -> None:
    """Returns when every watch has begun: its answer's head has come, and what was there before."""
    deadline = time.monotonic() + _PATIENCE
    quiet_at = time.monotonic() + _QUIET
    while time.monotonic() < quiet_at or not all(watcher.received for watcher in crowd.values()):
        for number, _ in poll.poll(_QUIET):
            if number in crowd:
                crowd[number].take()
                quiet_at = time.monotonic() + _QUIET
        if time.monotonic() > deadline:
            raise WrongAnswer("a watch did not begin")
