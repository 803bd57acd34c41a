"""How many GPUs are asked for in the stead of pods that wait for parts, and by which of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.core import Pod
from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.scale_adjuster.objects import asks_for, scaling_pod
from shoal.scheduler.scale_adjuster.scaling import is_needed, needed_devices, pods_to_scale_for, waits_for_part
from shoal.scheduler.scale_adjuster.settings import ScaleAdjusterSettings
from tests.scheduler.builders import a_kai_pod
from tests.support.builders.pods import a_pod

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
OURS = ("kai-scheduler",)
SETTINGS = ScaleAdjusterSettings()


def a_waiting_pod(
    name: str = "web",
    *,
    fraction: str = "0.5",
    devices: int = 1,
    memory: str = "",
    reason: str = "Unschedulable",
    age: int = 0,
    **given: Any,
) -> Pod:
    """A pod that waits for parts of GPUs."""
    annotations = {"gpu-memory": memory} if memory else {"gpu-fraction": fraction} if fraction else {}
    if devices > 1:
        annotations["gpu-fraction-num-devices"] = str(devices)
    return a_kai_pod(
        name,
        namespace="team",
        uid=name,
        annotations=annotations,
        created=NOON - timedelta(minutes=age),
        conditions=[{"type": "PodScheduled", "status": "False", "reason": reason}] if reason else [],
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        nodeSelector={"pool": "a"},
        **{"phase": "Pending", **given},
    )


@pytest.mark.parametrize(
    ("pod", "waits"),
    [
        pytest.param(a_waiting_pod(), True, id="a part"),
        pytest.param(a_waiting_pod(memory="1000"), True, id="memory"),
        pytest.param(a_waiting_pod(fraction=""), False, id="no part"),
        pytest.param(a_waiting_pod(fraction="2"), False, id="nonsense"),
        pytest.param(a_waiting_pod(reason=""), False, id="not looked at yet"),
        pytest.param(a_waiting_pod(reason="SchedulingGated"), False, id="gated"),
        pytest.param(a_waiting_pod(node="n1"), False, id="bound"),
        pytest.param(a_waiting_pod(scheduler="other"), False, id="another scheduler's"),
        pytest.param(a_waiting_pod(phase="Failed"), False, id="finished"),
    ],
)
def test_which_pods_wait_for_a_part_of_a_gpu(pod: Pod, waits: bool) -> None:
    assert waits_for_part(pod, OURS) is waits


def parts(*portions: tuple[float, int]) -> list[GpuRequest]:
    return [GpuRequest(portion=portion, devices=devices) for portion, devices in portions]


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        pytest.param([], 0, id="nobody"),
        pytest.param(parts((0.5, 1)), 1, id="one"),
        pytest.param(parts((0.5, 1), (0.5, 1)), 1, id="two halves"),
        pytest.param(parts((0.5, 1), (0.51, 1)), 2, id="a little more than one"),
        pytest.param(parts(*[(0.1, 1)] * 10), 1, id="ten tenths, exactly"),
        pytest.param(parts((0.5, 4)), 2, id="halves of four"),
        pytest.param([GpuRequest(memory=4096, devices=1)] * 11, 2, id="memory counts for a tenth"),
    ],
)
def test_parts_are_rounded_up_to_whole_gpus_together(requests: list[GpuRequest], devices: int) -> None:
    assert needed_devices(requests, memory_portion=0.1) == devices


HALVES = [a_waiting_pod("a", age=3), a_waiting_pod("b", age=2), a_waiting_pod("c", age=1)]


@pytest.mark.parametrize(
    ("waiting", "scaling", "chosen"),
    [
        pytest.param(HALVES[:1], {}, ["a"], id="the only one"),
        pytest.param(HALVES, {}, ["a", "b"], id="as many as are needed, oldest first"),
        pytest.param(HALVES, {"a": 1}, ["b"], id="one more beside the one that asked"),
        pytest.param(HALVES, {"b": 1, "c": 1}, [], id="enough are asked for"),
        pytest.param(
            [*HALVES, a_waiting_pod("four", devices=4, fraction="0.1")],
            {"a": 1, "b": 1},
            ["four"],
            id="nobody has asked for so many at once",
        ),
        pytest.param([a_waiting_pod("bad", fraction="2"), *HALVES[:1]], {}, ["a"], id="nonsense is passed over"),
    ],
)
def test_who_asks(waiting: list[Pod], scaling: dict[str, int], chosen: list[str]) -> None:
    found = pods_to_scale_for(waiting, scaling, memory_portion=0.1)
    assert [pod.metadata.name for pod in found] == chosen


@pytest.mark.parametrize(
    ("scaling", "waiting", "needed"),
    [
        pytest.param(a_waiting_pod(), a_waiting_pod(), True, id="still waiting"),
        pytest.param(a_waiting_pod(phase="Succeeded"), a_waiting_pod(), False, id="it was placed, and ended"),
        pytest.param(a_waiting_pod(), None, False, id="the other is gone"),
        pytest.param(a_waiting_pod(), a_waiting_pod(node="n1"), False, id="the other has a node"),
    ],
)
def test_when_a_pod_that_asks_is_needed(scaling: Pod, waiting: Pod | None, needed: bool) -> None:
    assert is_needed(scaling, waiting, OURS) is needed


def test_a_pod_asks_for_whole_gpus_where_the_other_could_go() -> None:
    container = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    waiting = a_waiting_pod(devices=2, containers=[container, container])
    body = scaling_pod(waiting, SETTINGS)
    [container] = body["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "2"},
        "limits": {"nvidia.com/gpu": "2"},
    }
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == ("team-web", "kai-scale-adjust")
    assert body["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert body["spec"]["nodeSelector"] == {"pool": "a"}


def test_a_long_name_fits_and_leads_back_to_its_pod() -> None:
    name = "x" * 253
    metadata = scaling_pod(a_waiting_pod(name), SETTINGS)["metadata"]
    assert len(metadata["name"]) <= 253
    assert max(map(len, metadata["labels"].values())) <= 63
    made = a_pod(labels=metadata["labels"], annotations=metadata["annotations"])
    assert asks_for(made) == ("team", name)
