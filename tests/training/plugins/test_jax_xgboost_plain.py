"""JAX, XGBoost, and runtimes with no policy of their own."""

from __future__ import annotations

from typing import Any

import pytest

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
    replicated_job,
)

USER = [{"name": "USER", "value": "u"}]
PORT = [{"containerPort": 29500}]


def test_jax_is_told_before_the_users_variables() -> None:
    made = job_set_of(a_train_job(trainer={"numNodes": 3, "env": USER}), a_runtime(ml={"jax": {}}))
    assert env_of(container_of(made)) == [
        ("JAX_NUM_PROCESSES", "3"),
        ("JAX_PROCESS_ID", INDEX),
        ("JAX_COORDINATOR_ADDRESS", "demo-node-0-0.demo:29500"),
        ("USER", "u"),
    ]
    assert container_of(made)["ports"] == PORT


def test_a_user_may_say_otherwise_to_jax() -> None:
    mine = [{"name": "JAX_COORDINATOR_ADDRESS", "value": "elsewhere:1"}]
    made = job_set_of(a_train_job(trainer={"env": mine}), a_runtime(ml={"jax": {}}))
    assert env_of(container_of(made))[2] == ("JAX_COORDINATOR_ADDRESS", "elsewhere:1")


WORKERS: dict[str, tuple[Any, Any, str]] = {
    "one on each node": ({"numNodes": 3}, None, "3"),
    "one for each GPU of the runtime": ({"numNodes": 2}, {"limits": {"nvidia.com/gpu": 4}}, "8"),
    "one for each GPU of the TrainJob": (
        {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "2"}}},
        {"limits": {"nvidia.com/gpu": 4}},
        "4",
    ),
}


@pytest.mark.parametrize(("trainer", "resources", "expected"), WORKERS.values(), ids=WORKERS)
def test_workers_of_xgboost(trainer: Any, resources: Any, expected: str) -> None:
    node = a_container(**({"resources": resources} if resources else {}))
    made = job_set_of(a_train_job(trainer=trainer), a_runtime(a_trainer(node), ml={"xgboost": {}}))
    assert dict(env_of(container_of(made)))["DMLC_NUM_WORKER"] == expected


def test_xgboost_is_told_after_the_users_variables() -> None:
    made = job_set_of(a_train_job(trainer={"numNodes": 2, "env": USER}), a_runtime(ml={"xgboost": {}}))
    assert env_of(container_of(made)) == [
        ("USER", "u"),
        ("DMLC_TRACKER_URI", "demo-node-0-0.demo"),
        ("DMLC_TRACKER_PORT", "29500"),
        ("DMLC_TASK_ID", INDEX),
        ("DMLC_NUM_WORKER", "2"),
    ]
    assert container_of(made)["ports"] == PORT


@pytest.mark.parametrize("policy", ["jax", "xgboost"])
def test_a_train_job_that_says_nothing_of_its_trainer_is_told_nothing(policy: str) -> None:
    made = job_set_of(a_train_job(), a_runtime(ml={policy: {}, "numNodes": 2}))
    assert "env" not in container_of(made)
    assert "ports" not in container_of(made)
    assert replicated_job(made)["template"]["spec"]["parallelism"] == 2


@pytest.mark.parametrize("ml", [None, {"numNodes": 1}], ids=["no policy", "a policy of no kind"])
def test_a_plain_runtime_gets_nodes_and_variables(ml: Any) -> None:
    made = job_set_of(a_train_job(trainer={"numNodes": 3, "env": USER}), a_runtime(a_job("other"), a_trainer(), ml=ml))
    assert env_of(container_of(made)) == [("USER", "u")]
    assert replicated_job(made)["template"]["spec"]["completions"] == 3
    assert replicated_job(made, "other")["template"]["spec"]["completions"] == 1
