"""Kubeflow's distributed jobs."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.grouper.fields import Ungroupable
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, parts_of, the_group

SPECS = {
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
}


def a_job(kind: str, *, minimum: int | None = None, policy: str = "", **replicas: int | None) -> dict[str, Any]:
    specs = {role: {} if count is None else {"replicas": count} for role, count in replicas.items()}
    spec: dict[str, Any] = {SPECS[kind]: specs}
    if minimum is not None:
        spec["runPolicy"] = {"schedulingPolicy": {"minAvailable": minimum}}
    if policy:
        spec["launcherCreationPolicy"] = policy
    return an_owner(kind, "kubeflow.org/v1", spec=spec)


def of_role(role: str, **more: Any) -> Any:
    return a_grouped_pod(role, labels={"training.kubeflow.org/replica-type": role}, **more)


@pytest.mark.parametrize(
    ("job", "minimum", "parts"),
    [
        pytest.param(
            a_job("TFJob", Chief=1, PS=2, Worker=4),
            7,
            {"chief": "1 pods", "ps": "2 pods", "worker": "4 pods"},
            id="TFJob",
        ),
        pytest.param(a_job("TFJob", Worker=4), 4, {"worker": "4 pods"}, id="TFJob without a chief"),
        pytest.param(a_job("TFJob", Worker=None), 1, {"worker": "1 pods"}, id="as many as Kubeflow makes by itself"),
        pytest.param(
            a_job("XGBoostJob", Master=1, Worker=2), 3, {"master": "1 pods", "worker": "2 pods"}, id="XGBoost"
        ),
        pytest.param(a_job("JAXJob", Worker=3), 3, {"worker": "3 pods"}, id="JAXJob"),
        pytest.param(a_job("TFJob", PS=2, Worker=4, minimum=3), 3, {}, id="the scheduling policy overrides"),
        pytest.param(a_job("MPIJob", Launcher=1, Worker=4), 5, {}, id="MPIJob"),
    ],
)
def test_all_replicas_of_all_roles_start_together(job: dict[str, Any], minimum: int, parts: dict[str, str]) -> None:
    group = the_group(job, pod=of_role("worker"))
    assert (group.name, group.min_member, parts_of(group)) == ("pg-w-w-uid", minimum, parts)


def test_a_pod_is_in_the_part_of_its_role() -> None:
    group = the_group(a_job("TFJob", PS=1, Worker=1))
    assert [group.part_of(of_role(role)) for role in ("ps", "worker", "evaluator")] == ["ps", "worker", ""]
    assert group.part_of(a_grouped_pod()) == ""


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        pytest.param(a_job("TFJob", Worker=0), "has 0 in spec.tfReplicaSpecs.Worker.replicas", id="no workers"),
        pytest.param(a_job("TFJob"), "has no roles in spec.tfReplicaSpecs", id="no roles"),
        pytest.param(a_job("XGBoostJob", Worker=2), "has no Master in spec.xgbReplicaSpecs", id="no master"),
        pytest.param(a_job("JAXJob", Master=2), "has no Worker in spec.jaxReplicaSpecs", id="JAX has workers alone"),
        pytest.param(a_job("MPIJob", Worker=2), "has no Launcher in spec.mpiReplicaSpecs", id="no launcher"),
        pytest.param(
            an_owner("TFJob", "kubeflow.org/v1", spec={"tfReplicaSpecs": {"Worker": {"replicas": "two"}}}),
            "has 'two' in spec.tfReplicaSpecs.Worker.replicas: put a whole number there",
            id="no number",
        ),
    ],
)
def test_a_job_that_makes_no_sense_is_told(job: dict[str, Any], problem: str) -> None:
    with pytest.raises(Ungroupable, match=problem):
        the_group(job)


LAUNCHER = a_grouped_pod("l", labels={"training.kubeflow.org/job-role": "launcher"})
GOING = a_grouped_pod("l", labels={"training.kubeflow.org/job-role": "launcher"}, deleting=True)
WORKER = a_grouped_pod("w", labels={"training.kubeflow.org/job-role": "worker"})


@pytest.mark.parametrize(
    ("policy", "members", "expected"),
    [
        pytest.param("AtStartup", (WORKER,), 5, id="it is made with the workers"),
        pytest.param("WaitForWorkersReady", (WORKER,), 4, id="it is not there yet"),
        pytest.param("WaitForWorkersReady", (WORKER, LAUNCHER), 5, id="it is there"),
        pytest.param("WaitForWorkersReady", (WORKER, GOING), 4, id="it is on its way out"),
    ],
)
def test_a_launcher_that_waits_for_its_workers_is_not_waited_for(policy: str, members: Any, expected: int) -> None:
    job = a_job("MPIJob", Launcher=1, Worker=4, policy=policy)
    assert the_group(job, pod=WORKER, members=members).min_member == expected
