"""What a container is told of its part of a GPU."""

from __future__ import annotations

import pytest

from shoal.api import kai_names as names
from shoal.api.core import Pod
from shoal.api.scheduling_run_ai import BindRequest, BindRequestSpec, ReceivedGpu
from shoal.scheduler.binding.orders import Order, Refused
from shoal.scheduler.binding.steps.sharing import config_map_names, contents, memory_limit
from tests.support.builders.nodes import a_node
from tests.support.builders.pods import a_pod


def a_sharing_pod(**annotations: str) -> Pod:
    """A pod of two containers, after one that ends before them, that was given ConfigMaps for its part of a GPU."""
    noted = {name.replace("_", "-"): value for name, value in annotations.items()}
    return a_pod(
        annotations=noted | {names.SHARED_GPU_CONFIG_MAP: "web-x-shared-gpu"},
        containers=["main", "side"],
        init=["warm"],
    )


@pytest.mark.parametrize(
    ("container", "mark"),
    [(None, "0"), ("main", "0"), ("side", "1"), ("warm", "i0")],
    ids=["the first by default", "by its name", "another", "an init container"],
)
def test_the_maps_are_those_of_the_container_that_has_the_devices(container: str | None, mark: str) -> None:
    pod = a_sharing_pod(gpu_fraction_container_name=container) if container else a_sharing_pod()
    assert config_map_names(pod) == (f"web-x-shared-gpu-{mark}", f"web-x-shared-gpu-{mark}-evar")


def test_a_container_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="names container gone"):
        config_map_names(a_sharing_pod(gpu_fraction_container_name="gone"))


def test_a_pod_that_names_no_maps_has_none() -> None:
    assert config_map_names(a_pod()) is None


@pytest.mark.parametrize(
    ("uses_cdi", "devices"),
    [(False, "GPU-1,GPU-2"), (True, "k8s.device-plugin.nvidia.com/gpu=GPU-1,k8s.device-plugin.nvidia.com/gpu=GPU-2")],
    ids=["by uuid", "as CDI names them"],
)
def test_devices_and_portion_are_told_in_the_words_that_containers_know(uses_cdi: bool, devices: str) -> None:
    request = BindRequest(spec=BindRequestSpec(received_gpu=ReceivedGpu(count=2, portion="0.25")))
    order = Order(request=request, pod=a_sharing_pod(), devices=("GPU-1", "GPU-2"))
    capabilities, direct = contents(order, uses_cdi=uses_cdi, memory_limit="10m")
    assert capabilities == {
        "NVIDIA_VISIBLE_DEVICES": devices, "GPU_PORTION": "0.25", "RUNAI_NUM_OF_GPUS": "0.25",
    }  # fmt: skip
    assert direct == {"NVIDIA_VISIBLE_DEVICES": devices, "CUDA_DEVICE_MEMORY_LIMIT": "10m"}


@pytest.mark.parametrize(
    ("asked", "memory", "limit"),
    [
        pytest.param({"gpu_memory": "4096"}, "81559", "4096m", id="what was asked for"),
        pytest.param({"gpu_fraction": "0.5"}, "81559", "40779m", id="a part of what the device has"),
        pytest.param({"gpu_fraction": "0.5"}, "", "", id="a device of unknown size"),
        pytest.param({"gpu_fraction": "0.5"}, "much", "", id="a label that is no number"),
    ],
)
def test_how_much_memory_a_container_is_held_to(asked: dict[str, str], memory: str, limit: str) -> None:
    node = a_node(labels={names.NODE_GPU_MEMORY: memory} if memory else {})
    assert memory_limit(a_sharing_pod(**asked), node) == limit
