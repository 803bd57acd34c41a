"""The account of what is used."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from shoal.cluster.node.kubelet import ContainerUsage
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.machine.usage import Usage, boot_time, busy_seconds
from shoal.cluster.node.process.runtime.protocol import ContainerReading, ContainerState, SandboxState

NOW = 1_000_000.0


class Runtime:
    """Tells what a test says."""

    def __init__(self) -> None:
        self.readings: list[ContainerReading] = []
        self.pods: list[SandboxState] = []
        self.asked = 0
        self.is_away = False

    async def usage(self) -> list[ContainerReading]:
        if self.is_away:
            raise RuntimeFault("Disconnected", "the connection to the runtime is lost")
        return self.readings

    async def sandboxes(self) -> list[SandboxState]:
        self.asked += 1
        return self.pods


def a_sandbox(name: str, *containers: str, started: float = NOW - 100) -> SandboxState:
    states = [
        ContainerState(id=f"{name}/{one}", sandbox=name, name=one, attempt=0, pid=1, started=started)
        for one in containers
    ]
    return SandboxState(uid=f"uid-{name}", name=f"default/{name}", containers=states)


def used(name: str, seconds: float, memory: int = 4096) -> ContainerReading:
    return ContainerReading(id=name, cpu_seconds=seconds, memory_bytes=memory, processes=1)


@pytest.fixture
def usage() -> Usage:
    return Usage(Runtime(), memory_capacity=1 << 30)


def test_cores_are_the_average_since_the_start_and_then_since_the_last_look(usage: Usage) -> None:
    pods = [a_sandbox("web", "main")]
    usage.record([used("web/main", 50)], pods, clock=10, now=NOW)
    (first,) = usage.node_usage().containers
    assert first == ContainerUsage("default", "web", "uid-web", "main", NOW - 100, 50, 0.5, 4096)
    usage.record([used("web/main", 70, 8192)], pods, clock=20, now=NOW + 10)
    (second,) = usage.node_usage().containers
    assert (second.cpu_seconds, second.cpu_cores, second.memory_bytes) == (70, 2.0, 8192)


def test_a_look_right_after_another_leaves_the_cores_as_they_were(usage: Usage) -> None:
    pods = [a_sandbox("web", "main")]
    for clock, seconds in ((10.0, 50), (20.0, 70), (20.5, 71), (30.0, 75)):
        usage.record([used("web/main", seconds)], pods, clock=clock, now=NOW)
        cores = usage.node_usage().containers[0].cpu_cores
        assert cores == {10.0: 0.5, 20.0: 2.0, 20.5: 2.0, 30.0: 0.5}[clock]


def test_containers_are_told_in_the_order_of_their_pods_and_those_that_went_are_not(usage: Usage) -> None:
    pods = [a_sandbox("b", "x", "a"), a_sandbox("a", "x")]
    usage.record([used("b/x", 1), used("a/x", 1), used("b/a", 1), used("gone/x", 1)], pods, clock=1, now=NOW)
    assert [(one.pod, one.container) for one in usage.node_usage().containers] == [("a", "x"), ("b", "a"), ("b", "x")]
    usage.record([], [], clock=20, now=NOW)
    assert usage.node_usage().containers == []


async def test_where_nothing_runs_the_pods_are_not_asked_for() -> None:
    runtime = Runtime()
    usage = Usage(runtime, memory_capacity=1 << 30)
    await usage.look()
    assert runtime.asked == 0
    runtime.readings, runtime.pods = [used("web/main", 1)], [a_sandbox("web", "main", started=time.time() - 10)]
    await usage.look()
    (found,) = usage.node_usage().containers
    assert found.cpu_cores == pytest.approx(0.1, rel=0.1)


async def test_a_runtime_that_is_away_for_a_while_is_asked_again() -> None:
    runtime = Runtime()
    runtime.is_away = True
    runtime.readings, runtime.pods = [used("web/main", 1)], [a_sandbox("web", "main")]
    usage = Usage(runtime, memory_capacity=1 << 30, every=0.01)
    running = asyncio.create_task(usage.run())
    try:
        await asyncio.sleep(0.05)
        assert usage.node_usage().containers == []
        runtime.is_away = False
        async with asyncio.timeout(5):
            while not usage.node_usage().containers:
                await asyncio.sleep(0.01)
    finally:
        running.cancel()


def test_the_machine_itself_is_read(usage: Usage) -> None:
    before = usage.node_usage()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    after = usage.node_usage()
    assert after.node == "local"
    assert after.started < time.time()
    assert after.cpu_seconds > before.cpu_seconds
    assert 0 < after.cpu_cores <= (os.cpu_count() or 1)
    assert 0 < after.memory_bytes < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert after.memory_capacity == 1 << 30


def test_time_that_is_idle_or_counted_twice_is_not_used() -> None:
    stat = "cpu  100 10 50 9999 7777 20 10 10 555 66\ncpu0 1 2 3\nbtime 1700000000\n"
    assert busy_seconds(stat) == 200 / os.sysconf("SC_CLK_TCK")
    assert boot_time(stat) == 1700000000.0
