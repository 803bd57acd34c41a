"""Torch: what torchrun is told, in which order, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.training.framework import Unbuildable
from tests.training.builders import (
    INDEX,
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    a_trainer,
    container_of,
    env_of,
    job_set_of,
    pod_of,
    replicated_job,
)

GPU = {"limits": {"nvidia.com/gpu": "2"}}
RESOURCES: dict[str, tuple[Any, Any, Any, str]] = {
    "as said": ({"numProcPerNode": 3}, GPU, None, "3"),
    "auto with GPUs of the TrainJob": ({}, GPU, None, "auto"),
    "auto with GPUs of the runtime": ({}, None, GPU, "auto"),
    "processors, rounded up": ({}, {"requests": {"cpu": "2500m"}}, None, "3"),
    "half a processor is one": ({}, {"requests": {"cpu": "500m"}}, None, "1"),
    "limits where requests say nothing": ({}, {"limits": {"cpu": "4"}}, None, "4"),
    "a word about processors hides the runtime's GPUs": ({}, {"requests": {"cpu": "6"}}, GPU, "6"),
    "nothing said is one": ({}, None, None, "1"),
    "no GPUs, but an explicit number": ({"numProcPerNode": 8}, {"requests": {"cpu": "1"}}, None, "8"),
}


def torch(*jobs: dict[str, Any], nodes: int = 1, **policy: Any) -> Any:
    return a_runtime(*jobs, ml={"numNodes": nodes, "torch": policy})


def pet(nodes: int, processes: str, address: str = "demo-node-0-0.demo") -> list[tuple[str, Any]]:
    return [
        ("PET_NNODES", str(nodes)),
        ("PET_NPROC_PER_NODE", processes),
        ("PET_NODE_RANK", INDEX),
        ("PET_MASTER_ADDR", address),
        ("PET_MASTER_PORT", "29500"),
    ]


def test_variables_come_in_order_after_the_runtimes_and_the_users() -> None:
    node = a_container(env=[{"name": "RUNTIME", "value": "r"}, {"name": "BOTH", "value": "r"}])
    user = [{"name": "USER", "value": "u"}, {"name": "BOTH", "value": "u"}]
    made = job_set_of(a_train_job(trainer={"numNodes": 2, "env": user}), torch(a_trainer(node)))
    assert env_of(container_of(made)) == [("RUNTIME", "r"), ("BOTH", "u"), ("USER", "u"), *pet(2, "1")]
    assert container_of(made)["ports"] == [{"containerPort": 29500}]


@pytest.mark.parametrize(("trainer", "own", "runtime", "expected"), RESOURCES.values(), ids=RESOURCES)
def test_processes_on_each_node(trainer: Any, own: Any, runtime: Any, expected: str) -> None:
    node = a_container(**({"resources": runtime} if runtime else {}))
    job = a_train_job(trainer={**trainer, **({"resourcesPerNode": own} if own else {})})
    assert dict(env_of(container_of(job_set_of(job, torch(a_trainer(node))))))["PET_NPROC_PER_NODE"] == expected


@pytest.mark.parametrize(("said", "expected"), [(None, 4), (2, 2), (0, 0)], ids=["the runtime's", "its own", "none"])
def test_the_number_of_nodes(said: int | None, expected: int) -> None:
    trainer = {} if said is None else {"numNodes": said}
    made = job_set_of(a_train_job(trainer=trainer), torch(nodes=4))
    assert env_of(container_of(made))[0] == ("PET_NNODES", str(expected))
    job = replicated_job(made)["template"]["spec"]
    assert (job["parallelism"], job["completions"]) == (expected, expected)


def test_a_train_job_that_says_nothing_of_its_trainer_is_told_nothing() -> None:
    node = container_of(job_set_of(a_train_job(), torch(nodes=2)))
    assert "env" not in node
    assert "ports" not in node


def test_nodes_meet_where_their_names_say() -> None:
    runtime = a_runtime(a_job("worker", ancestor="trainer"), ml={"torch": {}}, network={"subdomain": "mesh"})
    made = job_set_of(a_train_job(trainer={}), runtime)
    assert dict(env_of(container_of(made, "worker")))["PET_MASTER_ADDR"] == "demo-worker-0-0.mesh"


class TestInjection:
    """Further containers that the runtime names."""

    targets = {"targets": [{"jobName": "node", "containerNames": ["side", "setup"]}]}

    def runtime(self, injection: Any) -> Any:
        setup = {"initContainers": [a_container("setup")]}
        trainer = a_trainer(a_container(), a_container("side", env=[{"name": "OWN", "value": "1"}]), pod=setup)
        return torch(trainer, nodes=2, envInjection=injection)

    def test_they_are_told_everything_also_without_a_trainer(self) -> None:
        made = job_set_of(a_train_job(), self.runtime(self.targets))
        assert env_of(container_of(made, name="side")) == [("OWN", "1"), *pet(2, "1")]
        [setup] = pod_of(made)["initContainers"]
        assert env_of(setup) == pet(2, "1")
        assert "env" not in container_of(made)

    def test_they_are_told_everything_also_with_torchtune(self) -> None:
        job = a_train_job(runtime="torchtune-llama3.2-1b", trainer={"command": ["tune", "run"]})
        made = job_set_of(job, self.runtime(self.targets))
        assert env_of(container_of(made, name="side")) == [("OWN", "1"), *pet(2, "1")]
        assert env_of(container_of(made)) == pet(2, "1")[:3]

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ({"jobName": "node", "containerNames": ["absent"]}, "the container 'absent'"),
            ({"jobName": "absent", "containerNames": ["side"]}, "the replicated job 'absent'"),
        ],
    )
    def test_what_is_not_there_cannot_be_told(self, target: Any, message: str) -> None:
        with pytest.raises(Unbuildable, match=message):
            job_set_of(a_train_job(), self.runtime({"targets": [target]}))
