"""``/get-snapshot`` and ``/get-job-order``, with a real API server's informers behind them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from shoal.api.core import CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS
from shoal.api.scheduling_run_ai import QUEUES
from shoal.scheduler.explaining import Questions
from shoal.scheduler.session.session import Session
from shoal.scheduler.snapshots import read_snapshot, snapshot_routes, watched_sources
from tests.scheduler.builders import a_model_gpu_queue, a_model_node
from tests.scheduler.explaining.stage import a_cluster, a_job, after_a_cycle
from tests.scheduler.snapshots.documents import AT, a_node_object, a_queue_object
from tests.support.clusters.in_process import Cluster


@dataclass
class Outcome:
    session: Session
    number: int = 1


async def test_a_snapshot_holds_what_the_scheduler_watches(cluster: Cluster) -> None:
    await cluster.make(NODES, a_node_object("n1"))
    await cluster.make(QUEUES, a_queue_object("team-a", quota=8))
    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"password": "s3cret"}})
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": storage})
    async with cluster.controllers() as manager:
        sources = watched_sources(manager)
        async with asyncio.timeout(20):
            while not all(sources[name]() for name in ("nodes", "queues", "configMaps", "persistentVolumeClaims")):
                await asyncio.sleep(0.01)
        app = web.Application()
        app.add_routes(
            snapshot_routes(sources, Questions(), config={"actions": "allocate"}, parameters={}, clock=lambda: AT)
        )
        async with TestClient(TestServer(app)) as client:
            response = await client.get("/get-snapshot")
            assert (response.status, response.content_type) == (200, "application/zip")
            assert response.headers["Content-Disposition"] == "attachment; filename=snapshot.zip"
            snapshot = read_snapshot(await response.read())
    assert snapshot.taken_at == AT
    assert [node["metadata"]["name"] for node in snapshot.of("nodes")] == ["n1"]
    assert snapshot.of("nodes")[0]["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert snapshot.of("queues")[0]["spec"]["resources"]["gpu"]["quota"] == 8
    [settings] = [one for one in snapshot.of("configMaps") if one["metadata"]["name"] == "settings"]
    assert "data" not in settings
    assert snapshot.of("persistentVolumeClaims")[0]["spec"]["accessModes"] == ["ReadWriteOnce"]


async def test_the_order_of_jobs_is_told_as_a_whole_and_by_queue() -> None:
    jobs = [a_job("late", age=1), a_job("early", age=50), a_job("urgent", age=1, priority=75), a_job("other", "b")]
    cluster = a_cluster([a_model_node("n1", 0)], [a_model_gpu_queue("a", quota=1), a_model_gpu_queue("b")], jobs)

    def wake() -> None:
        asyncio.get_running_loop().call_soon(answer)

    def answer() -> None:
        with after_a_cycle(cluster) as session:
            questions.answer(Outcome(session))

    questions = Questions(wake)
    app = web.Application()
    app.add_routes(snapshot_routes({}, questions, config={}, parameters={}))
    async with TestClient(TestServer(app)) as client:
        found = await (await client.get("/get-job-order")).json()
    assert {queue: [job["id"] for job in order] for queue, order in found["queue_order"].items()} == {
        "a": ["urgent", "early", "late"],
        "b": ["other"],
    }
    assert [job["id"] for job in found["global_order"]] == ["urgent", "early", "late", "other"]
    assert found["global_order"][0] == {"id": "urgent", "namespace": "team", "priority": 75}


@pytest.mark.parametrize("path", ["/get-snapshot", "/get-job-order"])
async def test_both_ask_for_a_token_where_one_is_needed(path: str) -> None:
    app = web.Application()
    app.add_routes(snapshot_routes({}, Questions(), config={}, parameters={}, accepts=lambda token: False))
    async with TestClient(TestServer(app)) as client:
        response = await client.get(path, headers={"Authorization": "Bearer wrong"})
        assert response.status == 401
