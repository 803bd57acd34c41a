"""TrainJobs with all of training, and the controllers of Jobs and garbage: from the first write to the last pod."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import generate_latest

from shoal.api.batch import JOBS
from shoal.api.core import PODS
from shoal.api.meta import Document, Resource
from shoal.cluster.controllers.garbage.controller import add_garbage_collector
from shoal.cluster.controllers.jobs import add_jobs
from shoal.kube import Manager, running
from shoal.training.everything import add_training
from shoal.training.rbac import RULES
from shoal.training.settings import TrainingSettings
from tests.support.clusters.client import until
from tests.support.clusters.in_process import errors_of, writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.builders import a_job, a_trainer, an_initializer
from tests.training.controller.stage import Stage

OPERATOR = "trainer-operator"
GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS = (
    Resource(type=Document, group=GROUP, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=False)
    for kind in ("ClusterRole", "ClusterRoleBinding")
)


@asynccontextmanager
async def all_of_training(stage: Stage, rules: Sequence[dict[str, list[str]]] = RULES) -> AsyncIterator[Manager]:
    """Everything, as a user who has just these rights."""
    await stage.cluster.make(CLUSTER_ROLES, {"metadata": {"name": OPERATOR}, "rules": list(rules)})
    binding = {
        "metadata": {"name": OPERATOR},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": OPERATOR},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": OPERATOR}],
    }
    await stage.cluster.make(CLUSTER_ROLE_BINDINGS, binding)
    manager = Manager(stage.cluster.server.transport(user=OPERATOR), name="operator")
    add_training(manager, TrainingSettings())
    async with stage.cluster.controllers(add_jobs, add_garbage_collector), running(manager):
        yield manager


async def until_pods(stage: Stage, job: str, count: int) -> list[dict[str, Any]]:
    async def are_there() -> bool:
        return len(await stage.cluster.all(PODS, labels=f"job-name={job}")) == count

    await until(are_there, within=30)
    return await stage.cluster.all(PODS, labels=f"job-name={job}")


async def end(stage: Stage, job: str, count: int, *, phase: str = "Succeeded") -> None:
    """Lets the pods of a Job end, as a node would say it."""
    for pod in await until_pods(stage, job, count):
        code = 0 if phase == "Succeeded" else 1
        state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
        container = {"name": "node", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        status = {"phase": phase, "conditions": [], "containerStatuses": [container]}
        await stage.cluster.set_status(PODS, pod["metadata"]["name"], status)


async def test_a_train_job_from_its_dataset_to_its_end(stage: Stage) -> None:
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    await stage.add_runtime(jobs=[an_initializer("dataset"), a_trainer(dependsOn=waits)])
    async with all_of_training(stage) as manager:
        await stage.submit(
            trainer={"numNodes": 2, "command": ["torchrun", "x"]}, initializer={"dataset": {"storageUri": "hf://a"}}
        )
        await end(stage, "demo-dataset-initializer-0", 1)
        pods = await until_pods(stage, "demo-node-0", 2)
        environment = {one["name"]: one for one in pods[0]["spec"]["containers"][0]["env"]}
        assert environment["PET_MASTER_ADDR"]["value"] == "demo-node-0-0.demo"
        assert {pod["spec"]["hostname"] for pod in pods} == {"demo-node-0-0", "demo-node-0-1"}
        assert {pod["spec"]["subdomain"] for pod in pods} == {"demo"}
        await stage.until_told(lambda status: [one["name"] for one in status.get("jobsStatus", [])])
        assert "conditions" not in await stage.status()
        await end(stage, "demo-node-0", 2)
        told = await stage.until_condition("Complete")
        await at_rest(manager)
        assert errors_of(manager) == 0
        before = writes_of(manager)
        await stage.change(ttlSecondsAfterFinished=3600)
        await at_rest(manager)
        assert writes_of(manager) == before
    assert (told["reason"], told["message"]) == ("AllJobsCompleted", "jobset completed successfully")
    jobs = (await stage.status())["jobsStatus"]
    assert [(one["name"], one["succeeded"]) for one in jobs] == [("node", 1), ("dataset-initializer", 1)]


async def test_a_script_that_fails_fails_the_train_job(stage: Stage) -> None:
    pod = {"restartPolicy": "Never"}
    await stage.add_runtime(jobs=[a_trainer(pod=pod, job={"backoffLimit": 0})])
    async with all_of_training(stage) as manager:
        await stage.submit()
        await end(stage, "demo-node-0", 1, phase="Failed")
        told = await stage.until_condition("Failed")
        await at_rest(manager)
    assert told["reason"] == "FailedJobs"
    assert told["message"].endswith("(first failed job: demo-node-0)")


async def test_a_train_job_that_ran_too_long_leaves_no_pods(stage: Stage) -> None:
    await stage.add_runtime()
    async with all_of_training(stage):
        await stage.submit(activeDeadlineSeconds=1)
        await until_pods(stage, "demo-node-0", 1)
        await stage.until_condition("Failed")

        async def is_empty() -> bool:
            return not await stage.cluster.all(PODS) and not await stage.cluster.all(JOBS)

        await until(is_empty, within=30)


async def test_a_gang_with_keys_needs_no_other_rights(stage: Stage) -> None:
    launcher = a_job("launcher", ancestor="trainer", dependsOn=[{"name": "node", "status": "Ready"}])
    await stage.add_runtime(
        ml={"mpi": {"runLauncherAsNode": True}},
        jobs=[a_job("node"), launcher],
        labels={"trainer.kubeflow.org/support": "deprecated"},
    )
    async with all_of_training(stage) as manager:
        await stage.submit(labels={"kai.scheduler/queue": "team-a"}, ttlSecondsAfterFinished=0, trainer={"numNodes": 3})
        pods = await until_pods(stage, "demo-node-0", 2)
        assert {pod["spec"]["schedulerName"] for pod in pods} == {"kai-scheduler"}
        await stage.until_event("Deprecated")
        await stage.cluster.set_status(PODS, pods[0]["metadata"]["name"], ready())
        await stage.cluster.set_status(PODS, pods[1]["metadata"]["name"], ready())
        await end(stage, "demo-launcher-0", 1)
        await end(stage, "demo-node-0", 2)

        async def is_gone() -> bool:
            return not await stage.cluster.all(PODS)

        await until(is_gone, within=30)
        assert errors_of(manager) == 0


def ready() -> dict[str, Any]:
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


async def test_suspending_stops_pods_and_resuming_starts_them_again(stage: Stage) -> None:
    await stage.add_runtime()
    async with all_of_training(stage):
        await stage.submit(suspend=True)
        await stage.until_job_set(suspend=True)
        await stage.until_told(lambda status: status.get("jobsStatus", [{}])[0].get("suspended"))
        assert not await stage.cluster.all(PODS)
        await stage.change(suspend=False)
        [first] = await until_pods(stage, "demo-node-0", 1)
        await stage.change(suspend=True)
        await until_pods(stage, "demo-node-0", 0)
        await stage.change(suspend=False)
        [second] = await until_pods(stage, "demo-node-0", 1)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        await end(stage, "demo-node-0", 1)
        await stage.until_condition("Complete")


async def test_figures_by_runtime(stage: Stage) -> None:
    await stage.add_runtime()
    async with all_of_training(stage) as manager:
        await stage.submit()
        await stage.submit("waits", suspend=True)
        await end(stage, "demo-node-0", 1)
        await stage.until_condition("Complete")
        await at_rest(manager)
        text = generate_latest(manager.metrics.registry).decode()
    runtime = 'runtime="plain",runtime_kind="ClusterTrainingRuntime"'
    lines = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}
    assert lines[f'trainer_trainjobs{{{runtime},state="Complete"}}'] == 1
    assert lines[f'trainer_trainjobs{{{runtime},state="Suspended"}}'] == 1
    ended = 'reason="AllJobsCompleted",result="Complete",runtime="plain",runtime_kind="ClusterTrainingRuntime"'
    assert lines[f"trainer_trainjobs_finished_total{{{ended}}}"] == 1
    assert lines[f'trainer_trainjob_duration_seconds_count{{result="Complete",{runtime}}}'] == 1
