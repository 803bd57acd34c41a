"""Nodes as they are shown, and the cluster in a few numbers."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from shoal.api.visualizer import Amounts, NodeView, TaskStatus
from shoal.visualizer.shapes.nodes import node_shape
from shoal.visualizer.shapes.summary import job_counts, node_sums, summary_shape
from tests.visualizer.builders import a_job_view, a_node_view, a_task_view, alone


def shown(node: NodeView) -> Any:
    return msgspec.json.decode(msgspec.json.encode(node_shape(node)))


def test_a_node_has_all_fields_of_the_author_s_sample_and_both_spellings() -> None:
    sample: dict[str, Any] = {
        "name": "desktop-worker",
        "status": "Ready",
        "allocatable": {"milliCPU": 28000, "memory": 33557352448, "gpu": 0},
        "used": {"milliCPU": 500, "memory": 1335885824, "gpu": 0},
        "gpuSlots": [],
    }
    node = shown(
        a_node_view(
            "desktop-worker",
            allocatable=Amounts(milli_cpu=28_000, memory=33_557_352_448),
            used=Amounts(milli_cpu=500, memory=1_335_885_824),
        )
    )
    assert {name: node[name] for name in ("name", "status", "gpuSlots")} == {
        name: sample[name] for name in ("name", "status", "gpuSlots")
    }
    assert node["allocatable"].items() >= sample["allocatable"].items()
    assert node["used"].items() >= sample["used"].items()
    assert node["resources"] == node["allocatable"]


def test_a_node_that_is_not_ready_says_so() -> None:
    assert shown(a_node_view(ready=False))["status"] == "NotReady"


def test_a_node_s_devices_model_and_extended_resources_are_shown() -> None:
    node = shown(
        a_node_view(
            gpus=1,
            gpu_model="NVIDIA-H100",
            whole_gpus=(alone("train-0"),),
            schedulable=False,
            allocatable=Amounts(milli_cpu=1, memory=1, gpus=1, extended={"rdma/hca": 4}),
        )
    )
    assert node["allocatable"]["scalarResources"] == {"rdma/hca": 4}
    assert "scalarResources" not in node["used"]
    assert (node["gpuModel"], node["schedulable"]) == ("NVIDIA-H100", False)
    assert node["gpuSlots"] == [
        {
            "id": 0,
            "occupiedBy": "train-0",
            "fragmented": False,
            "used": 1.0,
            "occupants": [{"namespace": "a", "name": "train-0", "portion": 1.0}],
        }
    ]


def test_fractions_are_added_before_they_are_rounded() -> None:
    nodes = [a_node_view(f"n{i}", gpus=2, used=Amounts(gpus=0.4), ready=i > 0) for i in range(5)]
    counts = {"Running": 1, "Pending": 2}
    summary = msgspec.to_builtins(summary_shape(node_sums(nodes), 7, counts))
    assert summary == {
        "totalNodes": 5,
        "healthyNodes": 4,
        "totalGPUs": 10,
        "allocatedGPUs": 2,
        "totalQueues": 7,
        "jobCounts": {"Pending": 2, "Running": 1},
        "gpus": {"total": 10.0, "allocated": 2.0},
    }


def test_an_empty_cluster_is_all_zeroes() -> None:
    summary = msgspec.to_builtins(summary_shape(node_sums([]), 0, job_counts({})))
    assert summary == {
        "totalNodes": 0,
        "healthyNodes": 0,
        "totalGPUs": 0,
        "allocatedGPUs": 0,
        "totalQueues": 0,
        "jobCounts": {},
        "gpus": {"total": 0.0, "allocated": 0.0},
    }


def test_jobs_are_counted_by_their_state() -> None:
    jobs = [a_job_view("a", a_task_view("p")), a_job_view("b", a_task_view("p", TaskStatus.PENDING)), a_job_view("c")]
    assert job_counts({job.uid: job for job in jobs}) == {"Running": 1, "Pending": 2}


statuses = some.sampled_from(TaskStatus)
clusters = some.dictionaries(some.sampled_from("abcdef"), statuses)


@given(before=clusters, after=clusters)
def test_counting_on_is_the_same_as_counting_anew(before: dict[str, TaskStatus], after: dict[str, TaskStatus]) -> None:
    old = {name: a_job_view(name, a_task_view("p", status)) for name, status in before.items()}
    new = {
        name: old[name] if before.get(name) is status else a_job_view(name, a_task_view("p", status))
        for name, status in after.items()
    }
    assert job_counts(new, old, job_counts(old)) == job_counts(new)
