"""What pods cost that do nothing: memory, and the CPU time of whoever looks after them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures.processes import children, cpu_seconds, proportional_memory
from bench.pods.outside import Pods
from bench.pods.specs import PORT, program, sleeping
from bench.serving.contestants import rest
from bench.starting.clusters import Cluster

PROBED_EVERY = 10
_OF_KERNEL = ("Slab", "KernelStack", "PageTables", "Percpu")


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was held at a moment: by the parts of Shoal, by the inits of containers, and by the kernel for all."""

    parts: dict[str, int]
    inits: int
    kernel: int

    @property
    def shoal(self) -> int:
        return sum(self.parts.values()) + self.inits


@dataclass(kw_only=True)
class Rest:
    """Pods at rest beside none."""

    pods: int
    without: Account
    with_pods: Account
    busy_without: float
    """CPU seconds in a second, of all parts and inits."""
    busy: float
    busy_probed: float
    """With a readiness probe by HTTP for each pod."""


async def at_rest(cluster: Cluster, pods: Pods, count: int, seconds: float) -> Rest:
    """Nothing, then pods that sleep, then such pods with probes."""
    without, busy_without = await _accounted(cluster, seconds)
    seen = await pods.create_all([f"rest-{number:04}" for number in range(count)], sleeping())
    await pods.until(seen, lambda one: bool(one.ready), "were ready")
    with_pods, busy = await _accounted(cluster, seconds)
    await pods.delete_all()
    return Rest(
        pods=count,
        without=without,
        with_pods=with_pods,
        busy_without=busy_without,
        busy=busy,
        busy_probed=await _probed(cluster, pods, count, seconds),
    )


async def _accounted(cluster: Cluster, seconds: float) -> tuple[Account, float]:
    await asyncio.to_thread(rest, cluster.processes.values())
    return _account(cluster), await _busy(cluster, seconds)


async def _probed(cluster: Cluster, pods: Pods, count: int, seconds: float) -> float:
    """All ask the same pod, which answers: so many servers would take more of the machine than the probes do."""
    server = await pods.create("answering", program("serve"))
    await pods.until([server], lambda one: bool(one.ready), "were ready")
    action = {"host": server.pod.status.pod_ip, "port": PORT, "path": "/2"}
    probe: dict[str, Any] = {"httpGet": action, "periodSeconds": PROBED_EVERY}
    seen = await pods.create_all([f"probed-{number:04}" for number in range(count)], sleeping(readiness=probe))
    await pods.until(seen, lambda one: bool(one.ready), "were ready")
    await asyncio.sleep(min(PROBED_EVERY, seconds))
    busy = await _busy(cluster, seconds)
    await pods.delete_all()
    return busy


def _account(cluster: Cluster) -> Account:
    return Account(
        parts=cluster.memory(),
        inits=sum(map(proportional_memory, _inits(cluster))),
        kernel=_kernel_memory(),
    )


async def _busy(cluster: Cluster, seconds: float) -> float:
    processes = [*cluster.processes.values(), *_inits(cluster)]
    before = sum(map(cpu_seconds, processes))
    await asyncio.sleep(seconds)
    return (sum(map(cpu_seconds, processes)) - before) / seconds


def _inits(cluster: Cluster) -> list[int]:
    """The first process of each container: what they run is not ours, and a child of theirs."""
    return children(cluster.processes["containers"])


def _kernel_memory() -> int:
    """Of the whole machine: only a difference means something, and only where nobody else does anything."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = {name: int(size.split()[0]) * 1024 for name, _, size in (line.partition(":") for line in lines)}
    return sum(sizes.get(name, 0) for name in _OF_KERNEL)
