"""Reading a runtime as sets of pods, with the patches and the resources of a TrainJob."""

from __future__ import annotations

import copy

import msgspec
import pytest

from shoal.training.framework import make_info
from shoal.training.framework.resources import written
from tests.training.builders import (
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    a_trainer,
    an_initializer,
    container_of,
    job_set_of,
)

COUNTS = {
    "parallelism": (a_job("other", job={"parallelism": 3}), None, 3),
    "nothing said": (a_job("other"), None, 1),
    "never none": (a_job("other", job={"parallelism": 0}), None, 1),
    "the policy, for those that train": (a_trainer(job={"parallelism": 3}), {"numNodes": 2}, 2),
    "a policy without a number": (a_trainer(job={"parallelism": 3}), {}, 1),
    "parallelism, where there is no policy": (a_trainer(job={"parallelism": 3}), None, 3),
    "not the policy, for others": (a_job("other", job={"parallelism": 3}), {"numNodes": 2}, 3),
}


@pytest.mark.parametrize(("job", "policy", "expected"), COUNTS.values(), ids=COUNTS)
def test_how_many_pods_there_are(job: dict[str, object], policy: dict[str, object] | None, expected: int) -> None:
    [pods] = make_info(a_train_job(), a_runtime(job, ml=policy)).pod_sets
    assert pods.count == expected


def test_resources_of_the_train_job_are_laid_over_the_runtimes() -> None:
    node = a_container(resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 2}})
    own = {"requests": {"cpu": 2.0}, "limits": {"memory": "4Gi"}}
    job = a_train_job(trainer={"resourcesPerNode": own})
    runtime = a_runtime(a_trainer(node, a_container("side")), ml={"torch": {}})
    made = job_set_of(job, runtime)
    assert container_of(made)["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi"},
        "limits": {"nvidia.com/gpu": 2, "memory": "4Gi"},
    }
    assert "resources" not in container_of(made, name="side")
    assert written(make_info(job, runtime).pod_sets[0].requests) == {"cpu": "2", "memory": "1Gi"}


def test_resources_count_also_without_a_policy() -> None:
    job = a_train_job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})
    assert container_of(job_set_of(job, a_runtime()))["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_claims_of_the_train_job_take_the_place_of_the_runtimes() -> None:
    node = a_container(resources={"claims": [{"name": "old"}]})
    runtime = a_runtime(a_trainer(node))
    kept = a_train_job(trainer={"resourcesPerNode": {"requests": {"cpu": "1"}}})
    assert container_of(job_set_of(kept, runtime))["resources"]["claims"] == [{"name": "old"}]
    own = a_train_job(trainer={"resourcesPerNode": {"claims": [{"name": "new"}]}})
    assert container_of(job_set_of(own, runtime))["resources"]["claims"] == [{"name": "new"}]


def test_where_the_launcher_trains_the_workers_get_the_resources_too() -> None:
    job = a_train_job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}})
    jobs = (a_job("node"), a_job("launcher", ancestor="trainer"))
    both = job_set_of(job, a_runtime(*jobs, ml={"mpi": {"runLauncherAsNode": True}}))
    assert [container_of(both, name)["resources"]["limits"] for name in ("node", "launcher")] == [
        {"nvidia.com/gpu": "8"}
    ] * 2
    launcher_alone = job_set_of(job, a_runtime(*jobs, ml={"mpi": {}}))
    assert "resources" not in container_of(launcher_alone, "node")


def test_patches_come_before_pods_are_read() -> None:
    patch = {
        "manager": "acme.io/tuner",
        "trainingRuntimeSpec": {
            "template": {
                "metadata": {"labels": {"team": "x"}},
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {"spec": {"template": {"spec": {"nodeSelector": {"pool": "fast"}}}}},
                        }
                    ]
                },
            }
        },
    }
    job = a_train_job(runtimePatches=[patch], labels={"mine": "stays-here"})
    made = job_set_of(job, a_runtime(metadata={"labels": {"runtime": "y"}}))
    assert made["metadata"] == {"labels": {"runtime": "y", "team": "x"}}
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"pool": "fast"}


def test_nothing_that_is_read_is_changed() -> None:
    trainer = {"numNodes": 2, "env": [{"name": "A", "value": "1"}], "command": ["tune", "run"], "args": ["a=b"]}
    job = a_train_job(
        runtime="torchtune-llama3.2-1b", trainer=trainer, initializer={"dataset": {"storageUri": "hf://x"}}
    )
    runtime = a_runtime(an_initializer("dataset"), a_trainer(), ml={"torch": {}}, gang={"kai": {}})
    before = copy.deepcopy((msgspec.to_builtins(job), msgspec.to_builtins(runtime)))
    assert job_set_of(job, runtime)
    assert (msgspec.to_builtins(job), msgspec.to_builtins(runtime)) == before
