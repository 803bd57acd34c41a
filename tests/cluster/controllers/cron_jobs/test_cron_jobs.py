"""The CronJob controller on the embedded server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shoal.api.batch import CRON_JOBS, JOBS
from shoal.api.core import EVENTS
from shoal.api.meta import format_time, now, parse_time
from shoal.cluster.controllers.cron_jobs import add_cron_jobs
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

TEMPLATE = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
LONG_AGO = timedelta(hours=2)


async def make(cluster: Cluster, *, since: timedelta | None = LONG_AGO, **spec: Any) -> dict[str, Any]:
    """A CronJob whose last Job was due some time ago."""
    body = {
        "metadata": {"name": "tick"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"metadata": {"labels": {"a": "b"}}, **TEMPLATE}, **spec},
    }
    made = await cluster.make(CRON_JOBS, body)
    if since is not None:
        await cluster.set_status(CRON_JOBS, "tick", {"lastScheduleTime": format_time(now() - since)})
    return made.content


async def jobs_there(cluster: Cluster, count: int) -> list[dict[str, Any]]:
    async def there() -> list[dict[str, Any]]:
        found = [job for job in await cluster.all(JOBS) if "deletionTimestamp" not in job["metadata"]]
        return found if len(found) == count else []

    found: list[dict[str, Any]] = await until(there, within=5)
    return found


async def reasons(cluster: Cluster, wanted: set[str]) -> None:
    async def told() -> bool:
        return wanted <= {event["reason"] for event in await cluster.all(EVENTS)}

    await until(told, within=5)


async def end(cluster: Cluster, name: str, outcome: str) -> None:
    """Lets a Job end, as the Job controller would say it."""
    first = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[outcome]
    at = format_time(now())
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in (first, outcome)]
    status: dict[str, Any] = {"startTime": at, "conditions": conditions}
    await cluster.set_status(JOBS, name, status | ({"completionTime": at} if outcome == "Complete" else {}))


async def status_of(cluster: Cluster) -> dict[str, Any]:
    found = await cluster.read(CRON_JOBS, "tick")
    assert found is not None
    return dict(found.get("status", {}))


async def test_a_job_that_is_due_is_made_once(cluster: Cluster) -> None:
    made = await make(cluster)
    async with cluster.controllers(add_cron_jobs):
        (job,) = await jobs_there(cluster, 1)
        due = parse_time((now()).strftime("%Y-%m-%dT%H:00:00Z"))
        assert job["metadata"]["name"] == f"tick-{int(due.timestamp()) // 60}"
        assert job["metadata"]["labels"]["a"] == "b"
        stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp"
        assert job["metadata"]["annotations"] == {stamp: format_time(due)}
        (owner,) = job["metadata"]["ownerReferences"]
        assert owner["uid"] == made["metadata"]["uid"]
        assert owner["controller"]
        assert owner["blockOwnerDeletion"]

        async def written() -> dict[str, Any]:
            status = await status_of(cluster)
            return status if status.get("active") else {}

        status = await until(written, within=5)
        (reference,) = status["active"]
        assert (reference["name"], reference["uid"]) == (job["metadata"]["name"], job["metadata"]["uid"])
        assert (reference["kind"], reference["apiVersion"]) == ("Job", "batch/v1")
        assert status["lastScheduleTime"] == format_time(due)
        await reasons(cluster, {"SuccessfulCreate"})
    async with cluster.controllers(add_cron_jobs) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_a_finished_job_leaves_the_active_ones(cluster: Cluster) -> None:
    await make(cluster)
    async with cluster.controllers(add_cron_jobs):
        (job,) = await jobs_there(cluster, 1)
        await end(cluster, job["metadata"]["name"], "Complete")

        async def noted() -> bool:
            status = await status_of(cluster)
            return "active" not in status and "lastSuccessfulTime" in status

        await until(noted, within=5)
        await reasons(cluster, {"SawCompletedJob"})


async def test_a_missing_job_leaves_the_active_ones(cluster: Cluster) -> None:
    await make(cluster)
    async with cluster.controllers(add_cron_jobs):
        (job,) = await jobs_there(cluster, 1)
        await cluster.client.delete(JOBS, job["metadata"]["name"], "default", propagation="Background")
        await reasons(cluster, {"MissingJob"})

        async def noted() -> bool:
            return "active" not in await status_of(cluster)

        await until(noted, within=5)
        assert await cluster.all(JOBS) == []


async def test_a_suspended_or_new_cron_job_makes_nothing(cluster: Cluster) -> None:
    await make(cluster, suspend=True)
    async with cluster.controllers(add_cron_jobs) as manager:
        await at_rest(manager)
        assert await cluster.all(JOBS) == []
        await cluster.client.merge_patch(CRON_JOBS, "tick", {"spec": {"suspend": False}}, "default")
        await jobs_there(cluster, 1)


async def an_older_job(cluster: Cluster) -> None:
    """A Job of an hour before that still runs, in the status as the controller would have it."""
    cron_job = await cluster.read(CRON_JOBS, "tick")
    assert cron_job is not None
    uid = cron_job["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": uid, "controller": True}
    body = {"metadata": {"name": "tick-1", "ownerReferences": [owner]}, **TEMPLATE}
    job = await cluster.make(JOBS, body)
    reference = {"kind": "Job", "apiVersion": "batch/v1", "namespace": "default", "name": "tick-1"}
    await cluster.set_status(CRON_JOBS, "tick", {"active": [{**reference, "uid": job.metadata.uid}]})


@pytest.mark.parametrize(
    ("policy", "left", "reason"),
    [("Allow", 2, "SuccessfulCreate"), ("Forbid", 1, "JobAlreadyActive"), ("Replace", 1, "SuccessfulDelete")],
)
async def test_a_job_that_still_runs_meets_the_concurrency_policy(
    cluster: Cluster, policy: str, left: int, reason: str
) -> None:
    await make(cluster, concurrencyPolicy=policy)
    await an_older_job(cluster)
    async with cluster.controllers(add_cron_jobs):
        await reasons(cluster, {reason})
        names = {job["metadata"]["name"] for job in await jobs_there(cluster, left)}
        assert ("tick-1" in names) is (policy != "Replace")


async def test_a_job_of_somebody_else_that_has_taken_a_name_is_left_alone(cluster: Cluster) -> None:
    await make(cluster, concurrencyPolicy="Replace")
    await an_older_job(cluster)
    await cluster.client.delete(JOBS, "tick-1", "default", propagation="Background")
    await cluster.make(JOBS, {"metadata": {"name": "tick-1"}, **TEMPLATE})
    async with cluster.controllers(add_cron_jobs):
        await reasons(cluster, {"MissingJob", "SuccessfulCreate"})
        names = {job["metadata"]["name"] for job in await jobs_there(cluster, 2)}
        assert "tick-1" in names


async def test_only_the_newest_finished_jobs_are_kept(cluster: Cluster) -> None:
    made = await make(cluster, since=None, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": uid, "controller": True}
    for name, outcome in (("a", "Complete"), ("b", "Complete"), ("c", "Failed")):
        await cluster.make(JOBS, {"metadata": {"name": name, "ownerReferences": [owner]}, **TEMPLATE})
        await end(cluster, name, outcome)
    async with cluster.controllers(add_cron_jobs):
        (kept,) = await jobs_there(cluster, 1)
        assert kept["metadata"]["name"] == "b"
        await reasons(cluster, {"SuccessfulDelete"})


async def test_a_job_made_just_before_a_crash_is_found_again(cluster: Cluster) -> None:
    await make(cluster)
    async with cluster.controllers(add_cron_jobs):
        (job,) = await jobs_there(cluster, 1)
    status = {"active": None, "lastScheduleTime": format_time(now() - LONG_AGO)}
    await cluster.set_status(CRON_JOBS, "tick", status)
    async with cluster.controllers(add_cron_jobs):

        async def found() -> bool:
            active = (await status_of(cluster)).get("active", [])
            return [reference["uid"] for reference in active] == [job["metadata"]["uid"]]

        await until(found, within=5)
        await jobs_there(cluster, 1)


async def test_a_new_schedule_does_not_make_up_for_the_past(cluster: Cluster) -> None:
    await make(cluster, since=timedelta(seconds=0), schedule="0 0 1 1 *")
    async with cluster.controllers(add_cron_jobs) as manager:
        await at_rest(manager)
        seen = manager.cache.informer(CRON_JOBS)
        # The schedule that was has had nothing due since, the new one has.
        await cluster.set_status(CRON_JOBS, "tick", {"lastScheduleTime": format_time(now() - LONG_AGO)})
        changed = await cluster.client.merge_patch(CRON_JOBS, "tick", {"spec": {"schedule": "30 * * * *"}}, "default")
        await seen.wait_for_version(int(changed.metadata.resource_version))
        await at_rest(manager)
        assert await cluster.all(JOBS) == []


async def test_the_timestamp_is_in_the_zone_of_the_schedule(cluster: Cluster) -> None:
    await make(cluster, timeZone="Asia/Kolkata", schedule="30 * * * *")
    async with cluster.controllers(add_cron_jobs):
        (job,) = await jobs_there(cluster, 1)
        stamp = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp.endswith(":30:00+05:30")
