"""JobSets where a real kube-controller-manager runs their Jobs, and where Shoal's own does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from shoal.api import jobset
from shoal.api.core import SERVICES
from shoal.api.jobset import names
from shoal.kube import Client, Manager, Settings, running
from shoal.training.jobset import JobSetSettings, add_everything
from tests.support.clusters.client import client_to, install, transport_to
from tests.support.clusters.engines import Engine
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.clusters.real import namespace_for
from tests.support.waiting.at_rest import at_rest
from tests.training.jobset.builders import a_pod_template, a_replicated_job
from tests.training.jobset.conftest import JobSetWorld


class Reached(Cluster):
    """A cluster that others run."""

    def __init__(self, client: Client) -> None:
        self.client = client


class Stage(JobSetWorld):
    """A namespace of such a cluster, and the controllers of JobSets for it alone."""

    manager: Manager


@pytest.fixture
def namespace(engine: Engine, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, in each of the clusters."""
    with namespace_for(request.node.name, engine.admin) as name:
        yield name


@pytest.fixture
async def stage(engine: Engine, namespace: str) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(client_to(engine.kubeconfig))
        for definition in jobset.DEFINITIONS:
            await install(client, definition)
        found = Stage(Reached(client), namespace)
        transport = await stack.enter_async_context(transport_to(engine.kubeconfig))
        found.manager = Manager(transport, name="jobsets", settings=Settings(namespace=namespace))
        add_everything(found.manager, JobSetSettings())
        await stack.enter_async_context(running(found.manager))
        yield found


async def test_a_job_set_starts_in_order_of_dependence_restarts_and_completes(stage: Stage) -> None:
    pods = a_pod_template(restartPolicy="Never")
    await stage.make(
        a_replicated_job("data", pods=pods),
        a_replicated_job("workers", 2, pods=pods, backoffLimit=0, depends_on={"data": "Complete"}),
        failurePolicy={"maxRestarts": 1},
    )
    await stage.has_jobs("train-data-0")
    assert await stage.cluster.read(SERVICES, "train", stage.namespace) is not None
    await stage.end("train-data-0")
    everything = ("train-data-0", "train-workers-0", "train-workers-1")
    await stage.has_jobs(*everything, restart_attempt="0")
    pod = await stage.pod("train-workers-1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("train-workers-1-0", "train")
    assert pod["metadata"]["labels"][names.JOB_GLOBAL_INDEX] == "2"
    await stage.fail("train-workers-0")
    await stage.has_jobs("train-data-0", restart_attempt="1")
    await stage.end("train-data-0")
    await stage.has_jobs(*everything, restart_attempt="1")
    await stage.end("train-workers-0", "train-workers-1")
    await stage.condition("Completed")
    await stage.events("DefaultFailurePolicy", "RestartJobSetFailurePolicyAction", "AllJobsCompleted")
    await at_rest(stage.manager)
    before = writes_of(stage.manager)
    await stage.change(ttlSecondsAfterFinished=10_000)
    await at_rest(stage.manager)
    assert writes_of(stage.manager) == before
    await stage.change(ttlSecondsAfterFinished=0)
    await stage.gone()


async def test_a_job_set_is_suspended_changed_and_resumed(stage: Stage) -> None:
    await stage.make(a_replicated_job("workers"))
    await stage.pod("train-workers-0")
    await stage.ready("train-workers-0")
    await stage.counters(workers=(1, 0, 0, 1, 0))
    await stage.change(suspend=True)
    await stage.condition("Suspended")
    await stage.counters(workers=(0, 0, 0, 0, 1))
    template = a_pod_template(
        nodeSelector={"pool": "a"},
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        schedulingGates=[{"name": "example.com/wait"}],
    )
    template["metadata"] = {"labels": {"queue": "team"}, "annotations": {"note": "here"}}
    await stage.change(replicatedJobs=[a_replicated_job("workers", pods=template)], suspend=False)
    await stage.condition("Suspended", "False")
    pod = await stage.pod("train-workers-0")
    assert pod["spec"]["nodeSelector"] == {"pool": "a"}
    assert {"key": "gpu", "operator": "Exists"} in pod["spec"]["tolerations"]
    assert pod["spec"]["schedulingGates"] == [{"name": "example.com/wait"}]
    assert (pod["metadata"]["labels"]["queue"], pod["metadata"]["annotations"]["note"]) == ("team", "here")


async def test_jobs_of_a_failed_job_set_are_stopped(stage: Stage) -> None:
    pods = a_pod_template(restartPolicy="Never")
    await stage.make(a_replicated_job("workers", 2, pods=pods, backoffLimit=0))
    await stage.has_jobs("train-workers-0", "train-workers-1")
    await stage.fail("train-workers-1")
    failed = await stage.condition("Failed")
    assert failed["message"].endswith("(first failed job: train-workers-1)")
    await stage.has_jobs("train-workers-1")
