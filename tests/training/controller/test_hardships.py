"""TrainJobs where something is in the way: it converges, or it says why."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
import yaml

from shoal.api.core import CONFIG_MAPS
from shoal.api.jobset import JOB_SETS
from shoal.api.meta import Document, Resource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from shoal.kube import ConnectionFault, Manager, NotFound
from shoal.kube import running as running_manager
from shoal.kube.transport import Request, Response
from shoal.training.runtime_kinds import RuntimeKinds
from tests.support.clusters.client import until
from tests.support.clusters.faults import FaultyTransport
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.network.scripted import status as a_status
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest
from tests.training.builders import a_container, a_job, a_trainer
from tests.training.controller.stage import SNAPSHOT, Stage, training

RESOURCE_QUOTAS = Resource(type=Document, group="", version="v1", kind="ResourceQuota", plural="resourcequotas")
FAILED_EVENT = "TrainJobResourcesCreationFailed"


def faulty(cluster: Cluster) -> tuple[FaultyTransport, Manager]:
    """A manager whose requests can be interfered with."""
    transport = FaultyTransport(cluster.server.transport())
    manager = Manager(transport, name="controllers")
    training(manager)
    return transport, manager


class TestMissingRuntime:
    async def test_it_says_so_and_begins_when_the_runtime_comes(self, stage: Stage) -> None:
        await stage.submit()
        async with stage.running() as manager:
            status = await stage.until_told(lambda status: "lastError" in status)
            assert status["lastError"]["message"] == (
                "ClusterTrainingRuntime 'plain' does not exist: create it, or name another one"
            )
            assert "conditions" not in status
            event = await stage.until_event(FAILED_EVENT)
            assert event["message"].startswith(
                "TrainJob resources reconciliation failed: ClusterTrainingRuntime 'plain' does not exist"
            )
            assert event["type"] == "Warning"
            assert event["involvedObject"]["kind"] == "TrainJob"
            assert event["source"] == {"component": "trainer-trainjob-controller"}
            assert event["firstTimestamp"]
            assert event["lastTimestamp"]
            await stage.add_runtime()
            await stage.until_job_set()
            status = await stage.until_told(lambda status: "lastError" not in status)
            await at_rest(manager)
        assert status == {"conditions": []}
        assert not await stage.events("ReconcileFailed")

    async def test_one_that_is_deleted_later_is_not_missed(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(suspend=True)
        async with stage.running():
            first = await stage.until_job_set(suspend=True)
            await stage.cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "plain")
            await stage.change(suspend=False)
            await stage.until_job_set()
            await stage.cluster.client.delete(JOB_SETS, "demo", "default")
            second = await stage.until_job_set(other_than=first["metadata"]["uid"])
        assert second["spec"] == {**first["spec"], "suspend": False}
        assert "lastError" not in await stage.status()


class TestSnapshots:
    async def test_a_change_of_the_runtime_does_not_reach_a_train_job_that_began(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(suspend=True)
        async with stage.running():
            await stage.until_job_set(suspend=True)
            jobs = [a_trainer(a_container(image="later:2"))]
            change = {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}}
            await stage.cluster.client.merge_patch(CLUSTER_TRAINING_RUNTIMES.documents(), "plain", change)
            await stage.change(suspend=False)
            made = await stage.until_job_set()
        pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        assert pods["containers"][0]["image"] == "runtime:1"
        found = await stage.snapshot()
        assert found is not None
        assert found["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
        kept = yaml.safe_load(found["data"]["runtime"])
        assert (kept["kind"], kept["metadata"]["name"]) == ("ClusterTrainingRuntime", "plain")
        assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {"trainer"}

    async def test_one_that_is_deleted_is_made_again(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit()
        async with stage.running():
            await stage.until_job_set()
            await stage.cluster.client.delete(CONFIG_MAPS, SNAPSHOT, "default")

            async def is_back() -> bool:
                return await stage.snapshot() is not None

            await until(is_back, within=30)

    async def test_one_of_somebody_else_is_not_taken(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.cluster.make(CONFIG_MAPS, {"metadata": {"name": SNAPSHOT}, "data": {"runtime": "mine"}})
        await stage.submit()
        async with stage.running():
            status = await stage.until_told(lambda status: "lastError" in status)
            assert "does not belong to TrainJob demo" in status["lastError"]["message"]
            assert await stage.job_set() is None
            await stage.cluster.client.delete(CONFIG_MAPS, SNAPSHOT, "default")
            await stage.until_job_set()

    async def test_one_that_somebody_broke_is_told_of(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(suspend=True)
        async with stage.running():
            await stage.until_job_set(suspend=True)
            broken = {"data": {"runtime": "kind: Nonsense"}}
            await stage.cluster.client.merge_patch(CONFIG_MAPS.documents(), SNAPSHOT, broken, "default")
            status = await stage.until_told(lambda status: "lastError" in status)
            assert "delete it, and it is made again" in status["lastError"]["message"]
            await stage.cluster.client.delete(CONFIG_MAPS, SNAPSHOT, "default")
            await stage.until_told(lambda status: "lastError" not in status)


class TestUnknownKindsOfRuntimes:
    async def test_it_has_failed_until_the_kind_is_known(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit()

        def without_cluster_runtimes(manager: Manager) -> None:
            training(manager, RuntimeKinds([TRAINING_RUNTIMES]))

        async with stage.running(without_cluster_runtimes) as manager:
            told = await stage.until_condition("Failed")
            await at_rest(manager)
        assert told["reason"] == "TrainingRuntimeNotSupported"
        assert told["message"] == "unsupported runtime: ClusterTrainingRuntime.trainer.kubeflow.org"
        assert await stage.job_set() is None
        async with stage.running() as manager:
            await stage.until_job_set()
            await at_rest(manager)
        assert (await stage.status()).get("conditions", []) == []

    async def test_a_real_failure_is_not_cleared(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit()
        async with stage.running():
            await stage.until_job_set()
            await stage.tell(end="Failed", reason="FailedJobs", failed=1)
            failed = await stage.until_condition("Failed")
        async with stage.running() as manager:
            await at_rest(manager)
            assert writes_of(manager) == 0
        assert await stage.condition("Failed") == failed


class TestDeadline:
    async def test_pods_that_run_too_long_are_stopped(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(activeDeadlineSeconds=1)
        async with stage.running() as manager:
            await stage.until_job_set()
            await stage.tell(active=1, ready=1)
            told = await stage.until_condition("Failed")
            await stage.until_gone(stage.job_set)
            await at_rest(manager)
        assert (told["reason"], told["message"]) == ("DeadlineExceeded", "TrainJob exceeded its active deadline")
        assert (await stage.status())["completionTime"] == told["lastTransitionTime"]
        assert await stage.job_set() is None

    async def test_stopping_is_tried_until_it_is_done(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(activeDeadlineSeconds=1)
        transport, manager = faulty(stage.cluster)
        refusals = 0

        def refuse(request: Request) -> Response | None:
            nonlocal refusals
            if request.method != "DELETE" or refusals == 3:
                return None
            refusals += 1
            return Response(403, {}, msgspec.json.encode(a_status(403, "Forbidden", "not now")))

        transport.faults.append(refuse)
        async with running_manager(manager):
            await stage.until_job_set()
            await stage.until_condition("Failed")
            await stage.until_gone(stage.job_set)
        assert refusals == 3

    async def test_whoever_was_stopped_before_stopping_does_so_after_he_is_back(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(activeDeadlineSeconds=1)
        transport, manager = faulty(stage.cluster)

        def refuse(request: Request) -> Response | None:
            if request.method != "DELETE":
                return None
            return Response(403, {}, msgspec.json.encode(a_status(403, "Forbidden", "never")))

        transport.faults.append(refuse)
        async with running_manager(manager):
            await stage.until_condition("Failed")
        assert await stage.job_set() is not None
        async with stage.running():
            await stage.until_gone(stage.job_set)

    async def test_time_begins_anew_with_each_resumption(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit(activeDeadlineSeconds=3600, suspend=True)
        async with stage.running() as manager:
            await stage.until_condition("Suspended")
            await stage.change(suspend=False)
            await stage.until_condition("Suspended", "False")
            await at_rest(manager)
            assert await stage.condition("Failed") == {}


class TestRefusals:
    async def test_a_quota_that_refuses_the_job_set_is_told_of_and_passes(self, stage: Stage) -> None:
        await stage.add_runtime()
        none = {"count/jobsets.jobset.x-k8s.io": "0"}
        await stage.cluster.make(RESOURCE_QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": none}})
        await stage.cluster.set_status(RESOURCE_QUOTAS, "none", {"hard": none, "used": none})
        await stage.submit()
        async with stage.running():
            status = await stage.until_told(lambda status: "lastError" in status)
            assert "exceeded quota: none" in status["lastError"]["message"]
            assert "exceeded quota: none" in (await stage.until_event(FAILED_EVENT))["message"]
            await stage.cluster.client.delete(RESOURCE_QUOTAS, "none", "default")
            await stage.until_job_set()
            await stage.until_told(lambda status: "lastError" not in status)

    async def test_a_job_set_of_somebody_else_is_not_taken(self, stage: Stage) -> None:
        await stage.add_runtime()
        theirs = {"metadata": {"name": "demo"}, "spec": {"replicatedJobs": [a_job("theirs")], "suspend": True}}
        await stage.cluster.make(JOB_SETS, theirs)
        await stage.submit()
        async with stage.running():
            status = await stage.until_told(lambda status: "lastError" in status)
        assert "JobSet default/demo exists and is not owned by TrainJob demo" in status["lastError"]["message"]
        found = await stage.job_set()
        assert found is not None
        assert [job["name"] for job in found["spec"]["replicatedJobs"]] == ["theirs"]

    async def test_a_gang_of_a_scheduler_that_is_not_there_says_what_to_do(self, stage: Stage) -> None:
        await stage.add_runtime(podGroupPolicy={"volcano": {}})
        await stage.submit()
        async with stage.running():
            status = await stage.until_told(lambda status: "lastError" in status)
        assert status["lastError"]["message"] == (
            "the cluster does not serve PodGroup of scheduling.volcano.sh/v1beta1: "
            "install Volcano, or take podGroupPolicy.volcano out of the runtime"
        )

    async def test_what_is_wrong_is_cut_where_it_is_very_long(self, stage: Stage) -> None:
        await stage.add_runtime()
        await stage.submit()
        transport, manager = faulty(stage.cluster)

        def refuse(request: Request) -> Response | None:
            if request.method != "PATCH" or "/jobsets/" not in request.path:
                return None
            return Response(500, {}, msgspec.json.encode(a_status(500, "InternalError", "webhook down " * 200)))

        transport.faults.append(refuse)
        async with running_manager(manager):
            event = await stage.until_event(FAILED_EVENT)
            status = await stage.until_told(lambda status: "lastError" in status)
        prefix = "TrainJob resources reconciliation failed: "
        assert len(event["message"]) == len(prefix) + 950 + len(" ...")
        assert event["message"].endswith(" ...")
        assert status["lastError"]["message"] == "webhook down " * 200


@pytest.mark.parametrize("writes", range(7))
async def test_whoever_is_killed_between_two_writes_ends_where_the_others_do(stage: Stage, writes: int) -> None:
    """After so many writes nothing more arrives, as when the process is killed; then another one takes over."""
    launcher = a_job("launcher", ancestor="trainer", dependsOn=[{"name": "node", "status": "Ready"}])
    await stage.add_runtime(ml={"mpi": {"runLauncherAsNode": True}}, jobs=[a_job("node"), launcher])
    await stage.submit(trainer={"numNodes": 2}, labels={"kai.scheduler/queue": "team-a"}, activeDeadlineSeconds=3600)
    transport, manager = faulty(stage.cluster)
    arrived: list[str] = []
    killed = False

    async def kill(request: Request) -> None:
        nonlocal killed
        if request.method == "GET" and not killed:
            return
        if killed or len(arrived) == writes:
            killed = True
            raise ConnectionFault("killed by the test", lasting=True)
        arrived.append(f"{request.method} {request.path.rpartition('/')[2]}")

    transport.meanwhile = kill
    with suppress(ConnectionFault):
        async with running_manager(manager):
            if writes < 5:
                await eventually(lambda: killed)
            else:
                await at_rest(manager)
                await stage.tell(active=1)
                await eventually(lambda: killed or len(arrived) == 6)
    async with stage.running() as after:
        made = await stage.until_job_set()
        await stage.tell(active=1, ready=1)
        status = await stage.until_told(lambda status: (status.get("jobsStatus") or [{}])[0].get("ready") == 1)
        await at_rest(after)
        before = writes_of(after)
        await stage.change(ttlSecondsAfterFinished=10)
        await at_rest(after)
        assert writes_of(after) == before
    uid = (await stage.train_job())["metadata"]["uid"]
    maps = {one["metadata"]["name"] for one in await stage.cluster.all(CONFIG_MAPS)}
    assert {SNAPSHOT, "demo-mpi-hostfile"} <= maps
    assert [job["name"] for job in made["spec"]["replicatedJobs"]] == ["node", "launcher"]
    assert made["metadata"]["ownerReferences"][0]["uid"] == uid
    assert set(status) == {"jobsStatus", "startTime"}


class TestRuntimes:
    async def test_a_deprecated_one_is_told_of_once(self, stage: Stage) -> None:
        await stage.add_runtime("old", labels={"trainer.kubeflow.org/support": "deprecated"})
        await stage.add_runtime("new")
        async with stage.running():
            event = await stage.until_event("Deprecated")
        assert (event["type"], event["message"]) == ("Warning", "This runtime is deprecated")
        assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("ClusterTrainingRuntime", "old")
        async with stage.running() as manager:
            await at_rest(manager)
            assert writes_of(manager) == 0

    async def test_a_train_job_of_a_deprecated_one_is_told_too(self, stage: Stage) -> None:
        await stage.add_runtime("old", labels={"trainer.kubeflow.org/support": "deprecated"})
        await stage.submit(runtime="old")
        async with stage.running():
            await stage.until_job_set()

            async def is_told() -> bool:
                told = await stage.events("Deprecated")
                return any(one["involvedObject"]["kind"] == "TrainJob" for one in told)

            await until(is_told, within=30)

    @pytest.mark.parametrize("kind", [CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES], ids=lambda kind: kind.kind)
    async def test_one_that_an_earlier_version_held_back_may_go(self, stage: Stage, kind: Resource[Any]) -> None:
        metadata = {"name": "held", "finalizers": ["trainer.kubeflow.org/resource-in-use", "acme.io/other"]}
        body = {"metadata": metadata, "spec": {"template": {"spec": {"replicatedJobs": [a_trainer()]}}}}
        await stage.cluster.make(kind, body)

        async def finalizers() -> list[str]:
            found = await stage.cluster.read(kind, "held")
            assert found is not None
            names: list[str] = found["metadata"].get("finalizers", [])
            return names

        async def is_let_go() -> bool:
            return await finalizers() == ["acme.io/other"]

        async with stage.running():
            await until(is_let_go, within=30)


async def test_two_hundred_at_once(stage: Stage) -> None:
    await stage.add_runtime()
    for number in range(200):
        await stage.submit(f"job-{number}", trainer={"numNodes": 2})
    async with stage.running() as manager:

        async def are_made() -> bool:
            return len(await stage.cluster.all(JOB_SETS)) == 200

        await until(are_made, within=60)
        await at_rest(manager)
        assert writes_of(manager) == 400  # a snapshot and a JobSet each


async def test_a_deleted_train_job_is_forgotten(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit()
    async with stage.running() as manager:
        await stage.until_job_set()
        await stage.cluster.client.delete(TRAIN_JOBS, "demo", "default")
        await stage.cluster.client.delete(JOB_SETS, "demo", "default")
        await at_rest(manager)
        assert await stage.job_set() is None
    with pytest.raises(NotFound):
        await stage.cluster.client.get(TRAIN_JOBS, "demo", "default")
