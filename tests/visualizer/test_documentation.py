"""The examples of docs/visualizer.md are what the routes say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api.visualizer import UNLIMITED, Amounts, Bounds, ClusterView, TaskStatus, Weights
from tests.visualizer.builders import a_job_view, a_node_view, a_queue_view, a_task_view, a_view, alone, shared
from tests.visualizer.conftest import Visualizer

PAGE = Path(__file__).parents[2] / "docs" / "visualizer.md"


def documented(title: str) -> Any:
    section = PAGE.read_text().split(f"\n## {title.capitalize()}\n")[1].split("\n## ")[0]
    found = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert found, f"no example of {title}"
    return msgspec.json.decode(found[1])


def the_view() -> ClusterView:
    room = Amounts(milli_cpu=16_000, memory=64e9, gpus=2)
    have = Amounts(milli_cpu=6_000, memory=12e9, gpus=1.5)
    return a_view(
        nodes=[
            a_node_view(
                "node-1",
                gpus=2,
                gpu_model="NVIDIA-H100",
                allocatable=room,
                used=have,
                shared_gpus=(shared("6b1f", "train-1"),),
                whole_gpus=(alone("train-0"),),
            ),
            a_node_view("node-2", gpus=2, gpu_model="NVIDIA-H100", allocatable=room, used=Amounts(), ready=False),
        ],
        queues=[
            a_queue_view(
                "research",
                display_name="Research",
                quota=Bounds(gpus=4),
                limit=Bounds(milli_cpu=UNLIMITED, memory=UNLIMITED, gpus=UNLIMITED),
                over_quota_weight=Weights(milli_cpu=1, memory=1, gpus=1),
                fair_share=Amounts(milli_cpu=6_000, memory=12e9, gpus=2),
                allocated=have,
                requested=Amounts(milli_cpu=8_000, memory=16e9, gpus=3.5),
            ),
        ],
        jobs=[
            a_job_view(
                "train",
                a_task_view("train-0", node="node-1", requested=Amounts(milli_cpu=4_000, memory=8e9, gpus=1)),
                a_task_view(
                    "train-1",
                    node="node-1",
                    requested=Amounts(milli_cpu=2_000, memory=4e9, gpus=0.5),
                    gpu_groups=("6b1f",),
                ),
                uid="0d2c",
            ),
            a_job_view(
                "wait",
                a_task_view("wait-0", TaskStatus.PENDING, requested=Amounts(milli_cpu=2_000, memory=4e9, gpus=2)),
                uid="7e55",
                waits="1 node has too few GPUs",
                position=1,
                overall=4,
            ),
        ],
    )


@pytest.mark.parametrize("name", ["queues", "jobs", "nodes"])
async def test_the_documented_lists_are_what_is_served(visualizer: Visualizer, name: str) -> None:
    visualizer.publish(the_view())
    said = await visualizer.get(name)
    text = said.text.replace('"namespace":"a"', '"namespace":"team-a"')  # the builders' pods on devices
    assert msgspec.json.decode(text) == documented(name)


async def test_the_documented_summary_is_what_is_served(visualizer: Visualizer) -> None:
    view = the_view()
    visualizer.publish(view.followed_by(cycle=2, at=view.at, queues=[a_queue_view("root")]))
    assert await visualizer.json("summary") == documented("summary")


async def test_every_route_and_parameter_is_documented(visualizer: Visualizer) -> None:
    text = PAGE.read_text()
    visualizer.publish(the_view())
    not_there = (await visualizer.ask("/nowhere")).text
    for route in re.findall(r"/api/v1/visualizer/(\w+)", not_there):
        assert f"| `/{route}` |" in text
