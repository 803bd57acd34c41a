"""GPUs as NVML tells of them: through a library of the same interface, since there may be no GPU here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from shoal.cluster.node.process.machine.nvml import Gpu, gpu_labels, read_gpus
from shoal.cluster.node.simulated.models import MODELS


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler for a library that stands for NVML")
    made = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    return str(made)


def test_gpus_are_found_and_one_that_is_lost_is_left_out(library: str) -> None:
    assert read_gpus(library) == [
        Gpu(uuid=f"GPU-0000000{index}-1111-2222-3333-444444444444", index=index, minor=7 - index,
            product="NVIDIA H100 80GB HBM3", memory_bytes=81559 << 20)
        for index in (0, 2)
    ]  # fmt: skip


@pytest.mark.parametrize("code", ["9", "999"], ids=["no driver", "broken"])
def test_a_library_without_a_driver_has_no_gpus(library: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVML_CODE", code)
    assert read_gpus(library) == []


def test_a_machine_without_the_library_has_no_gpus() -> None:
    assert read_gpus("libnvidia-ml-that-is-not-there.so.1") == []


def test_labels_are_those_of_simulated_nodes_with_the_same_gpus(library: str) -> None:
    model = MODELS["H100"]
    assert gpu_labels(read_gpus(library)) == {
        "nvidia.com/gpu.product": model.product,
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.memory": str(model.memory_mib),
    }
    assert gpu_labels([]) == {}
