"""How often is written for a JobSet in its whole life."""

from __future__ import annotations

from shoal.api.batch import JOBS
from shoal.api.jobset import JOB_SETS, names
from shoal.cluster.controllers.jobs import add_jobs
from shoal.training.jobset import JobSetSettings, add_everything
from tests.support.clusters.faults import behind
from tests.support.clusters.in_process import errors_of, writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.jobset.conftest import JobSetWorld


async def test_steps_that_follow_each_other_quickly_are_not_told_one_by_one(world: JobSetWorld) -> None:
    """Its service, its Job, how it ended, and an event of that; on a slow machine one status in between."""
    async with (
        world.cluster.controllers(add_jobs),
        world.cluster.controllers(lambda manager: add_everything(manager, JobSetSettings())) as manager,
    ):
        await world.make()
        await world.ready("train-workers-0")
        await world.end("train-workers-0")
        await world.condition("Completed")
        await at_rest(manager)
        assert 4 <= writes_of(manager) <= 5


async def test_how_a_job_set_is_that_runs_on_is_told_soon(world: JobSetWorld) -> None:
    async with world.running():
        await world.make()
        await world.ready("train-workers-0")
        await world.counters(workers=(1, 0, 0, 1, 0))


async def test_a_job_that_is_made_and_not_seen_yet_is_not_made_again(world: JobSetWorld) -> None:
    async with world.cluster.controllers(lambda manager: add_everything(manager, JobSetSettings())) as manager:
        with behind(manager.cache.informer(JOBS, label_selector=names.JOB_SET_NAME)):
            await world.make()
            await world.has_jobs("train-workers-0")
            touched = {"metadata": {"annotations": {"example.com/touched": "yes"}}}
            await world.cluster.client.merge_patch(JOB_SETS.documents(), "train", touched, "default")
            await at_rest(manager)
        await at_rest(manager)
        assert (errors_of(manager), writes_of(manager)) == (0, 2)  # its service and its Job
