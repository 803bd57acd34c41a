"""Jobs as they are shown, and in which state they are."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from shoal.api.visualizer import Amounts, JobView, TaskStatus
from shoal.visualizer.shapes.jobs import TaskEncoder, encoded_head, job_status
from tests.visualizer.builders import GIB, a_job_view, a_task_view

S = TaskStatus
STATES: dict[str, tuple[list[TaskStatus], str]] = {
    "one runs": ([S.RUNNING], "Running"),
    "one runs, another has failed": ([S.FAILED, S.RUNNING], "Running"),
    "bound": ([S.PENDING, S.BOUND], "Running"),
    "binding": ([S.BINDING], "Running"),
    "allocated": ([S.ALLOCATED], "Running"),
    "pipelined": ([S.PENDING, S.PIPELINED], "Running"),
    "on its way out": ([S.RELEASING], "Running"),
    "stuck on its way out": ([S.STUCK_IN_RELEASING], "Running"),
    "waits": ([S.PENDING, S.SUCCEEDED], "Pending"),
    "gated": ([S.GATED], "Pending"),
    "no pods yet": ([], "Pending"),
    "one is done, another has failed": ([S.FAILED, S.SUCCEEDED], "Completed"),
    "failed": ([S.FAILED], "Failed"),
    "nobody knows": ([S.UNKNOWN], "Failed"),
}


@pytest.mark.parametrize(("tasks", "expected"), STATES.values(), ids=STATES)
def test_a_job_is_in_one_of_four_states(tasks: list[TaskStatus], expected: str) -> None:
    assert job_status(a_job_view("j", *(a_task_view(f"p{i}", status) for i, status in enumerate(tasks)))) == expected


def shown(job: JobView) -> Any:
    return msgspec.json.decode(encoded_head(job) + TaskEncoder().encoded(job.tasks))


def test_a_job_is_shown_with_its_pods_and_why_it_waits() -> None:
    asked = Amounts(milli_cpu=2_000, memory=4 * GIB, gpus=0.5)
    job = a_job_view(
        "train",
        a_task_view("train-0", S.RUNNING, node="node-1", requested=asked, gpu_groups=("g-1",)),
        a_task_view("train-1", S.PENDING, requested=asked),
        priority=75,
        preemptible=False,
        waits="2 nodes have no GPU left",
        position=3,
        overall=7,
    )
    requested = {"milliCPU": 2_000, "memory": 4 * GIB, "gpu": 1, "gpus": 0.5}
    assert shown(job) == {
        "uid": "uid-team-a-train",
        "name": "train",
        "namespace": "team-a",
        "queue": "research",
        "status": "Running",
        "createTime": "2026-03-01T12:00:00Z",
        "priority": 75,
        "preemptible": False,
        "waitingReason": "2 nodes have no GPU left",
        "queuePosition": 3,
        "overallPosition": 7,
        "tasks": [
            {
                "name": "train-0",
                "status": "Running",
                "nodeName": "node-1",
                "requested": requested,
                "gpuGroups": ["g-1"],
            },
            {
                "name": "train-1",
                "status": "Pending",
                "nodeName": "",
                "requested": requested,
                "gpuGroups": [],
            },
        ],
    }


def test_a_job_without_pods_has_an_empty_list_of_them() -> None:
    assert shown(a_job_view("empty"))["tasks"] == []


@pytest.mark.parametrize(
    "created",
    [
        datetime(2026, 3, 1, 20, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=8))),
        datetime(2026, 3, 1, 12, 0, 0),
    ],
    ids=["another zone", "no zone"],
)
def test_times_are_whole_seconds_in_utc(created: datetime) -> None:
    assert shown(a_job_view("j", created=created))["createTime"] == "2026-03-01T12:00:00Z"


def test_pods_that_ask_for_different_things_are_told_apart() -> None:
    tasks = (a_task_view("a", requested=Amounts(gpus=1)), a_task_view("b", requested=Amounts(gpus=2)))
    assert [task["requested"]["gpu"] for task in shown(a_job_view("j", *tasks))["tasks"]] == [1, 2]
