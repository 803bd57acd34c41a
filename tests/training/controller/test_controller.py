"""TrainJobs at work: created, suspended and resumed, ended, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import CONFIG_MAPS, SECRETS
from shoal.api.jobset import JOB_SETS
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.api.trainer import TRAIN_JOBS, TRAINING_RUNTIMES
from shoal.kube import Manager
from shoal.training.controller import add_train_jobs
from shoal.training.framework import Unbuildable
from shoal.training.plugins import StatusServer, load_framework
from shoal.training.settings import TrainingSettings
from tests.support.clusters.in_process import writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.builders import a_container, a_job, a_trainer, an_initializer
from tests.training.controller.stage import SNAPSHOT, Stage, at, training


async def test_a_train_job_gets_a_job_set_that_it_owns(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit(trainer={"numNodes": 2, "image": "mine:1"}, labels={"mine": "alone"})
    async with stage.running() as manager:
        made = await stage.until_job_set()
        await at_rest(manager)
    job = await stage.train_job()
    assert made["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "name": "demo",
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert "labels" not in made["metadata"]
    [node] = made["spec"]["replicatedJobs"]
    assert node["template"]["spec"]["parallelism"] == 2
    assert node["template"]["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:1"
    managers = {entry["manager"]: entry["operation"] for entry in made["metadata"]["managedFields"]}
    assert managers == {"trainer": "Apply"}


async def test_a_train_job_that_runs_has_no_condition(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit()
    async with stage.running() as manager:
        made = await stage.until_job_set()
        await stage.tell(ready=1, active=1)
        status = await stage.until_told(lambda status: status.get("jobsStatus"))
        await at_rest(manager)
    counters = {"ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    assert status == {
        "jobsStatus": [{"name": "node", **counters}],
        "startTime": made["metadata"]["creationTimestamp"],
    }


@pytest.mark.parametrize(
    ("theirs", "ours", "reason"), [("Completed", "Complete", "AllJobsCompleted"), ("Failed", "Failed", "FailedJobs")]
)
async def test_the_end_of_the_job_set_is_the_end_of_the_train_job(
    stage: Stage, theirs: str, ours: str, reason: str
) -> None:
    await stage.add_runtime()
    await stage.submit()
    async with stage.running() as manager:
        await stage.until_job_set()
        await stage.tell(end=theirs, reason=reason, succeeded=1)
        told = await stage.until_condition(ours)
        await at_rest(manager)
    job_set = await stage.job_set()
    assert job_set is not None
    [said] = job_set["status"]["conditions"]
    assert told == {**said, "type": ours, "observedGeneration": 1}
    status = await stage.status()
    assert status["completionTime"] == said["lastTransitionTime"]
    assert [one["type"] for one in status["conditions"]] == [ours]


async def test_a_finished_train_job_is_left_alone_though_its_job_set_goes(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit()
    async with stage.running() as manager:
        await stage.until_job_set()
        await stage.tell(end="Completed", succeeded=1)
        await stage.until_condition("Complete")
        await stage.cluster.client.delete(JOB_SETS, "demo", "default")
        await stage.cluster.client.delete(CONFIG_MAPS, SNAPSHOT, "default")
        await at_rest(manager)
        before = writes_of(manager)
        await stage.change(ttlSecondsAfterFinished=3600)
        await at_rest(manager)
        assert writes_of(manager) == before
    assert await stage.job_set() is None


async def test_a_job_set_that_somebody_deletes_is_made_again(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit()
    async with stage.running():
        first = await stage.until_job_set()
        await stage.tell(ready=1, active=1)
        await stage.cluster.client.delete(JOB_SETS, "demo", "default")
        second = await stage.until_job_set(other_than=first["metadata"]["uid"])
    assert second["spec"] == first["spec"]


async def test_suspending_and_resuming(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit(suspend=True)
    async with stage.running():
        first = await stage.until_job_set(suspend=True)
        told = await stage.until_condition("Suspended")
        assert (told["reason"], told["message"], told["observedGeneration"]) == (
            "Suspended", "TrainJob is suspended", 1,
        )  # fmt: skip
        await stage.tell(suspended=1)
        assert "startTime" not in await stage.until_told(lambda status: status.get("jobsStatus"))
        await stage.change(suspend=False)
        await stage.until_job_set(suspend=False)
        told = await stage.until_condition("Suspended", "False")
        assert (told["reason"], told["message"], told["observedGeneration"]) == ("Resumed", "TrainJob is resumed", 2)
        await stage.tell(active=1, ready=1)
        status = await stage.until_told(lambda status: "startTime" in status)
        assert status["startTime"] == told["lastTransitionTime"]
        await stage.change(suspend=True)
        second = await stage.until_job_set(suspend=True)
        await stage.until_condition("Suspended")
    assert second["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_job_set_is_changed_while_it_waits_and_not_while_it_runs(stage: Stage) -> None:
    def patch(pool: str) -> list[dict[str, Any]]:
        pods = {"nodeSelector": {"pool": pool}}
        jobs = [{"name": "node", "template": {"spec": {"template": {"spec": pods}}}}]
        template = {"spec": {"replicatedJobs": jobs}}
        return [{"manager": "acme.io/mover", "trainingRuntimeSpec": {"template": template}}]

    def pool(job_set: dict[str, Any]) -> str:
        found: str = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["nodeSelector"][
            "pool"
        ]
        return found

    await stage.add_runtime()
    await stage.submit(suspend=True, runtimePatches=patch("a"))
    async with stage.running() as manager:
        await stage.until_job_set(suspend=True)
        await stage.change(runtimePatches=patch("b"), suspend=False)
        assert pool(await stage.until_job_set(suspend=False)) == "b"
        await stage.change(runtimePatches=patch("c"))
        await at_rest(manager)
        assert pool(await stage.until_job_set(suspend=False)) == "b"


async def test_at_rest_nothing_is_written_and_nothing_by_a_second_start(stage: Stage) -> None:
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    jobs = [an_initializer("dataset"), a_trainer(a_container(ports=[{"containerPort": 80}]), dependsOn=waits)]
    await stage.add_runtime(jobs=jobs, labels={"trainer.kubeflow.org/support": "deprecated"})
    limits = {"cpu": "1500m", "memory": "1024Mi", "nvidia.com/gpu": 2}
    await stage.submit(
        suspend=True,
        labels={"kai.scheduler/queue": "team-a"},
        trainer={"numNodes": 2, "resourcesPerNode": {"limits": limits}, "env": [{"name": "A", "value": "1"}]},
    )
    async with stage.running() as manager:
        await stage.until_condition("Suspended")
        await stage.until_event("Deprecated")
        await stage.tell(suspended=1)
        await stage.until_told(lambda status: status.get("jobsStatus"))
        await at_rest(manager)
        before = writes_of(manager)
        # A change that means nothing brings the reconcile, which finds all as it should be.
        annotation = {"metadata": {"annotations": {"touched": "yes"}}}
        for kind, name in ((TRAIN_JOBS, "demo"), (JOB_SETS, "demo")):
            await stage.cluster.client.merge_patch(kind.documents(), name, annotation, "default")
        await at_rest(manager)
        assert writes_of(manager) == before
    async with stage.running() as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_what_another_looks_after_is_not_touched(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit(managedBy="kueue.x-k8s.io/multikueue", suspend=True)
    async with stage.running() as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0
    assert await stage.job_set() is None
    assert "status" not in await stage.train_job()


async def test_a_runtime_of_the_namespace(stage: Stage) -> None:
    spec = {"template": {"spec": {"replicatedJobs": [a_trainer(a_container(image="theirs:1"))]}}}
    await stage.cluster.make(TRAINING_RUNTIMES, {"metadata": {"name": "own"}, "spec": spec})
    await stage.submit(runtime="own", kind="TrainingRuntime")
    async with stage.running():
        made = await stage.until_job_set()
    pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pods["containers"][0]["image"] == "theirs:1"


async def test_mpi_gets_its_keys_and_its_list_before_its_job_set(stage: Stage) -> None:
    launcher = a_job("launcher", ancestor="trainer", dependsOn=[{"name": "node", "status": "Ready"}])
    await stage.add_runtime(ml={"mpi": {"runLauncherAsNode": True}}, jobs=[a_job("node"), launcher])
    await stage.submit(trainer={"numNodes": 3})
    async with stage.running() as manager:
        made = await stage.until_job_set()
        await at_rest(manager)
        secret = await stage.cluster.read(SECRETS, "demo-mpi-ssh-auth")
        hosts = await stage.cluster.read(CONFIG_MAPS, "demo-mpi-hostfile")
        assert secret is not None
        assert hosts is not None
        versions = [int(one["metadata"]["resourceVersion"]) for one in (secret, hosts, made)]
        assert versions == sorted(versions)
        assert hosts["data"]["hostfile"].count("\n") == 3
        # What somebody takes away comes back, and what is there stays.
        await stage.cluster.client.delete(CONFIG_MAPS, "demo-mpi-hostfile", "default")
        await at_rest(manager)
        assert await stage.cluster.read(CONFIG_MAPS, "demo-mpi-hostfile") is not None
        after = await stage.cluster.read(SECRETS, "demo-mpi-ssh-auth")
        assert after is not None
        assert after["data"] == secret["data"]


async def test_a_queue_makes_a_gang(stage: Stage) -> None:
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    await stage.add_runtime(jobs=[an_initializer("dataset"), a_trainer(dependsOn=waits)])
    await stage.submit(labels={"kai.scheduler/queue": "team-a"}, trainer={"numNodes": 4})
    async with stage.running() as manager:
        made = await stage.until_job_set()
        await at_rest(manager)
        uid = (await stage.train_job())["metadata"]["uid"]
        group = await stage.cluster.read(POD_GROUPS, f"pg-demo-{uid}")
        assert group is not None
        assert group["spec"] == {"minMember": 4, "queue": "team-a"}
        initializer, node = (job["template"]["spec"]["template"] for job in made["spec"]["replicatedJobs"])
        assert node["metadata"]["annotations"]["pod-group-name"] == f"pg-demo-{uid}"
        assert initializer["metadata"]["annotations"]["pod-group-name"] == f"pg-demo-dataset-initializer-{uid}"
        # Whoever moves the gang to another queue is not contradicted.
        moved = {"spec": {"queue": "team-b"}}
        await stage.cluster.client.merge_patch(POD_GROUPS.documents(), f"pg-demo-{uid}", moved, "default")
        await at_rest(manager)
        group = await stage.cluster.read(POD_GROUPS, f"pg-demo-{uid}")
        assert group is not None
        assert group["spec"]["queue"] == "team-b"


async def test_a_train_job_that_is_over_is_deleted_after_its_time(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit("kept")
    await stage.submit(ttlSecondsAfterFinished=1)
    async with stage.running(), stage.collecting():
        await stage.until_job_set()
        await stage.tell(end="Completed", succeeded=1)
        await stage.until_condition("Complete")
        await stage.until_gone(lambda: stage.cluster.read(TRAIN_JOBS, "demo"))
        await stage.until_gone(stage.job_set)
    assert await stage.cluster.read(TRAIN_JOBS, "kept") is not None


async def test_a_train_job_of_the_same_name_begins_anew(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit(trainer={"numNodes": 2})
    async with stage.running():
        first = await stage.until_job_set()
        await stage.cluster.client.delete(TRAIN_JOBS, "demo", "default")
        await stage.submit(trainer={"numNodes": 3})
        # Until the collector comes, what was left behind is neither taken over nor fought for.
        async with stage.collecting():
            second = await stage.until_job_set(other_than=first["metadata"]["uid"])
    assert second["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 3
    assert "lastError" not in await stage.status()


async def test_times_are_told_in_order(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit()
    async with stage.running(training):
        await stage.until_job_set()
        await stage.tell(active=1)
        await stage.until_told(lambda status: "startTime" in status)
        await stage.tell(end="Completed", succeeded=1)
        status = await stage.until_told(lambda status: "completionTime" in status)
    created = (await stage.train_job())["metadata"]["creationTimestamp"]
    assert at(created) <= at(status["startTime"]) <= at(status["completionTime"])


async def test_programs_are_told_where_to_report_once_that_is_known(stage: Stage) -> None:
    authorities: list[str] = []

    def authority() -> str:
        if not authorities:
            raise Unbuildable("no certificate yet")
        return authorities[0]

    def reporting(manager: Manager) -> None:
        server = StatusServer(url="https://progress.kubeflow-system.svc:10443", authority=authority)
        add_train_jobs(manager, TrainingSettings(status_server=server), load_framework(server))

    await stage.add_runtime()
    await stage.submit()
    async with stage.running(reporting):
        status = await stage.until_told(lambda status: "lastError" in status)
        assert status["lastError"]["message"] == "no certificate yet"
        authorities.append("PEM")
        made = await stage.until_job_set()
    config_map = await stage.cluster.read(CONFIG_MAPS, "demo-tls-config")
    assert config_map is not None
    assert config_map["data"] == {"ca.crt": "PEM"}
    pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pods["containers"][0]["env"][0]["name"] == "KUBEFLOW_TRAINER_SERVER_URL"
    assert pods["volumes"][0]["projected"]["sources"][1]["configMap"]["name"] == "demo-tls-config"
