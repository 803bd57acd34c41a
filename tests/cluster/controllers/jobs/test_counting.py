"""Every ended pod is counted once, wherever between two writes the controller dies, however late it hears."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api.batch import JOBS
from shoal.api.core import PODS
from shoal.cluster.controllers.jobs import add_jobs
from shoal.kube import ConnectionFault, EventType, Informer, Manager, running
from shoal.kube.transport import Request, Response, Stream, Transport, WebSocket
from tests.cluster.controllers.jobs.conftest import JobWorld
from tests.support.clusters.in_process import Cluster, in_process_cluster
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest


@dataclass(frozen=True)
class Death:
    """With which write a process dies: before the server gets it, or before it is answered; and how late it hears."""

    writes: int
    is_answer_lost: bool
    lags: Mapping[str, float]
    """By the plural of a kind, the seconds by which each chunk of its watch comes late."""


class Mortal:
    """A transport of a process that dies."""

    def __init__(self, inner: Transport, death: Death) -> None:
        self._inner = inner
        self._left = death.writes
        self._is_answer_lost = death.is_answer_lost
        self._lags = death.lags
        self.died = asyncio.Event()

    @property
    def host(self) -> str:
        return self._inner.host

    async def send(self, request: Request) -> Response:
        if self.died.is_set():
            raise ConnectionFault("this process is dead", lasting=True)
        if request.method == "GET" or request.path.endswith("/events"):
            return await self._inner.send(request)
        self._left -= 1
        if self._left < 0:
            self.died.set()
            if self._is_answer_lost:
                await self._inner.send(request)
            raise ConnectionFault("this process dies", lasting=True)
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            yield LateStream(stream, self._lags.get(request.path.rsplit("/", 1)[-1], 0.0))

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        return self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()


class LateStream:
    """A stream whose chunks come late, one after the other."""

    def __init__(self, inner: Stream, lag: float) -> None:
        self._inner = inner
        self._lag = lag
        self.status = inner.status
        self.headers = inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            await asyncio.sleep(self._lag)
            yield chunk


class Node:
    """Ends every pod as it was told, well or badly, and takes some away at once: only finalizers hold these."""

    def __init__(self, world: JobWorld, outcomes: Sequence[bool]) -> None:
        self._world = world
        self._outcomes = list(outcomes)
        self.ended: dict[str, str] = {}

    async def run(self) -> None:
        while True:
            for pod in await self._world.cluster.all(PODS):
                if pod["metadata"]["uid"] in self.ended or pod["status"].get("phase") != "Pending":
                    continue
                is_good = self._outcomes.pop(0) if self._outcomes else True
                phase = "Succeeded" if is_good else "Failed"
                await self._world.end(pod, phase, code=0 if is_good else 1)
                self.ended[pod["metadata"]["uid"]] = phase
                if len(self.ended) % 2:
                    await self._world.vanish(pod)
            await asyncio.sleep(0.005)

    def count(self, phase: str) -> int:
        return list(self.ended.values()).count(phase)


@asynccontextmanager
async def dying(world: JobWorld, death: Death) -> AsyncIterator[Mortal]:
    transport = Mortal(world.cluster.server.transport(), death)
    manager = Manager(transport, name="mortal")
    add_jobs(manager)
    async with running(manager):
        yield transport


async def run_with_deaths(
    folder: Path, spec: dict[str, Any], outcomes: Sequence[bool], deaths: Sequence[Death]
) -> None:
    async with in_process_cluster(folder) as cluster:
        world = JobWorld(cluster)
        node = Node(world, outcomes)
        await world.make(backoffLimit=100, **spec)
        working = asyncio.create_task(node.run())
        for death in deaths:
            async with dying(world, death) as process:
                died = asyncio.create_task(process.died.wait())
                complete = asyncio.create_task(world.condition("Complete"))
                await asyncio.wait([died, complete], return_when=asyncio.FIRST_COMPLETED)
                died.cancel()
                complete.cancel()
                await asyncio.gather(died, complete, return_exceptions=True)
        async with cluster.controllers(add_jobs):
            await world.condition("Complete")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        job = await cluster.client.get(JOBS, "work", "default")
        counted = {"Succeeded": job.status.succeeded, "Failed": job.status.failed}
        assert counted == {phase: node.count(phase) for phase in counted}
        assert not any(pod["metadata"].get("finalizers") for pod in await cluster.all(PODS))


LAGS = st.fixed_dictionaries({kind.plural: st.sampled_from([0.0, 0.005, 0.02]) for kind in (JOBS, PODS)})
NEVER = 1000
"""So many writes there are not: the process lives until the Job is complete."""


@settings(max_examples=25, deadline=None)
@given(
    mode=st.sampled_from(["NonIndexed", "Indexed"]),
    outcomes=st.lists(st.booleans(), min_size=2, max_size=5),
    deaths=st.lists(st.builds(Death, st.integers(0, 12) | st.just(NEVER), st.booleans(), LAGS), min_size=1, max_size=3),
)
def test_every_pod_is_counted_once_whenever_the_controller_dies(
    mode: str, outcomes: list[bool], deaths: list[Death]
) -> None:
    spec = {"completionMode": mode, "completions": 3, "parallelism": 2}
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_with_deaths(Path(folder), spec, outcomes, deaths))


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
async def test_a_pod_that_was_counted_and_is_still_seen_is_not_counted_again(
    cluster: Cluster, jobs: JobWorld, mode: str
) -> None:
    """The last write to a pod that is on its way out takes it away, and is answered with the pod as it was before."""
    async with cluster.controllers(add_jobs) as manager:
        await jobs.make(completionMode=mode, completions=1, backoffLimit=100)
        [pod] = await jobs.pending(1)
        seen = manager.cache.informer(PODS)
        with without_deletions(seen):
            await jobs.vanish(pod)
            await jobs.status(failed=1, uncountedTerminatedPods={})
            change = {"metadata": {"annotations": {"look": "again"}}}
            await cluster.client.merge_patch(JOBS.documents(), "work", change, "default")
            await eventually(lambda: manager.cache.informer(JOBS).items()[0].metadata.annotations)
            await at_rest(manager)
            assert [one.metadata.name for one in seen.items()] == [pod["metadata"]["name"]], "it is still seen"
            assert (await jobs.job())["status"]["failed"] == 1
        await eventually(lambda: not seen.items())


@contextmanager
def without_deletions(informer: Informer[Any]) -> Iterator[None]:
    """Keeps from an informer, for the length of a block, that objects are gone, and all that comes after that."""
    missed: list[Any] = []
    hear = informer.update

    def hear_some(events: Sequence[Any]) -> None:
        heard = [] if missed else list(takewhile(lambda event: event.type is not EventType.DELETED, events))
        missed.extend(events[len(heard) :])
        hear(heard)

    informer.update = hear_some  # type: ignore[method-assign]
    try:
        yield
    finally:
        informer.update = hear  # type: ignore[method-assign]
        hear(missed)
