"""TrainJobs whose gang is a PodGang: pods wait for what their scheduler's backend says, and then carry it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api.jobset import JOB_SETS
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.training import controller
from tests.support.clusters.client import until
from tests.support.clusters.in_process import writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.controller.stage import Stage

GANG = {"podGang": {"schedulerName": "volcano"}}


async def answer(stage: Stage, **fields: Any) -> None:
    """Does what a controller of gangs does."""
    said = json.dumps({"demo-node": {"labels": {"group": "demo"}, **fields}})
    patch = {"metadata": {"annotations": {"grove.io/pods-carry": said}}}
    await until(lambda: stage.cluster.read(POD_GANGS, "demo"), within=30)
    await stage.cluster.client.merge_patch(POD_GANGS.documents(), "demo", patch, "default")


def pods(job_set: Any) -> Any:
    return job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]


async def test_a_job_set_is_made_once_its_pods_can_be_counted(stage: Stage) -> None:
    await stage.add_runtime(podGroupPolicy=GANG)
    await stage.submit()
    async with stage.running() as manager:
        gang = await until(lambda: stage.cluster.read(POD_GANGS, "demo"), within=30)
        assert gang["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
        await at_rest(manager)
        assert await stage.job_set() is None
        assert "lastError" not in await stage.status()
        await answer(stage, spec={"schedulerName": "volcano"})
        made = pods(await stage.until_job_set())
        assert made["metadata"]["labels"]["group"] == "demo"
        assert made["spec"]["schedulerName"] == "volcano"
        await at_rest(manager)
        before = writes_of(manager)
        await at_rest(manager)
        assert writes_of(manager) == before


async def test_that_nobody_looks_after_gangs_is_told_and_passes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "PATIENCE", 0.2)
    await stage.add_runtime(podGroupPolicy=GANG)
    await stage.submit()
    async with stage.running():
        status = await stage.until_told(lambda status: "lastError" in status)
        assert "run `shoal operator` with gangs enabled" in status["lastError"]["message"]
        await stage.until_event("TrainJobResourcesCreationFailed")
        await answer(stage)
        await stage.until_job_set()
        await stage.until_told(lambda status: "lastError" not in status)


async def test_a_gang_that_is_deleted_is_made_again_and_what_runs_is_left(stage: Stage) -> None:
    await stage.add_runtime(podGroupPolicy=GANG)
    await stage.submit()
    async with stage.running() as manager:
        await answer(stage)
        before = await stage.until_job_set()
        gang = await stage.cluster.read(POD_GANGS, "demo") or {}
        await stage.cluster.client.delete(POD_GANGS, "demo", "default")

        async def is_another() -> bool:
            found = await stage.cluster.read(POD_GANGS, "demo")
            return found is not None and found["metadata"]["uid"] != gang["metadata"]["uid"]

        await until(is_another, within=30)
        await at_rest(manager)
        assert await stage.cluster.read(JOB_SETS, "demo") == before
        assert "lastError" not in await stage.status()
