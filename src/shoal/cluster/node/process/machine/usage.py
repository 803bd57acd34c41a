"""How much the machine and its containers use: looked at every few seconds, and told from the last look."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

import structlog

from shoal.cluster.node.kubelet import ContainerUsage, NodeUsage
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.layout import NODE_NAME
from shoal.cluster.node.process.machine.facts import memory_table
from shoal.cluster.node.process.runtime.protocol import ContainerReading, ContainerState, SandboxState

log = structlog.get_logger("shoal.cluster.node.process")

LOOK_EVERY = 10.0
SHORTEST = 1.0
"""Seconds between looks that say something of the cores in use; closer ones leave the last figure."""
_TICKS = os.sysconf("SC_CLK_TCK")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Of the columns of /proc/stat: user, nice, system, irq, softirq, steal. The rest is idle, or counted in these."""


class Source(Protocol):
    """What of the runtime is asked."""

    async def usage(self) -> list[ContainerReading]:
        """What containers have used."""
        ...

    async def sandboxes(self) -> list[SandboxState]:
        """The pods and containers that there are."""
        ...


class _Look(NamedTuple):
    at: float
    """By the clock that only goes forward."""
    cpu_seconds: float
    cores: float


class Usage:
    """The account of the machine and of the containers that run; ``run`` keeps it, ``node_usage`` tells it."""

    def __init__(self, source: Source, *, memory_capacity: int, every: float = LOOK_EVERY) -> None:
        self.source = source
        """Another one after the runtime was started again."""
        self._memory_capacity = memory_capacity
        self._every = every
        self._started = boot_time(_stat())
        self._machine: _Look | None = None
        self._looks: dict[str, _Look] = {}
        self._containers: list[ContainerUsage] = []

    async def run(self) -> None:
        """Looks again and again until cancelled. Where nothing runs, that is one short question to the runtime."""
        while True:
            try:
                await self.look()
            except RuntimeFault as error:
                log.warning("the usage of containers could not be read", error=str(error))
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        """Asks for what containers have used by now."""
        readings = await self.source.usage()
        pods = await self.source.sandboxes() if readings else []
        self.record(readings, pods, clock=time.monotonic(), now=time.time())

    def record(
        self, readings: Iterable[ContainerReading], pods: Iterable[SandboxState], *, clock: float, now: float
    ) -> None:
        """Takes down one look; what containers have used that are no more is forgotten."""
        running = {container.id: (pod, container) for pod in pods for container in pod.containers}
        looks, found = {}, []
        for reading in readings:
            if reading.id in running:
                pod, container = running[reading.id]
                age = now - container.started
                look = _compared(self._looks.get(reading.id), reading.cpu_seconds, clock=clock, age=age)
                looks[reading.id] = look
                found.append(_container_usage(pod, container, reading, look.cores))
        self._looks = looks
        self._containers = sorted(found, key=lambda one: (one.namespace, one.pod, one.uid, one.container))
        self._machine = _compared(self._machine, busy_seconds(_stat()), clock=clock, age=now - self._started)

    def node_usage(self) -> NodeUsage:
        """What the machine uses now, and what its containers used when they were last looked at."""
        seconds, memory = busy_seconds(_stat()), memory_table()
        machine = self._machine or _compared(None, seconds, clock=0.0, age=time.time() - self._started)
        return NodeUsage(
            node=NODE_NAME,
            started=self._started,
            cpu_seconds=seconds,
            cpu_cores=machine.cores,
            memory_bytes=memory["MemTotal"] - memory["MemAvailable"],
            memory_capacity=self._memory_capacity,
            containers=self._containers,
        )


def busy_seconds(stat: str) -> float:
    """The cpu time that a machine has spent on something, from /proc/stat."""
    columns = stat.split("\n", 1)[0].split()[1:]
    return sum(int(columns[place]) for place in _BUSY) / _TICKS


def boot_time(stat: str) -> float:
    """When a machine started, in seconds since 1970, from /proc/stat."""
    return next(float(line.split()[1]) for line in stat.splitlines() if line.startswith("btime "))


def _compared(before: _Look | None, seconds: float, *, clock: float, age: float) -> _Look:
    """The cores in use since the look before; at the first one, on average since it started."""
    if before is None:
        return _Look(clock, seconds, seconds / age if age > 0 else 0.0)
    if clock - before.at < SHORTEST:
        return before
    return _Look(clock, seconds, max(0.0, seconds - before.cpu_seconds) / (clock - before.at))


def _container_usage(
    pod: SandboxState, container: ContainerState, reading: ContainerReading, cores: float
) -> ContainerUsage:
    namespace, _, name = pod.name.partition("/")
    return ContainerUsage(
        namespace=namespace,
        pod=name,
        uid=pod.uid,
        container=container.name,
        started=container.started,
        cpu_seconds=reading.cpu_seconds,
        cpu_cores=cores,
        memory_bytes=reading.memory_bytes,
    )


def _stat() -> str:
    return Path("/proc/stat").read_text()
