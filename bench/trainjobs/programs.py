"""Programs beside a cluster: started together, waited for until each says that it is ready, and ended."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.starting.clusters import StartFailed
from shoal.cluster.kubernetes.ports import ReservedPort
from shoal.cluster.kubernetes.processes import Child, Spawner, end_all

HOST = "127.0.0.1"
_READY_WITHIN = 120.0
_GRACE = 10.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is started, and where it says whether it is ready: ``/readyz`` of a port."""

    name: str
    command: Sequence[str]
    health_port: int
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def started(programs: Sequence[Program], folder: Path) -> Iterator[dict[str, int]]:
    """All of them, ready, by the numbers of their processes; logs lie in the folder. The block ends them."""
    spawner, children = Spawner(), list[Child]()
    try:
        for program in programs:
            environment = {**os.environ, **program.environment}
            log = folder / f"{program.name}.log"
            child = spawner.spawn(program.name, program.command, folder=folder, log=log, environment=environment)
            children.append(child)
        for program, child in zip(programs, children, strict=True):
            _wait_until_ready(program, child)
        yield {program.name: child.pid for program, child in zip(programs, children, strict=True)}
    finally:
        end_all(children, grace=_GRACE)
        spawner.close()


def free_port() -> int:
    """A port that nobody has at the moment."""
    with ReservedPort(HOST) as port:
        return port.number


def _wait_until_ready(program: Program, child: Child) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while not _is_ready(program.health_port):
        if not child.is_running or time.monotonic() > deadline:
            raise StartFailed(f"{program.name} {child.ending()} and was not ready:\n{child.log_tail()}")
        time.sleep(0.05)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
