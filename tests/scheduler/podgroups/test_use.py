"""What one pod adds to the figures of its gang."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.podgroups.use import depends_on_node, pod_use, what_counts
from shoal.scheduler.resource_lists import written
from tests.scheduler.podgroups.builders import FRACTION, a_gang_pod, scheduled

CPU = {"cpu": "500m", "memory": "1Gi"}
STATES = {
    "waiting": ({"phase": "Pending"}, True, False),
    "refused so far": (
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}, True, False
    ),
    "with a node": (scheduled(), True, True),
    "running": ({"phase": "Running"}, True, True),
    "succeeded": (scheduled("Succeeded"), False, False),
    "failed": (scheduled("Failed"), False, False),
    "unknown": (scheduled("Unknown"), False, False),
}  # fmt: skip


@pytest.mark.parametrize(("status", "asks", "holds"), STATES.values(), ids=STATES)
def test_a_pod_asks_until_it_ends_and_holds_from_when_it_has_a_node(
    status: dict[str, Any], asks: bool, holds: bool
) -> None:
    use = pod_use(a_gang_pod(requests=CPU, status=status), None)
    assert written(use.requested) == (CPU if asks else {})
    assert written(use.allocated) == (CPU if holds else {})


GPUS: dict[str, tuple[dict[str, Any], dict[str, str], int | None, dict[str, str], dict[str, str]]] = {
    "whole": ({"nvidia.com/gpu": 2}, {}, None, {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "2"}),
    "MIG": ({"nvidia.com/mig-1g.5gb": 1}, {}, None, {"nvidia.com/mig-1g.5gb": "1"}, {"nvidia.com/mig-1g.5gb": "1"}),
    "a part": ({}, {"gpu-fraction": "0.3", **FRACTION}, None, {"nvidia.com/gpu": "300m"}, {"nvidia.com/gpu": "300m"}),
    "a part of several": (
        {},
        {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3", **FRACTION},
        None,
        {"nvidia.com/gpu": "1500m"},
        {"nvidia.com/gpu": "1500m"},
    ),
    "memory": (
        {},
        {"gpu-memory": "4000", **FRACTION},
        16000,
        {"run.ai/gpu.memory": "4k"},
        {"nvidia.com/gpu": "250m"},
    ),
    "memory is a whole number of hundredths": (
        {},
        {"gpu-memory": "1000", "gpu-fraction-num-devices": "2", **FRACTION},
        30000,
        {"run.ai/gpu.memory": "2k"},
        {"nvidia.com/gpu": "80m"},
    ),
    "memory on a node that says nothing": (
        {},
        {"gpu-memory": "4000", **FRACTION},
        None,
        {"run.ai/gpu.memory": "4k"},
        {},
    ),
    "a part that nobody gave": ({}, {"gpu-fraction": "0.3"}, None, {"nvidia.com/gpu": "300m"}, {}),
    "a part that is none": ({"cpu": "1"}, {"gpu-fraction": "half", **FRACTION}, None, {"cpu": "1"}, {"cpu": "1"}),
}


@pytest.mark.parametrize(("requests", "annotations", "memory", "asked", "held"), GPUS.values(), ids=GPUS)
def test_gpus_are_counted_in_devices(
    requests: dict[str, Any],
    annotations: dict[str, str],
    memory: int | None,
    asked: dict[str, str],
    held: dict[str, str],
) -> None:
    pod = a_gang_pod(requests=requests, annotations=annotations, phase="Running")
    use = pod_use(pod, memory)
    assert written(use.requested) == asked
    assert written(use.allocated) == held


def test_only_memory_depends_on_the_node() -> None:
    assert depends_on_node(a_gang_pod(annotations={"gpu-memory": "4000"}))
    assert not depends_on_node(a_gang_pod(annotations={"gpu-fraction": "0.5"}))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_gang_pod(requests=CPU, phase="Running"), id="phase"),
        pytest.param(a_gang_pod(requests=CPU, status=scheduled()), id="has a node"),
        pytest.param(a_gang_pod(requests=CPU, node="n"), id="which node"),
        pytest.param(a_gang_pod(requests={"cpu": "2"}), id="size"),
        pytest.param(a_gang_pod(requests=CPU, gang="other"), id="gang"),
        pytest.param(a_gang_pod(requests=CPU, annotations={"gpu-fraction": "0.5"}), id="part of a GPU"),
        pytest.param(a_gang_pod(requests=CPU, annotations=FRACTION), id="what was given"),
    ],
)
def test_what_counts_is_all_that_use_depends_on(other: Any) -> None:
    assert what_counts(other) != what_counts(a_gang_pod(requests=CPU))


def test_other_things_do_not_count() -> None:
    plain = a_gang_pod(requests=CPU)
    noisy = a_gang_pod(
        requests=CPU, annotations={"note": "x"}, conditions={"Ready": "True"}, status={"podIP": "10.0.0.1"}
    )
    assert what_counts(noisy) == what_counts(plain)
