"""What goes wrong around JobSets: things deleted by hand, a controller that dies between two writes, refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from shoal.api.batch import JOBS
from shoal.api.core import RESOURCE_QUOTAS, SERVICES
from shoal.api.jobset import names
from shoal.cluster.controllers.garbage.controller import add_garbage_collector
from shoal.cluster.controllers.jobs import add_jobs
from shoal.kube import Manager, NotLeading, running
from shoal.kube.transport import Request, Response, Stream, Transport, WebSocket
from shoal.training.jobset import JobSetSettings, add_everything
from tests.support.clusters.client import until
from tests.support.clusters.in_process import errors_of
from tests.support.waiting.at_rest import at_rest
from tests.training.jobset.builders import a_pod_template, a_replicated_job
from tests.training.jobset.conftest import JobSetWorld

NEVER = a_pod_template(restartPolicy="Never")


async def test_a_service_that_was_deleted_is_made_again(world: JobSetWorld) -> None:
    async with world.running():
        await world.make()
        await world.has_jobs("train-workers-0")
        service = await world.cluster.read(SERVICES, "train")
        assert service is not None
        await world.cluster.client.delete(SERVICES, "train", "default")

        async def is_back() -> bool:
            found = await world.cluster.read(SERVICES, "train")
            return found is not None and found["metadata"]["uid"] != service["metadata"]["uid"]

        await until(is_back, within=10)


async def test_a_service_of_the_wanted_name_is_used_as_it_is(world: JobSetWorld) -> None:
    body = {"metadata": {"name": "train"}, "spec": {"clusterIP": "None", "selector": {"app": "mine"}}}
    made = await world.cluster.make(SERVICES, body)
    async with world.running() as manager:
        await world.make()
        await world.has_jobs("train-workers-0")
        await at_rest(manager)
        found = await world.cluster.read(SERVICES, "train")
        assert found is not None
        assert found["metadata"]["uid"] == made.metadata.uid
        assert "ownerReferences" not in found["metadata"]
        assert errors_of(manager) == 0


async def test_a_job_that_was_deleted_is_made_again(world: JobSetWorld) -> None:
    async with world.running():
        await world.make(a_replicated_job("workers", 2))
        jobs = await world.has_jobs("train-workers-0", "train-workers-1")
        await world.cluster.client.delete(JOBS, "train-workers-1", "default", propagation="Background")

        async def is_back() -> bool:
            found = (await world.jobs()).get("train-workers-1")
            return found is not None and found["metadata"]["uid"] != jobs["train-workers-1"]["metadata"]["uid"]

        await until(is_back, within=10)
        assert not (await world.job_set()).get("status", {}).get("restarts")


async def test_a_job_of_somebody_else_is_not_touched_and_the_user_is_told(world: JobSetWorld) -> None:
    body = {"metadata": {"name": "train-workers-0"}, "spec": {"suspend": True, "template": NEVER}}
    made = await world.cluster.make(JOBS, body)
    async with world.running():
        await world.make(a_replicated_job("workers", 2))
        [event] = await world.events("JobCreationFailed")
        assert "train-workers-0" in event["message"]
        jobs = await world.jobs()
        assert jobs["train-workers-0"]["metadata"]["uid"] == made.metadata.uid
        assert "train-workers-1" in jobs
        await world.counters(workers=(0, 0, 0, 1, 0))
        await world.cluster.client.delete(JOBS, "train-workers-0", "default", propagation="Background")
        await world.has_jobs("train-workers-0", "train-workers-1", jobset_name="train")


async def test_a_quota_that_refuses_jobs_is_told_and_what_it_lets_pass_is_made_later(world: JobSetWorld) -> None:
    quota = {"metadata": {"name": "tight"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    await world.cluster.make(RESOURCE_QUOTAS, quota)
    await world.cluster.set_status(
        RESOURCE_QUOTAS, "tight", {"hard": {"count/jobs.batch": "0"}, "used": {"count/jobs.batch": "0"}}
    )
    async with world.running():
        await world.make()
        [event] = await world.events("JobCreationFailed")
        assert (event["type"], "quota" in event["message"]) == ("Warning", True)
        assert await world.jobs() == {}
        await world.cluster.client.delete(RESOURCE_QUOTAS, "tight", "default")
        await world.has_jobs("train-workers-0")


async def test_a_job_that_lost_its_attempt_is_told_of_and_left_running(world: JobSetWorld) -> None:
    async with world.running():
        await world.make()
        await world.has_jobs("train-workers-0")
        lost = {"metadata": {"labels": {names.RESTART_ATTEMPT: None}}}
        await world.cluster.client.merge_patch(JOBS.documents(), "train-workers-0", lost, "default")
        [event] = [each for each in await world.events("ReconcileFailed") if each["reason"] == "ReconcileFailed"]
        assert "restart-attempt is missing" in event["message"]
        assert "train-workers-0" in await world.jobs()


async def test_an_action_that_is_not_enabled_is_told_of(world: JobSetWorld) -> None:
    policy = {"maxRestarts": 1, "rules": [{"name": "one", "action": "RestartJob"}]}
    async with world.running():
        await world.make(a_replicated_job(pods=NEVER, backoffLimit=0), failurePolicy=policy)
        await world.has_jobs("train-workers-0")
        await world.fail("train-workers-0")
        [event] = [each for each in await world.events("ReconcileFailed") if each["reason"] == "ReconcileFailed"]
        assert "asks for RestartJob, which is not enabled" in event["message"]


class Mortal:
    """A transport whose process dies after so many writes: from then on nothing reaches the server."""

    def __init__(self, inner: Transport, writes: int) -> None:
        self._inner = inner
        self._left = writes
        self.is_dead = False

    @property
    def host(self) -> str:
        return self._inner.host

    async def send(self, request: Request) -> Response:
        if request.method != "GET" and not request.path.endswith("/events"):
            self.is_dead = self.is_dead or not self._left
            if self.is_dead:
                raise NotLeading("this process is dead")
            self._left -= 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    def websocket(self, request: Request, protocols: tuple[str, ...]) -> AbstractAsyncContextManager[WebSocket]:
        return self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.parametrize("writes", [1, 2, 3])
async def test_a_controller_that_dies_after_every_few_writes_gets_there_all_the_same(
    world: JobSetWorld, writes: int
) -> None:
    """Whatever write a process dies before, the next one finds what is left to do: one restart, and no more."""
    deaths = 0

    async def live_until(condition: Callable[[], Awaitable[object]]) -> None:
        nonlocal deaths
        is_done = False
        while not is_done:
            transport = Mortal(world.cluster.server.transport(), writes)
            manager = Manager(transport, name="mortal")
            add_everything(manager, JobSetSettings())

            async def is_over(transport: Mortal = transport) -> bool:
                return transport.is_dead or bool(await condition())

            async with running(manager):
                await until(is_over, within=10)
            deaths += transport.is_dead
            is_done = bool(await condition())

    async def has_jobs_of(attempt: str) -> bool:
        found = (await world.jobs()).values()
        return [each["metadata"]["labels"][names.RESTART_ATTEMPT] for each in found] == [attempt] * 2

    async def is_complete() -> bool:
        return bool((await world.job_set()).get("status", {}).get("terminalState"))

    async with world.cluster.controllers(add_jobs, add_garbage_collector):
        await world.make(a_replicated_job("workers", 2, pods=NEVER, backoffLimit=0), failurePolicy={"maxRestarts": 5})
        await live_until(lambda: has_jobs_of("0"))
        await world.fail("train-workers-0")
        await live_until(lambda: has_jobs_of("1"))
        await world.end("train-workers-0", "train-workers-1")
        await live_until(is_complete)
    status = (await world.job_set())["status"]
    assert (status["terminalState"], status["restarts"], status["restartsCountTowardsMax"]) == ("Completed", 1, 1)
    assert deaths >= 4 - writes
