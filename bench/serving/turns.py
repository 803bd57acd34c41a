"""One server's turn: everything that is measured of it, from its start on an empty data dir to its end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.serving.contestants import Contestant
from bench.serving.load import Crew, Load, drive
from bench.serving.objects import Requests
from bench.serving.watchers import fan_out

CONNECTIONS = 32
WATCHERS = 50


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is done."""

    seconds: float = 2.0
    """For each kind of request."""
    pods: int = 10_000
    """In the list."""
    changes: int = 400
    """That the watchers hear of as fast as they come."""
    single_changes: int = 60


QUICK = Sizes(seconds=0.6, pods=500, changes=60, single_changes=10)


class Start(Protocol):
    """Starts a contestant."""

    def __call__(self, data_dir: Path, *, core: int | None) -> AbstractContextManager[Contestant]: ...


@dataclass(frozen=True, kw_only=True)
class Work:
    """One kind of request, asked for as often as 32 connections can."""

    rate: float
    server_cpu: float
    """Seconds for one request, of all its processes."""
    client_share: float
    """How much of its own core the client was busy: near 1 it was what limited the rate."""
    p50: float
    p99: float


@dataclass(kw_only=True)
class Turn:
    """What was measured of a server."""

    ready_after: float
    memory_at_rest: int
    work: dict[str, Work] = field(default_factory=dict)
    read_beside_creates: float = 0.0
    """The 99th percentile of a read's latency while 32 connections create large pods."""
    list_seconds: float = 0.0
    list_bytes: int = 0
    list_cpu: float = 0.0
    listed: int = 0
    memory_full: int = 0
    watch_rate: float = 0.0
    watch_client_share: float = 0.0
    last_watcher: float = 0.0
    last_watcher_p99: float = 0.0

    def raw(self) -> dict[str, Any]:
        return asdict(self)


def take_turn(start: Start, data_dir: Path, sizes: Sizes, *, core: int | None, fills: bool) -> Turn:
    """Starts a server, measures it and stops it; ``fills`` where the list of all the pods is a part of it."""
    with start(data_dir, core=core) as contestant:
        turn = Turn(ready_after=contestant.ready_after, memory_at_rest=contestant.memory_at_rest)
        requests = Requests(contestant.target)
        names = [f"first-{number:03}" for number in range(256)]
        drive_whole(contestant, (requests.create_small(name) for name in names))
        turn.work["get"] = _work(contestant, requests.reading(names[0]), sizes.seconds)
        turn.work["patch"] = _work(contestant, requests.patching(names), sizes.seconds)
        turn.work["create small"] = _work(contestant, requests.creating_small(), sizes.seconds)
        pods = requests.creating_pods(itertools.count())
        turn.work["create pod"] = _work(contestant, pods, sizes.seconds)
        turn.read_beside_creates = _read_beside(contestant, pods, requests.reading(names[0]), sizes.seconds)
        turn.work["patch pod"] = _work(contestant, requests.patching_pods(100), sizes.seconds)
        watched = [requests.create_small(f"watched-{number:04}") for number in range(sizes.changes)]
        single = [requests.create_small(f"single-{number:04}") for number in range(sizes.single_changes)]
        heard = fan_out(contestant.target, requests.watch_small(), watched, single, watchers=WATCHERS)
        turn.watch_rate, turn.watch_client_share = heard.rate, heard.client_cpu / heard.seconds
        told = Load(latencies=heard.last_heard)
        turn.last_watcher, turn.last_watcher_p99 = told.percentile(0.5), told.percentile(0.99)
        if fills:
            _fill_and_list(turn, contestant, requests, sizes.pods)
        return turn


def _fill_and_list(turn: Turn, contestant: Contestant, requests: Requests, pods: int) -> None:
    drive_whole(contestant, requests.filling(pods))
    turn.listed = pods
    turn.memory_full = contestant.memory()
    cpu = contestant.cpu_seconds()
    with Crew(contestant.target, iter([requests.list_pods()]), 1) as crew:
        listed, _ = drive(crew)
    turn.list_seconds, turn.list_bytes = listed.seconds, listed.received
    turn.list_cpu = contestant.cpu_seconds() - cpu


def drive_whole(contestant: Contestant, requests: Iterator[bytes]) -> Load:
    """Sends all requests that there are."""
    with Crew(contestant.target, requests, CONNECTIONS) as crew:
        return drive(crew)[0]


def _work(contestant: Contestant, requests: Iterator[bytes], seconds: float) -> Work:
    with Crew(contestant.target, requests, CONNECTIONS) as crew:
        drive(crew, seconds=seconds / 5)  # warms up: connections, caches, a JIT's heap
        cpu = contestant.cpu_seconds()
        load, _ = drive(crew, seconds=seconds)
        cpu = contestant.cpu_seconds() - cpu
    return Work(
        rate=load.rate,
        server_cpu=cpu / load.answers,
        client_share=load.client_cpu / load.seconds,
        p50=load.percentile(0.5),
        p99=load.percentile(0.99),
    )


def _read_beside(contestant: Contestant, creates: Iterator[bytes], reads: Iterator[bytes], seconds: float) -> float:
    with Crew(contestant.target, creates, CONNECTIONS) as crew, Crew(contestant.target, reads, 1) as beside:
        _, other = drive(crew, seconds=seconds, beside=beside)
    return other.percentile(0.99)
