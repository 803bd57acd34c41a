"""JobSets on the embedded server, from their making to their end."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.batch import JOBS
from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from shoal.api.jobset import JOB_SETS, names
from shoal.training.jobset import JobSetSettings
from tests.support.clusters.client import until
from tests.support.clusters.in_process import errors_of, writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.jobset.builders import a_pod_template, a_replicated_job
from tests.training.jobset.conftest import JobSetWorld

NEVER = a_pod_template(restartPolicy="Never")


@pytest.mark.parametrize("selector", [pytest.param(names.JOB_SET_NAME, id="alone"), pytest.param("", id="sharing")])
async def test_a_job_set_runs_and_completes(world: JobSetWorld, selector: str) -> None:
    async with world.running(JobSetSettings(selector=selector)) as manager:
        made = await world.make(a_replicated_job("leader"), a_replicated_job("workers", 2))
        jobs = await world.has_jobs("train-leader-0", "train-workers-0", "train-workers-1")
        await world.counters(leader=(0, 0, 0, 1, 0), workers=(0, 0, 0, 2, 0))
        [owner] = jobs["train-workers-1"]["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobSet", made["metadata"]["uid"], True)
        assert jobs["train-workers-1"]["spec"]["completionMode"] == "Indexed"
        pod = await world.pod("train-workers-1")
        assert pod["spec"]["restartPolicy"] == "OnFailure"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("train-workers-1-0", "train")
        assert pod["metadata"]["labels"][names.JOB_GLOBAL_INDEX] == "2"
        service = await world.cluster.read(SERVICES, "train")
        assert service is not None
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["selector"] == {names.JOB_SET_NAME: "train"}
        assert service["spec"]["publishNotReadyAddresses"] is True

        await world.ready("train-leader-0", "train-workers-0", "train-workers-1")
        await world.counters(leader=(1, 0, 0, 1, 0), workers=(2, 0, 0, 2, 0))
        await world.end("train-leader-0", "train-workers-0", "train-workers-1")
        completed = await world.condition("Completed")
        assert (completed["reason"], completed["message"]) == ("AllJobsCompleted", "jobset completed successfully")
        status = (await world.job_set())["status"]
        assert (status["terminalState"], status["restarts"]) == ("Completed", 0)
        assert [each["name"] for each in status["replicatedJobsStatus"]] == ["workers", "leader"]
        [event] = await world.events("AllJobsCompleted")
        assert (event["type"], event["involvedObject"]["name"]) == ("Normal", "train")
        assert event["firstTimestamp"]
        value = manager.metrics.registry.get_sample_value
        assert value("jobset_completed_total", {"jobset_name": "train", "namespace": "default"}) == 1
        assert errors_of(manager) == 0


async def test_a_replicated_job_waits_for_what_it_depends_on(world: JobSetWorld) -> None:
    async with world.running():
        await world.make(
            a_replicated_job("data"),
            a_replicated_job("ps"),
            a_replicated_job("node", depends_on={"data": "Complete", "ps": "Ready"}),
        )
        await world.has_jobs("train-data-0", "train-ps-0")
        await world.ready("train-ps-0")
        await world.counters(data=(0, 0, 0, 1, 0), ps=(1, 0, 0, 1, 0), node=(0, 0, 0, 0, 0))
        assert "train-node-0" not in await world.jobs()
        await world.end("train-data-0")
        await world.has_jobs("train-data-0", "train-ps-0", "train-node-0")


async def test_in_order_each_replicated_job_waits_until_the_one_before_it_is_ready(world: JobSetWorld) -> None:
    async with world.running():
        order = {"startupPolicyOrder": "InOrder"}
        await world.make(a_replicated_job("first"), a_replicated_job("second"), startupPolicy=order)
        await world.has_jobs("train-first-0")
        in_progress = await world.condition("StartupPolicyInProgress")
        assert in_progress["reason"] == "InOrderStartupPolicyInProgress"
        await world.ready("train-first-0")
        await world.has_jobs("train-first-0", "train-second-0")
        await world.ready("train-second-0")
        assert (await world.condition("StartupPolicyCompleted"))["reason"] == "InOrderStartupPolicyCompleted"
        await world.condition("StartupPolicyInProgress", "False")


async def test_any_one_job_that_counts_is_enough_and_the_others_are_stopped(world: JobSetWorld) -> None:
    async with world.running():
        policy = {"operator": "Any", "targetReplicatedJobs": ["leader"]}
        await world.make(a_replicated_job("leader", 2), a_replicated_job("workers"), successPolicy=policy)
        await world.has_jobs("train-leader-0", "train-leader-1", "train-workers-0")
        await world.end("train-workers-0")
        await world.counters(leader=(0, 0, 0, 2, 0), workers=(0, 1, 0, 0, 0))
        assert "terminalState" not in (await world.job_set())["status"]
        await world.end("train-leader-1")
        await world.condition("Completed")
        await world.has_jobs("train-leader-1", "train-workers-0")


async def test_all_jobs_of_the_launcher_are_enough_where_it_alone_counts(world: JobSetWorld) -> None:
    async with world.running():
        policy = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
        await world.make(a_replicated_job("node", 2), a_replicated_job("launcher"), successPolicy=policy)
        await world.has_jobs("train-node-0", "train-node-1", "train-launcher-0")
        await world.end("train-launcher-0")
        await world.condition("Completed")
        await world.has_jobs("train-launcher-0")


async def test_without_a_policy_the_first_failed_job_fails_the_whole(world: JobSetWorld) -> None:
    async with world.running() as manager:
        await world.make(a_replicated_job("workers", 2, pods=NEVER, backoffLimit=0))
        await world.has_jobs("train-workers-0", "train-workers-1")
        await world.fail("train-workers-1")
        failed = await world.condition("Failed")
        assert failed["reason"] == "FailedJobs"
        assert failed["message"] == (
            "jobset failed due to one or more job failures (first failed job: train-workers-1)"
        )
        assert (await world.job_set())["status"]["terminalState"] == "Failed"
        await world.has_jobs("train-workers-1")
        [event] = await world.events("FailedJobs")
        assert event["type"] == "Warning"
        value = manager.metrics.registry.get_sample_value
        assert value("jobset_failed_total", {"jobset_name": "train", "namespace": "default"}) == 1


async def test_a_failed_job_set_is_restarted_until_it_has_been_so_often_enough(world: JobSetWorld) -> None:
    async with world.running():
        await world.make(a_replicated_job("workers", 2, pods=NEVER, backoffLimit=0), failurePolicy={"maxRestarts": 1})
        await world.has_jobs("train-workers-0", "train-workers-1", restart_attempt="0")
        await world.fail("train-workers-0")
        await world.has_jobs("train-workers-0", "train-workers-1", restart_attempt="1")
        restarting = await world.condition("RestartingJobSet")
        assert restarting["reason"] == "DefaultFailurePolicy"
        await world.ready("train-workers-0", "train-workers-1")
        assert (await world.condition("RestartingJobSet", "False"))["reason"] == "JobsReady"
        status = (await world.job_set())["status"]
        assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)

        await world.fail("train-workers-1")
        failed = await world.condition("Failed")
        assert failed["reason"] == "ReachedMaxRestarts"
        assert failed["message"].endswith("(first failed job: train-workers-1)")
        await world.events("RestartJobSetFailurePolicyAction", "DefaultFailurePolicy", "ReachedMaxRestarts")


async def test_where_it_blocks_nothing_is_made_again_before_all_is_gone(world: JobSetWorld) -> None:
    policy = {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}
    async with world.running():
        await world.make(a_replicated_job("workers", 2, pods=NEVER, backoffLimit=0), failurePolicy=policy)
        await world.has_jobs("train-workers-0", "train-workers-1", restart_attempt="0")
        held = {"metadata": {"finalizers": ["example.com/hold"]}}
        await world.cluster.client.merge_patch(JOBS.documents(), "train-workers-1", held, "default")
        await world.fail("train-workers-0")
        await world.condition("RestartingJobSet")

        async def first_is_gone() -> bool:
            return "train-workers-0" not in await world.jobs()

        await until(first_is_gone, within=10)
    async with world.running() as manager:
        await at_rest(manager)
        assert set(await world.jobs()) == {"train-workers-1"}
        released = {"metadata": {"finalizers": None}}
        await world.cluster.client.merge_patch(JOBS.documents(), "train-workers-1", released, "default")
        await world.has_jobs("train-workers-0", "train-workers-1", restart_attempt="1")


async def test_where_it_does_not_block_a_job_is_made_again_as_soon_as_its_namesake_is_gone(world: JobSetWorld) -> None:
    async with world.running():
        await world.make(a_replicated_job("workers", 2, pods=NEVER, backoffLimit=0), failurePolicy={"maxRestarts": 1})
        await world.has_jobs("train-workers-0", "train-workers-1", restart_attempt="0")
        held = {"metadata": {"finalizers": ["example.com/hold"]}}
        await world.cluster.client.merge_patch(JOBS.documents(), "train-workers-1", held, "default")
        await world.fail("train-workers-0")

        async def is_made_again() -> bool:
            found = (await world.jobs()).get("train-workers-0", {"metadata": {"labels": {}}})
            return bool(found["metadata"]["labels"].get(names.RESTART_ATTEMPT) == "1")

        await until(is_made_again, within=10)
        assert "deletionTimestamp" in (await world.jobs())["train-workers-1"]["metadata"]


async def test_one_failed_job_is_restarted_alone_where_that_is_enabled(world: JobSetWorld) -> None:
    policy = {"maxRestarts": 1, "rules": [{"name": "one", "action": "RestartJob"}]}
    async with world.running(JobSetSettings(restarts_single_jobs=True)):
        await world.make(a_replicated_job("workers", 2, pods=NEVER, backoffLimit=0), failurePolicy=policy)
        before = await world.has_jobs("train-workers-0", "train-workers-1", job_restart_attempt="0")
        await world.fail("train-workers-1")

        async def is_made_again() -> bool:
            found = (await world.jobs()).get("train-workers-1", {"metadata": {"labels": {}}})
            return bool(found["metadata"]["labels"].get(names.JOB_RESTART_ATTEMPT) == "1")

        await until(is_made_again, within=10)
        after = await world.jobs()
        assert after["train-workers-0"]["metadata"]["uid"] == before["train-workers-0"]["metadata"]["uid"]
        [status] = (await world.job_set())["status"]["replicatedJobsStatus"]
        assert (status["jobRestarts"], status["jobRestartsCountTowardsMax"]) == ([0, 1], [0, 1])
        await world.fail("train-workers-0")
        assert (await world.condition("Failed"))["reason"] == "ReachedMaxRestarts"


async def test_pods_that_are_restarted_in_place_learn_their_attempt_from_the_status(world: JobSetWorld) -> None:
    policy = {"maxRestarts": 3, "restartStrategy": "InPlaceRestart"}
    spec: dict[str, Any] = {
        "backoffLimit": 2**31 - 1,
        "podReplacementPolicy": "Failed",
        "completions": 1,
        "parallelism": 1,
    }
    async with world.running(JobSetSettings(restarts_in_place=True)):
        await world.make(a_replicated_job("workers", 2, **spec), failurePolicy=policy)

        async def status_says(field: str, value: int) -> None:
            async def so() -> bool:
                return bool((await world.job_set()).get("status", {}).get(field) == value)

            await until(so, within=10)

        async def reach(attempt: int, *jobs: str) -> None:
            for job in jobs:
                patch = {"metadata": {"annotations": {names.IN_PLACE_ATTEMPT: str(attempt)}}}
                name = (await world.pod(job))["metadata"]["name"]
                await world.cluster.client.merge_patch(PODS.documents(), name, patch, "default")

        await reach(0, "train-workers-0", "train-workers-1")
        await status_says("currentInPlaceRestartAttempt", 0)
        await reach(1, "train-workers-0")
        await status_says("previousInPlaceRestartAttempt", 0)
        await reach(1, "train-workers-1")
        await status_says("currentInPlaceRestartAttempt", 1)
        assert (await world.job_set())["status"]["restarts"] == 0


async def test_a_suspended_job_set_waits_and_goes_on_with_what_was_added(world: JobSetWorld) -> None:
    async with world.running():
        await world.make(a_replicated_job("workers"), suspend=True)
        jobs = await world.has_jobs("train-workers-0")
        assert jobs["train-workers-0"]["spec"]["suspend"] is True
        suspended = await world.condition("Suspended")
        assert (suspended["reason"], suspended["message"]) == ("SuspendedJobs", "jobset is suspended")
        await world.counters(workers=(0, 0, 0, 0, 1))
        assert await world.cluster.read(SERVICES, "train") is not None

        pods = a_pod_template(nodeSelector={"pool": "a"}, tolerations=[{"key": "gpu", "operator": "Exists"}])
        pods["metadata"] = {"labels": {"queue": "team"}}
        await world.change(replicatedJobs=[a_replicated_job("workers", pods=pods)], suspend=False)
        pod = await world.pod("train-workers-0")
        assert pod["spec"]["nodeSelector"] == {"pool": "a"}
        assert {"key": "gpu", "operator": "Exists"} in pod["spec"]["tolerations"]
        assert pod["metadata"]["labels"]["queue"] == "team"
        assert pod["metadata"]["labels"][names.JOB_SET_NAME] == "train"
        assert (await world.condition("Suspended", "False"))["reason"] == "ResumeJobs"

        await world.change(suspend=True)
        await world.condition("Suspended")
        await world.counters(workers=(0, 0, 0, 0, 1))
        assert await world.pods("train-workers-0") == []
        await world.change(suspend=False)
        await world.pod("train-workers-0")
        await world.end("train-workers-0")
        await world.condition("Completed")


async def test_a_finished_job_set_goes_when_its_time_is_over(world: JobSetWorld) -> None:
    async with world.running():
        await world.make(ttlSecondsAfterFinished=1)
        await world.has_jobs("train-workers-0")
        await world.end("train-workers-0")
        await world.gone()
        assert await world.jobs() == {}


async def test_claims_are_made_and_those_that_are_kept_outlive_the_job_set(world: JobSetWorld) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    policies = [
        {"templates": [{"metadata": {"name": "data"}, "spec": spec}]},
        {"templates": [{"metadata": {"name": "model"}, "spec": spec}], "retentionPolicy": {"whenDeleted": "Retain"}},
    ]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("data", "model")]
    pods = a_pod_template(containers=[{"name": "main", "image": "busybox", "volumeMounts": mounts}])
    async with world.running():
        await world.make(a_replicated_job(pods=pods), volumeClaimPolicies=policies)
        await world.has_jobs("train-workers-0")
        pod = await world.pod("train-workers-0")
        claimed = {each["name"]: each["persistentVolumeClaim"]["claimName"] for each in pod["spec"]["volumes"][:2]}
        assert claimed == {"data": "data-train", "model": "model-train"}
        claims = {each["metadata"]["name"]: each for each in await world.cluster.all(PERSISTENT_VOLUME_CLAIMS)}
        assert {name: "ownerReferences" in each["metadata"] for name, each in claims.items()} == {
            "data-train": True,
            "model-train": False,
        }
        await world.cluster.client.delete(JOB_SETS, "train", "default", propagation="Background")
        await world.gone()

        async def kept_alone() -> bool:
            found = await world.cluster.all(PERSISTENT_VOLUME_CLAIMS)
            return [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]] == [
                "model-train"
            ]

        await until(kept_alone, within=10)


async def test_a_job_set_that_somebody_else_manages_is_left_alone(world: JobSetWorld) -> None:
    async with world.running() as manager:
        await world.make(managedBy="kueue.x-k8s.io/multikueue")
        await world.make(name="ours")
        await world.has_jobs("ours-workers-0")
        await at_rest(manager)
        assert "status" not in await world.job_set()


async def test_at_rest_and_after_a_restart_nothing_is_written(world: JobSetWorld) -> None:
    order = {"startupPolicyOrder": "InOrder"}
    async with world.running():
        await world.make(name="runs")
        await world.make(name="waits", suspend=True)
        await world.make(a_replicated_job("a"), a_replicated_job("b"), name="ordered", startupPolicy=order)
        await world.make(name="done")
        await world.has_jobs("runs-workers-0", "waits-workers-0", "ordered-a-0", "done-workers-0")
        await world.end("done-workers-0")
        await world.condition("Completed", name="done")
        await world.counters("runs", workers=(0, 0, 0, 1, 0))
        await world.counters("waits", workers=(0, 0, 0, 0, 1))
        await world.counters("ordered", a=(0, 0, 0, 1, 0), b=(0, 0, 0, 0, 0))
    async with world.running() as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0
