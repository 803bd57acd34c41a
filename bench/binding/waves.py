"""Waves of pods: posted over many connections at once, or one after the other, until the last of them is bound."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.binding.observer import Observer
from bench.serving.contestants import NAMESPACE, account_of, rest
from bench.serving.load import Crew, Target, drive
from bench.sets.calls import served, since
from bench.starting.clusters import Cluster
from shoal.api import kai_names as names

PLAIN, GANGS, SINGLE = "plain", "gangs", "single"
MEMBERS = 8
"""Of a gang."""
CONNECTIONS = 32
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_GROUPS = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{NAMESPACE}/podgroups"
Say = Callable[[str], None]


@dataclass(kw_only=True)
class Wave:
    """Pods that came, in seconds."""

    pods: int
    posted: float = 0.0
    """From the first request until the last was answered."""
    bound: float = 0.0
    """From the first request until the last pod was bound."""
    latencies: list[float] = field(default_factory=list)
    """From when a watch showed each pod until it showed the pod's node."""
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds of each process meanwhile."""
    memory: dict[str, int] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    """Requests of everyone to the API server until all is at rest, by verb and kind."""

    @property
    def rate(self) -> float:
        return self.pods / self.bound

    def percentile(self, share: float) -> float:
        """The latency that this share of the pods did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def wave(cluster: Cluster, part: str, *, pods: int, say: Say) -> Wave:
    """So many pods on an empty cluster that is at rest."""
    return asyncio.run(_wave(cluster, account_of(cluster.kubeconfig), part, pods, say))


async def _wave(cluster: Cluster, target: Target, part: str, pods: int, say: Say) -> Wave:
    async with Observer(cluster.kubeconfig, NAMESPACE) as observer:
        if part == GANGS:
            await _make_groups(observer, pods // MEMBERS)
        await asyncio.to_thread(rest, cluster.processes.values())
        before = served((await observer.send("GET", "/metrics")).decode())
        if part == SINGLE:
            found = await _one_by_one(cluster, observer, pods, say)
        else:
            found = await _at_once(cluster, observer, target, part, pods, say)
        await asyncio.to_thread(rest, cluster.processes.values())
        found.served = since(before, served((await observer.send("GET", "/metrics")).decode()))
        return found


async def _one_by_one(cluster: Cluster, observer: Observer, count: int, say: Say) -> Wave:
    """Each is posted when the one before is bound."""
    say(f"{count:,} pods, one by one")
    came, before, began = Wave(pods=count), cluster.cpu(), time.perf_counter()
    for number in range(count):
        await observer.send("POST", _PODS, _pod(f"single-{number:05}"))
        await observer.until_bound(number + 1, say)
    came.posted = came.bound = time.perf_counter() - began
    return _measured(came, cluster, observer, before)


async def _at_once(cluster: Cluster, observer: Observer, target: Target, part: str, pods: int, say: Say) -> Wave:
    """All are posted as fast as the server takes them; those of a gang in a row, whose PodGroup is there."""
    say(f"{pods:,} pods at once: {part}")
    requests = _in_gangs(target, pods) if part == GANGS else _plain(target, pods)
    came, before, began = Wave(pods=pods), cluster.cpu(), time.perf_counter()
    posting = asyncio.create_task(asyncio.to_thread(_post, target, requests))
    came.bound = await observer.until_bound(pods, say) - began
    came.posted = await posting - began
    say(f"  posted after {came.posted:.1f} s, bound after {came.bound:.1f} s")
    return _measured(came, cluster, observer, before)


def _measured(came: Wave, cluster: Cluster, observer: Observer, before: dict[str, float]) -> Wave:
    came.cpu = {name: after - before[name] for name, after in cluster.cpu().items()}
    came.memory = cluster.memory()
    came.latencies = [moment - observer.seen[name] for name, moment in observer.bound.items()]
    return came


def _post(target: Target, requests: Iterator[bytes]) -> float:
    with Crew(target, requests, CONNECTIONS) as crew:
        drive(crew)
    return time.perf_counter()


async def _make_groups(observer: Observer, count: int) -> None:
    waiting = iter(range(count))

    async def worker() -> None:
        for number in waiting:
            body = {
                "apiVersion": "scheduling.run.ai/v2alpha2",
                "kind": "PodGroup",
                "metadata": {"name": f"gang-{number:05}"},
                "spec": {"minMember": MEMBERS, "queue": names.DEFAULT_QUEUE},
            }
            await observer.send("POST", _GROUPS, body)

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


def _plain(target: Target, pods: int) -> Iterator[bytes]:
    for number in range(pods):
        yield target.request("POST", _PODS, msgspec.json.encode(_pod(f"plain-{number:05}")))


def _in_gangs(target: Target, pods: int) -> Iterator[bytes]:
    for number in range(pods // MEMBERS * MEMBERS):
        gang, member = divmod(number, MEMBERS)
        body = _pod(f"gang-{gang:05}-{member}", gang=f"gang-{gang:05}")
        yield target.request("POST", _PODS, msgspec.json.encode(body))


def _pod(name: str, *, gang: str = "") -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"limits": {names.NVIDIA_GPU: "1"}}}
    annotations = {"annotations": {names.POD_GROUP: gang}} if gang else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **annotations},
        "spec": {"schedulerName": names.SCHEDULER, "containers": [container]},
    }
