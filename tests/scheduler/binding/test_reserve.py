"""The program in a reservation: it finds the one device that it was given, and notes it on its pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.scheduler.binding.reserve import account_folder, driver_devices, note_device, reserve, visible_devices
from tests.scheduler.binding.stage import Stage
from tests.support.clusters.in_process import Cluster


@pytest.mark.parametrize(
    ("environ", "devices"),
    [
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, ["GPU-1"], id="what the runtime reads"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-2"}, ["GPU-2"], id="what CUDA reads"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": "GPU-2"}, ["GPU-2"], id="not void"),
        pytest.param(
            {"NVIDIA_VISIBLE_DEVICES": "k8s.device-plugin.nvidia.com/gpu=GPU-3"}, ["GPU-3"], id="as CDI names it"
        ),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"}, ["GPU-1", "GPU-2"], id="two"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "all"}, [], id="all is no device"),
        pytest.param({}, [], id="none"),
    ],
)
def test_the_variables_of_a_container_name_its_devices(environ: dict[str, str], devices: list[str]) -> None:
    assert visible_devices(environ) == devices


def test_the_driver_is_asked_where_the_variables_say_nothing(tmp_path: Path) -> None:
    for place, uuid in (("0000:02:00.0", "GPU-b"), ("0000:01:00.0", "GPU-a")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "information").write_text(f"Model: \t\t NVIDIA H100\nGPU UUID: \t {uuid}\n")
    assert driver_devices(tmp_path) == ["GPU-a", "GPU-b"]
    assert driver_devices(tmp_path / "missing") == []


async def test_the_device_is_noted_where_the_binder_looks_for_it(cluster: Cluster) -> None:
    await Stage(cluster).add_pod("reservation")
    await note_device(cluster.client, "reservation", "default", "GPU-7")
    found = await cluster.read(PODS, "reservation") or {}
    assert found["metadata"]["annotations"][names.RESERVED_GPU_INDEX] == "GPU-7"


@pytest.mark.parametrize(
    ("environ", "code", "said"),
    [
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "a,b"}, 1, "sees 2", id="more than one device"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "a"}, 2, "POD_NAME", id="not in a pod"),
        pytest.param(
            {"NVIDIA_VISIBLE_DEVICES": "a", "POD_NAME": "p", "POD_NAMESPACE": "n"},
            2,
            "cannot be noted on pod n/p",
            id="without an account",
        ),
    ],
)
def test_what_is_missing_is_said(
    environ: dict[str, str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reserve(environ) == code
    assert said in capsys.readouterr().err


def test_a_node_may_say_where_the_account_is() -> None:
    assert account_folder({"SHOAL_VOLUME_KUBE_API_ACCESS_X1B2C": "/data/account"}) == Path("/data/account")
    assert account_folder({}) == Path("/var/run/secrets/kubernetes.io/serviceaccount")
