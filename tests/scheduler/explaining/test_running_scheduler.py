"""A real scheduler on an embedded API server is asked why a gang waits, and for its snapshot; then it is replayed."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from shoal.api.core import NODES, PODS
from shoal.api.scheduling_run_ai import POD_GROUPS, QUEUES
from shoal.kube import Manager
from shoal.scheduler.configuration import Configuration, SchedulerOptions
from shoal.scheduler.explaining import Questions, explain_routes
from shoal.scheduler.replaying import replay
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.snapshots import (
    configuration_document,
    parameters_of,
    read_snapshot,
    snapshot_routes,
    watched_sources,
)
from shoal.scheduler.watching.carrying import Carrier
from shoal.scheduler.watching.cycles import Cycles, CycleSettings
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.watches import Watches
from tests.scheduler.snapshots.documents import a_group_object, a_node_object, a_pod_object, a_queue_object
from tests.support.clusters.in_process import Cluster


def _scheduler(manager: Manager, app: web.Application) -> None:
    mirror = Mirror(MirrorSettings())
    cycles = Cycles(mirror, Carrier(manager, mirror), Settings(), CycleSettings())
    Watches(manager, mirror, cycles.wake)
    manager.add_leader_task(cycles.run)
    questions = Questions(cycles.wake)
    cycles.on_outcome.append(questions.answer)
    app.add_routes(explain_routes(questions, task_of=mirror.task, pod_of=mirror.pod))
    config, parameters = configuration_document(Configuration()), parameters_of(SchedulerOptions())
    app.add_routes(snapshot_routes(watched_sources(manager), questions, config=config, parameters=parameters))


async def _made(cluster: Cluster) -> None:
    await cluster.make(NODES, a_node_object("n1"))
    await cluster.client.merge_patch(NODES.documents(), "n1", {"spec": {"taints": None}})  # put there until it is ready
    await cluster.set_status(NODES, "n1", a_node_object("n1")["status"])
    await cluster.make(QUEUES, a_queue_object("team-a", quota=8))
    await cluster.make(POD_GROUPS, a_group_object("gang", pods=2))
    for index in (0, 1):
        await cluster.make(PODS, a_pod_object("gang", index))


async def test_a_running_scheduler_tells_why_a_gang_waits_and_hands_out_what_it_decides_upon(cluster: Cluster) -> None:
    await _made(cluster)
    app = web.Application()
    async with cluster.controllers(lambda manager: _scheduler(manager, app)), TestClient(TestServer(app)) as client:
        query = {"kind": "pod", "name": "gang-1", "namespace": "default"}
        told: dict[str, Any] = {}
        async with asyncio.timeout(30):
            while not told.get("jobs") or not told["jobs"][0]["shortages"]:
                told = await (await client.get("/api/v1/scheduler/explain", params=query)).json()
        job = told["jobs"][0]
        assert (job["name"], job["state"], job["reason"]) == ("gang", "Waiting", "PodSchedulingErrors")
        assert job["message"].startswith("room was found for 1 pod while 2 are required")
        order = await (await client.get("/get-job-order")).json()
        assert [one["id"] for one in order["global_order"]] == ["gang"]
        snapshot = read_snapshot(await (await client.get("/get-snapshot")).read())
    again = replay(snapshot)
    assert [(one.job, one.message) for one in again.waiting] == [("gang", job["message"])]
    assert again.placements == []
