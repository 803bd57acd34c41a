"""Jobs go when their time after the end is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.batch import JOBS, Job, JobCondition, JobSpec, JobStatus
from shoal.api.meta import ObjectMeta, format_time, now
from shoal.cluster.controllers.finished_jobs import add_finished_jobs
from shoal.cluster.controllers.finished_jobs.controller import expires_at
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

ENDED = datetime(2026, 7, 9, tzinfo=UTC)
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("ttl", "outcome", "deleted", "expires"),
    [
        pytest.param(None, "Complete", False, None, id="no time is set"),
        pytest.param(10, "", False, None, id="it still runs"),
        pytest.param(10, "Complete", False, 10, id="complete"),
        pytest.param(0, "Failed", False, 0, id="failed, and to go at once"),
        pytest.param(10, "Complete", True, None, id="it goes already"),
        pytest.param(10, "SuccessCriteriaMet", False, None, id="its end is only announced"),
    ],
)
def test_a_job_expires_so_long_after_its_end(ttl: int | None, outcome: str, deleted: bool, expires: int | None) -> None:
    conditions = [JobCondition(type=outcome, status="True", last_transition_time=ENDED)] if outcome else []
    job = Job(
        metadata=ObjectMeta(deletion_timestamp=ENDED if deleted else None),
        spec=JobSpec(ttl_seconds_after_finished=ttl),
        status=JobStatus(conditions=conditions),
    )
    assert expires_at(job) == (None if expires is None else ENDED + timedelta(seconds=expires))


async def finished(cluster: Cluster, name: str, ttl: int) -> None:
    await cluster.make(
        JOBS, {"metadata": {"name": name}, "spec": {"template": TEMPLATE, "ttlSecondsAfterFinished": ttl}}
    )
    at = format_time(now())
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in ("FailureTarget", "Failed")]
    status: dict[str, Any] = {"startTime": at, "conditions": conditions}
    await cluster.set_status(JOBS, name, status)


async def test_a_finished_job_goes_with_its_pods_when_its_time_is_over(cluster: Cluster) -> None:
    async with cluster.controllers(add_finished_jobs):
        await finished(cluster, "stays", 1000)
        await finished(cluster, "goes", 1)

        async def going() -> bool:
            job = await cluster.read(JOBS, "goes")
            assert job is not None  # the garbage collector, which ends a deletion in the foreground, is not here
            return bool(job["metadata"].get("finalizers") == ["foregroundDeletion"])

        await until(going, within=5)
        stays = await cluster.read(JOBS, "stays")
        assert stays is not None
        assert "deletionTimestamp" not in stays["metadata"]
