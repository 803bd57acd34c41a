"""The Job controller on the embedded server."""

from __future__ import annotations

import pytest

from shoal.api.batch import JOBS
from shoal.api.core import EVENTS, PODS, SERVICE_ACCOUNTS
from shoal.cluster.controllers.jobs import add_jobs
from tests.cluster.controllers.jobs.conftest import JobWorld
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


async def reasons(cluster: Cluster, wanted: set[str]) -> set[str]:
    async def told() -> set[str]:
        found = {event["reason"] for event in await cluster.all(EVENTS)}
        return found if wanted <= found else set()

    found: set[str] = await until(told, within=5)
    return found


async def test_a_job_of_one_pod_runs_and_completes(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make()
        (pod,) = await jobs.pending(1)
        assert pod["metadata"]["finalizers"] == [TRACKING]
        assert pod["metadata"]["generateName"] == "work-"
        assert pod["metadata"]["ownerReferences"][0]["controller"] is True
        status = await jobs.status(active=1, ready=0, terminating=0)
        assert status["uncountedTerminatedPods"] == {}
        await cluster.set_status(
            PODS, pod["metadata"]["name"], {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        )
        await jobs.status(active=1, ready=1)
        await jobs.end(pod, "Succeeded")
        complete = await jobs.condition("Complete")
        assert (complete["reason"], complete["message"]) == (
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )
        status = (await jobs.job())["status"]
        assert [condition["type"] for condition in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        assert status["succeeded"] == 1
        assert "active" not in status
        assert status["ready"] == 0
        assert status["completionTime"]
        assert status["startTime"]
        (pod,) = await jobs.pods()
        assert "finalizers" not in pod["metadata"]
        await reasons(cluster, {"SuccessfulCreate", "Completed"})


async def test_at_rest_and_after_a_restart_nothing_is_written(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make("done")
        await jobs.make("runs", parallelism=2, completions=4)
        (pod,) = await jobs.pending(1, "done")
        await jobs.end(pod, "Succeeded")
        await jobs.condition("Complete", "done")
        await jobs.status("runs", active=2, ready=0)
    async with cluster.controllers(add_jobs) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_indexed_pods_carry_their_index(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(completionMode="Indexed", completions=3, parallelism=2)
        pods = await jobs.pending(2)
        first = pods[0]
        assert first["metadata"]["name"].startswith("work-0-")
        assert first["spec"]["hostname"] == "work-0"
        assert first["metadata"]["annotations"][INDEX] == first["metadata"]["labels"][INDEX] == "0"
        (variable,) = first["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
        await jobs.end(pods[1], "Succeeded")
        await jobs.status(completedIndexes="1", succeeded=1, active=2)
        for pod in await jobs.pending(2):
            await jobs.end(pod, "Succeeded")
        await jobs.condition("Complete")
        await jobs.status(completedIndexes="0-2", succeeded=3, active=None)


async def test_a_work_queue_ends_with_the_last_pod_after_the_first_success(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(parallelism=3)
        pods = await jobs.pending(3)
        await jobs.end(pods[0], "Succeeded")
        await jobs.status(succeeded=1, active=2)
        await jobs.end(pods[1], "Failed", code=1)
        await jobs.end(pods[2], "Succeeded")
        await jobs.condition("Complete")
        status = (await jobs.job())["status"]
        assert (status["succeeded"], status["failed"]) == (2, 1)


async def test_a_job_fails_beyond_its_backoff_limit(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(backoffLimit=1)
        (pod,) = await jobs.pending(1)
        await jobs.end(pod, "Failed", code=1)
        (pod,) = await jobs.pending(1)
        assert (await jobs.status(failed=1))["active"] == 1
        await jobs.end(pod, "Failed", code=1)
        failed = await jobs.condition("Failed")
        assert failed["reason"] == "BackoffLimitExceeded"
        assert failed["message"] == "Job has reached the specified backoff limit"
        status = await jobs.status(failed=2)
        assert [condition["type"] for condition in status["conditions"]] == ["FailureTarget", "Failed"]
        await reasons(cluster, {"BackoffLimitExceeded"})


async def test_a_failing_job_stops_what_still_runs_and_waits_for_it(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(backoffLimit=0, parallelism=2, completions=2)
        first, second = await jobs.pending(2)
        await cluster.client.bind(PODS, second["metadata"]["name"], "default", node="n")
        await jobs.end(first, "Failed", code=1)
        await jobs.condition("FailureTarget")
        status = await jobs.status(terminating=1, failed=2, active=None)
        assert all(condition["type"] != "Failed" for condition in status["conditions"])
        await jobs.gone()
        await jobs.condition("Failed")
        await jobs.status(terminating=0, failed=2)


async def test_a_suspended_job_has_no_pods_and_begins_anew_when_resumed(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(parallelism=2, completions=2)
        await jobs.pending(2)
        await jobs.status(active=2)
        await cluster.client.merge_patch(JOBS, "work", {"spec": {"suspend": True}}, "default")
        suspended = await jobs.condition("Suspended")
        assert (suspended["reason"], suspended["message"]) == ("JobSuspended", "Job suspended")
        await jobs.gone()
        await jobs.status(active=None, startTime=None, failed=None, terminating=0)
        assert await jobs.pods() == []
        await cluster.client.merge_patch(JOBS, "work", {"spec": {"suspend": False}}, "default")
        for pod in await jobs.pending(2):
            await jobs.end(pod, "Succeeded")
        await jobs.condition("Complete")
        (resumed, *_) = (await jobs.job())["status"]["conditions"]
        assert (resumed["type"], resumed["status"], resumed["reason"]) == ("Suspended", "False", "JobResumed")
        await reasons(cluster, {"Suspended", "Resumed", "SuccessfulDelete"})


async def test_a_job_that_is_too_slow_fails(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(activeDeadlineSeconds=1)
        await jobs.pending(1)
        failed = await jobs.condition("Failed")
        assert failed["reason"] == "DeadlineExceeded"
        assert failed["message"] == "Job was active longer than specified deadline"


async def test_a_job_whose_time_is_over_waits_quietly_for_its_last_pod(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs) as manager:
        await jobs.make(activeDeadlineSeconds=1)
        (pod,) = await jobs.pending(1)
        await cluster.client.bind(PODS, pod["metadata"]["name"], "default", node="n")
        await jobs.status(terminating=1, active=None)
        await at_rest(manager)
        before = manager.metrics.reconciles.labels("jobs", "requeue_after")._value.get()
        await jobs.make("other")
        await jobs.status("other", active=1)
        await at_rest(manager)
        assert manager.metrics.reconciles.labels("jobs", "requeue_after")._value.get() == before
        await jobs.gone()
        await jobs.condition("Failed")


async def test_a_job_of_another_manager_is_left_alone(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make("theirs", managedBy="example.com/other")
        await jobs.make("ours")
        await jobs.pending(1, "ours")
        assert await jobs.pods("theirs") == []
        assert "startTime" not in (await jobs.job("theirs")).get("status", {})


async def test_each_index_fails_by_itself(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
        first, second = await jobs.pending(2)
        assert first["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"
        await jobs.end(second, "Succeeded")
        await jobs.end(first, "Failed", code=1)
        (again,) = await jobs.pending(1)
        assert again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
        await jobs.status(failed=1, completedIndexes="1", failedIndexes="")
        await jobs.end(again, "Failed", code=1)
        failed = await jobs.condition("Failed")
        assert (failed["reason"], failed["message"]) == ("FailedIndexes", "Job has failed indexes")
        await jobs.status(failed=2, completedIndexes="1", failedIndexes="0")


async def test_a_job_fails_with_too_many_failed_indexes(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(
            completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=0, maxFailedIndexes=0
        )
        pods = await jobs.pending(3)
        await jobs.end(pods[1], "Failed", code=1)
        await jobs.condition("FailureTarget")
        await jobs.gone()
        assert (await jobs.condition("Failed"))["reason"] == "MaxFailedIndexesExceeded"


async def test_a_success_policy_ends_a_job_early(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(
            completionMode="Indexed",
            completions=3,
            parallelism=3,
            successPolicy={"rules": [{"succeededIndexes": "0"}]},
        )
        pods = await jobs.pending(3)
        await jobs.end(pods[0], "Succeeded")
        met = await jobs.condition("SuccessCriteriaMet")
        assert (met["reason"], met["message"]) == ("SuccessPolicy", "Matched rules at index 0")
        await jobs.gone()
        assert (await jobs.condition("Complete"))["reason"] == "SuccessPolicy"
        await jobs.status(succeeded=1, failed=None, completedIndexes="0", active=None)


POLICY = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
}


async def test_a_pod_failure_policy_ignores_disruptions_and_fails_the_job(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(backoffLimit=0, podFailurePolicy=POLICY)
        (pod,) = await jobs.pending(1)
        await jobs.end(pod, "Failed", code=137, conditions=[{"type": "DisruptionTarget", "status": "True"}])
        (again,) = await jobs.pending(1)
        await jobs.status(failed=None, active=1)
        await jobs.end(again, "Failed", code=42)
        failed = await jobs.condition("Failed")
        assert failed["reason"] == "PodFailurePolicy"
        name = again["metadata"]["name"]
        assert failed["message"] == (
            f"Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
        )


@pytest.mark.parametrize(("policy", "replaced_at_once"), [("TerminatingOrFailed", True), ("Failed", False)])
async def test_a_deleted_pod_is_replaced_at_once_or_when_it_is_gone(
    cluster: Cluster, jobs: JobWorld, policy: str, replaced_at_once: bool
) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(podReplacementPolicy=policy)
        (pod,) = await jobs.pending(1)
        await cluster.client.bind(PODS, pod["metadata"]["name"], "default", node="n")
        await cluster.client.delete(PODS, pod["metadata"]["name"], "default")
        if replaced_at_once:
            await jobs.status(failed=1, terminating=1)
        else:
            await jobs.status(failed=None, terminating=1, active=None)
            await jobs.end(pod, "Failed", code=1)
            await jobs.vanish(pod)
            await jobs.status(failed=1, terminating=0)


async def test_an_elastic_job_grows_and_shrinks(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(completionMode="Indexed", completions=2, parallelism=2)
        pods = await jobs.pending(2)
        await cluster.client.merge_patch(JOBS, "work", {"spec": {"completions": 4, "parallelism": 4}}, "default")
        pods = await jobs.pending(4)
        await jobs.end(pods[3], "Succeeded")
        await jobs.status(completedIndexes="3", succeeded=1)
        await cluster.client.merge_patch(JOBS, "work", {"spec": {"completions": 1, "parallelism": 1}}, "default")
        (left,) = await jobs.pending(1)
        assert left["metadata"]["annotations"][INDEX] == "0"
        await jobs.gone()
        await jobs.status(completedIndexes=None, succeeded=None, active=1)


async def test_pods_of_a_deleted_job_are_let_go(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await jobs.make(parallelism=2, completions=2)
        await jobs.pending(2)
        await cluster.client.delete(JOBS, "work", "default", propagation="Background")

        async def let_go() -> bool:
            return all("finalizers" not in pod["metadata"] for pod in await jobs.pods())

        await until(let_go, within=5)


async def test_a_pod_that_nobody_controls_is_adopted_with_its_finalizer(cluster: Cluster, jobs: JobWorld) -> None:
    async with cluster.controllers(add_jobs):
        await cluster.make(
            PODS,
            {
                "metadata": {"name": "stray", "labels": {"app": "x", "job-name": "work"}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"},
            },
        )
        template = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
        }
        await jobs.make(manualSelector=True, selector={"matchLabels": {"app": "x"}}, template=template)
        await jobs.status(active=1)
        stray = await cluster.read(PODS, "stray")
        assert stray is not None
        assert stray["metadata"]["finalizers"] == [TRACKING]
        assert stray["metadata"]["ownerReferences"][0]["name"] == "work"
        await cluster.client.merge_patch(PODS, "stray", {"metadata": {"labels": {"app": "y"}}}, "default")
        await jobs.status(active=1)

        async def released() -> bool:
            pod = await cluster.read(PODS, "stray")
            return pod is not None and not {"finalizers", "ownerReferences"} & pod["metadata"].keys()

        await until(released, within=5)


async def test_a_pod_that_is_refused_is_told_of_and_tried_again(cluster: Cluster, jobs: JobWorld) -> None:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], "serviceAccountName": "late"}
    }
    async with cluster.controllers(add_jobs):
        await jobs.make(template=template)
        await reasons(cluster, {"FailedCreate"})
        await jobs.status(active=None, ready=0)
        await cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": "late"}})
        await jobs.pending(1)
        await jobs.status(active=1)
