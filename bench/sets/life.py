"""The life of a set: it is made, becomes twice as large, half as large again, and is deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.serving.contestants import rest
from bench.sets.calls import of_controllers, sent, served, since
from bench.sets.observer import SETS, Observer
from bench.starting.clusters import Cluster

NAME = "many"
PODS = 2
"""Of each replica."""
Say = Callable[[str], None]
_MERGE = "application/merge-patch+json"


@dataclass(kw_only=True)
class Phase:
    """One change of the set, in seconds from the request; what it cost is counted until all is at rest again."""

    pods: int
    """That came or went."""
    created: float = 0.0
    """Until the last pod was there."""
    ready: float = 0.0
    """Until the last pod was ready."""
    told: float = 0.0
    """Until the set's status said so."""
    pods_gone: float = 0.0
    gone: float = 0.0
    """Until nothing was left of it."""
    cpu_created: dict[str, float] = field(default_factory=dict)
    """CPU seconds of each process until the last pod was there."""
    cpu: dict[str, float] = field(default_factory=dict)
    """The same, until the last pod was ready or gone."""
    cpu_at_rest: dict[str, float] = field(default_factory=dict)
    """The same, until nothing was left to do, such as events to write."""
    sent: dict[str, int] = field(default_factory=dict)
    """Requests of our controllers, nodes and binder, by the code of the answer."""
    served: dict[str, int] = field(default_factory=dict)
    """Requests to the server by everyone, by verb and kind."""


@dataclass(kw_only=True)
class Life:
    """What was measured of one set."""

    replicas: int
    made: Phase
    memory: dict[str, int]
    """Of each process, with the set running."""
    grown: Phase | None = None
    shrunk: Phase | None = None
    deleted: Phase | None = None


def live(cluster: Cluster, data_dir: Path, replicas: int, scheduler: str, say: Say, *, whole: bool) -> Life:
    """Measures the life of a set, or its beginning alone."""
    return asyncio.run(_live(cluster, data_dir, replicas, scheduler, say, whole=whole))


async def _live(cluster: Cluster, data_dir: Path, replicas: int, scheduler: str, say: Say, *, whole: bool) -> Life:
    async with Observer(cluster.kubeconfig, NAME) as observer:
        bench = _Bench(cluster, data_dir, observer, say)

        async def scale(count: int) -> None:
            await observer.send("PATCH", f"{SETS}/{NAME}", {"spec": {"replicas": count}}, kind=_MERGE)

        async def make() -> None:
            await observer.send("POST", SETS, manifest(replicas, scheduler))

        made = await bench.fills("made", replicas * PODS, make, replicas=replicas)
        life = Life(replicas=replicas, made=made, memory=cluster.memory())
        if not whole:
            return life
        life.grown = await bench.fills("grown", replicas * PODS, lambda: scale(2 * replicas), replicas=2 * replicas)
        life.shrunk = await bench.empties("shrunk", replicas * PODS, lambda: scale(replicas), left=replicas)

        async def delete() -> None:
            await observer.send("DELETE", f"{SETS}/{NAME}")

        life.deleted = await bench.empties("deleted", replicas * PODS, delete, left=0)
        return life


class _Bench:
    """One cluster, and what is seen of it."""

    def __init__(self, cluster: Cluster, data_dir: Path, observer: Observer, say: Say) -> None:
        self._cluster = cluster
        self._data_dir = data_dir
        self._observer = observer
        self._say = say

    async def fills(self, what: str, pods: int, ask: Callable[[], Awaitable[None]], *, replicas: int) -> Phase:
        """A change by which pods come."""
        observer, phase = self._observer, Phase(pods=pods)
        all_pods = replicas * PODS

        async def look(began: float, before: dict[str, float]) -> None:
            phase.created = await observer.until(what, lambda: observer.pods >= all_pods) - began
            phase.cpu_created = _since(before, self._cluster.cpu())
            phase.ready = await observer.until(what, lambda: observer.ready >= all_pods) - began
            phase.cpu = _since(before, self._cluster.cpu())
            phase.told = await observer.until(what, lambda: observer.available >= replicas) - began
            self._say(f"  {what}: created {phase.created:.2f} s, ready {phase.ready:.2f} s, told {phase.told:.2f} s")

        return await self._around(phase, ask, look)

    async def empties(self, what: str, pods: int, ask: Callable[[], Awaitable[None]], *, left: int) -> Phase:
        """A change by which pods go."""
        observer, phase = self._observer, Phase(pods=pods)

        async def look(began: float, before: dict[str, float]) -> None:
            phase.pods_gone = await observer.until(what, lambda: observer.pods <= left * PODS) - began
            phase.cpu = _since(before, self._cluster.cpu())
            if left == 0:
                await observer.until(what, lambda: not observer.exists)
                phase.gone = await observer.until_nothing_is_left() - began
            all_gone = "" if left else f", all {phase.gone:.2f} s"
            self._say(f"  {what}: pods gone {phase.pods_gone:.2f} s{all_gone}")

        return await self._around(phase, ask, look)

    async def _around(
        self,
        phase: Phase,
        ask: Callable[[], Awaitable[None]],
        look: Callable[[float, dict[str, float]], Awaitable[None]],
    ) -> Phase:
        """Counts what a change costs, from rest to rest."""
        await asyncio.to_thread(rest, self._cluster.processes.values())
        sent_before, served_before = await self._requests()
        before = self._cluster.cpu()
        began = time.perf_counter()
        await ask()
        await look(began, before)
        await asyncio.to_thread(rest, self._cluster.processes.values())
        phase.cpu_at_rest = _since(before, self._cluster.cpu())
        sent_after, served_after = await self._requests()
        phase.sent, phase.served = since(sent_before, sent_after), since(served_before, served_after)
        return phase

    async def _requests(self) -> tuple[dict[str, int], dict[str, int]]:
        page = (await self._observer.send("GET", "/metrics")).decode()
        return dict(sent(await of_controllers(self._data_dir))), dict(served(page))


def manifest(replicas: int, scheduler: str) -> dict[str, Any]:
    """A set of so many replicas, each one clique of two pods."""
    asks = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "main", "image": "registry.local/worker:1", "resources": {"requests": asks}}
    clique = {
        "name": "worker",
        "spec": {
            "roleName": "worker",
            "replicas": PODS,
            "minAvailable": PODS,
            "podSpec": {"schedulerName": scheduler, "containers": [container]},
        },
    }
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": NAME},
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
    }


def _since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}
