"""What pods ask for, counted exactly."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.training.framework.resources import (
    canonical,
    cpus,
    effective_resources,
    gpus,
    pod_requests,
    sum_of,
    times,
    written,
)
from tests.training.builders import a_container, a_job, a_train_job, a_trainer


def asking(name: str = "node", always: bool = False, **requests: Any) -> dict[str, Any]:
    policy = {"restartPolicy": "Always"} if always else {}
    return a_container(name, resources={"requests": requests}, **policy)


GPUS = {
    "requests": ({"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "8"}}, 4),
    "limits where requests have none": ({"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 2}}, 2),
    "by name, whatever the case": ({"limits": {"example.com/GPU-mini": "1"}}, 1),
    "mig devices are none": ({"limits": {"nvidia.com/mig-1g.5gb": "1"}}, 0),
    "tpus are none": ({"limits": {"google.com/tpu": "4"}}, 0),
    "nothing": ({}, 0),
}
CPUS = {
    "half a processor is one": ({"requests": {"cpu": "500m"}}, 1),
    "two and a half are three": ({"requests": {"cpu": 2.5}}, 3),
    "requests before limits": ({"requests": {"cpu": "2"}, "limits": {"cpu": "8"}}, 2),
    "limits where requests are zero": ({"requests": {"cpu": "0"}, "limits": {"cpu": "3500m"}}, 4),
    "nothing": ({"requests": {"memory": "1Gi"}}, 0),
}
PODS = {
    "containers add up": (
        {"containers": [asking(cpu="1"), asking("b", cpu="500m", memory="1Gi")]},
        {"cpu": "1500m", "memory": "1Gi"},
    ),
    "limits do not count": ({"containers": [a_container(resources={"limits": {"cpu": "4"}})]}, {}),
    "the largest init container": (
        {"containers": [asking(cpu="1")], "initContainers": [asking(cpu="3"), asking(cpu="2")]},
        {"cpu": "3"},
    ),
    "sidecars add up": (
        {"containers": [asking(cpu="1")], "initContainers": [asking(always=True, cpu="1")]},
        {"cpu": "2"},
    ),
    "an init container runs beside the sidecars before it": (
        {"containers": [asking(cpu="1")], "initContainers": [asking(always=True, cpu="2"), asking(cpu="2")]},
        {"cpu": "4"},
    ),
    "overhead": ({"containers": [asking(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}),
    "of the pod as a whole": ({"containers": [asking(cpu="1")], "resources": {"requests": {"cpu": "8"}}}, {"cpu": "8"}),
}


@pytest.mark.parametrize(("resources", "expected"), GPUS.values(), ids=GPUS)
def test_gpus(resources: Any, expected: int) -> None:
    assert gpus(resources) == expected


@pytest.mark.parametrize(("resources", "expected"), CPUS.values(), ids=CPUS)
def test_processors_are_rounded_up(resources: Any, expected: int) -> None:
    assert cpus(resources) == expected


@pytest.mark.parametrize(("pod", "expected"), PODS.values(), ids=PODS)
def test_what_a_pod_asks_for(pod: Any, expected: Any) -> None:
    assert written(pod_requests(pod)) == expected


def test_no_thousandth_is_lost_in_a_sum() -> None:
    part = pod_requests({"containers": [asking(cpu="100m", memory="333Mi")]})
    assert written(times(30, part)) == {"cpu": "3", "memory": "9990Mi"}
    assert written(sum_of([part, part, part])) == {"cpu": "300m", "memory": "999Mi"}


def test_amounts_are_written_as_the_server_writes_them() -> None:
    assert canonical({"cpu": 2.0, "memory": "1024Mi", "nvidia.com/gpu": 8}) == {
        "cpu": "2",
        "memory": "1Gi",
        "nvidia.com/gpu": "8",
    }


def test_a_train_job_that_names_processors_hides_the_gpus_of_its_runtime() -> None:
    spec = {"replicatedJobs": [a_trainer(a_container(resources={"limits": {"nvidia.com/gpu": 2}}))]}
    own = a_train_job(trainer={"resourcesPerNode": {"requests": {"cpu": "4"}}})
    assert gpus(effective_resources(own, spec)) == 0
    assert gpus(effective_resources(a_train_job(), spec)) == 2


def test_the_runtimes_resources_are_those_of_its_first_node() -> None:
    with_gpus = a_container(resources={"limits": {"nvidia.com/gpu": 4}})
    spec = {"replicatedJobs": [a_job("first"), a_job("node", with_gpus), a_trainer()]}
    assert gpus(effective_resources(a_train_job(), spec)) == 4
