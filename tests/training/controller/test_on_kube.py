"""TrainJobs on a real API server: what it fills in, or writes differently, never makes a controller write again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from shoal.api import jobset, scheduling_run_ai, trainer
from shoal.api.jobset import JOB_SETS
from shoal.api.meta import format_time, now
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS
from shoal.cli.processes.api import define
from shoal.cluster.kubernetes import RealKubernetes
from shoal.kube import Client, Manager, NotFound, Settings, running
from shoal.training.runtimes import built_in_runtimes
from tests.support.clusters.client import client_to, transport_to, until
from tests.support.clusters.in_process import errors_of, writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.controller.stage import training

KINDS = (*trainer.DEFINITIONS, *jobset.DEFINITIONS, *scheduling_run_ai.DEFINITIONS)
CHOSEN = ("deepspeed-distributed", "flux-distributed", "jax-distributed", "torchtune-llama3.2-1b")


@asynccontextmanager
async def controllers(kube: RealKubernetes, namespace: str) -> AsyncIterator[Manager]:
    async with transport_to(kube.kubeconfig) as transport:
        manager = Manager(transport, name="training", settings=Settings(namespace=namespace))
        training(manager)
        async with running(manager):
            yield manager


def a_job(name: str, runtime: str) -> dict[str, Any]:
    limits = {"cpu": "1500m", "memory": "1024Mi", "nvidia.com/gpu": 2}
    own = {"fieldRef": {"fieldPath": "metadata.name"}}
    said: dict[str, Any] = {
        "numNodes": 2,
        "env": [
            {"name": "A", "value": "1"},
            {"name": "POD", "valueFrom": own},
        ],
        "resourcesPerNode": {"requests": {"cpu": "0.5"}, "limits": limits},
    }
    if runtime.startswith("torchtune"):
        said["command"] = ["tune", "run"]
    spec = {"runtimeRef": {"name": runtime}, "trainer": said, "suspend": True}
    return {"metadata": {"name": name, "labels": {"kai.scheduler/queue": "team-a"}}, "spec": spec}


async def test_at_rest_nothing_is_written_whatever_the_runtime(kube: RealKubernetes, namespace: str) -> None:
    async with client_to(kube.kubeconfig) as client:
        await define(client, KINDS)
        for number, name in enumerate(CHOSEN):
            runtime = built_in_runtimes()[name]
            await client.apply(CLUSTER_TRAINING_RUNTIMES.documents(), runtime, name=name, field_manager="test")
            await client.create(TRAIN_JOBS.documents(), a_job(f"job-{number}", name), namespace)
        jobs = [f"job-{number}" for number in range(len(CHOSEN))]
        async with controllers(kube, namespace) as manager:
            for name in jobs:
                await until(partial(_is_told, client, namespace, name, "Suspended"), within=60)
            await at_rest(manager)
            before = writes_of(manager)
            for name in jobs:
                touched = {"metadata": {"annotations": {"touched": "yes"}}}
                await client.merge_patch(TRAIN_JOBS.documents(), name, touched, namespace)
            await at_rest(manager)
            assert writes_of(manager) == before
            assert errors_of(manager) == 0
        async with controllers(kube, namespace) as manager:
            await at_rest(manager)
            assert writes_of(manager) == 0
            for name in jobs:
                await client.merge_patch(TRAIN_JOBS.documents(), name, {"spec": {"suspend": False}}, namespace)
                await until(partial(_runs, client, namespace, name), within=60)
                await client.merge_patch(
                    JOB_SETS.documents(), name, {"status": _completed()}, namespace, subresource="status"
                )
                await until(partial(_is_told, client, namespace, name, "Complete"), within=60)
            await at_rest(manager)
            assert errors_of(manager) == 0


async def _is_told(client: Client, namespace: str, name: str, condition: str) -> bool:
    found = await client.get(TRAIN_JOBS, name, namespace)
    return any(one.type == condition and one.status == "True" for one in found.status.conditions)


async def _runs(client: Client, namespace: str, name: str) -> bool:
    try:
        return not (await client.get(JOB_SETS, name, namespace)).spec.is_suspended
    except NotFound:
        return False


def _completed() -> dict[str, Any]:
    condition = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": format_time(now()),
    }
    return {"restarts": 0, "terminalState": "Completed", "conditions": [condition]}
