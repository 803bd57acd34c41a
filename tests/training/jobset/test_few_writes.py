"""How often a JobSet's status is written in its whole life."""

from __future__ import annotations

from tests.support.in_process_cluster import writes_of
from tests.training.jobset.conftest import JobSetWorld


async def test_a_job_set_whose_job_starts_and_ends_quickly_is_told_of_once(world: JobSetWorld) -> None:
    """Its service, its Job, one status that says how it ended, and an event: nobody was told what was over by then."""
    async with world.running() as manager:
        await world.make()
        await world.ready("train-workers-0")
        await world.end("train-workers-0")
        await world.condition("Completed")
        await world.counters(workers=(0, 1, 0, 0, 0))
        path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/train/status"
        assert writes_of(manager)
        assert path
