"""Containers that share a GPU see the one that they were told of; those that share none see none."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.api.core import CONFIG_MAPS
from shoal.cluster.node.process.contents import NodeFacts
from shoal.cluster.node.process.contents.gpus import shared_gpus
from shoal.cluster.node.process.contents.images import Images
from shoal.cluster.node.process.contents.machine_root import Interpreter, MachineRoot
from shoal.cluster.node.process.layout import Layout
from tests.cluster.node.process.contents.conftest import ADDRESS, contents_of
from tests.support.clusters.in_process import Cluster

ONE = {"runai-gpu-group": "g"}


@pytest.mark.parametrize(
    ("labels", "devices", "expected"),
    [
        pytest.param(ONE, "GPU-1", ["GPU-1"], id="one"),
        pytest.param({"runai-gpu-group/a": "a", "runai-gpu-group/b": "b"}, "GPU-1,GPU-2", ["GPU-1", "GPU-2"], id="two"),
        pytest.param(ONE, "all", [], id="all is not for anybody"),
        pytest.param(ONE, "", [], id="nothing"),
        pytest.param({"app": "web"}, "GPU-1", [], id="who shares nothing chooses nothing"),
    ],
)
def test_which_gpus_a_container_has_a_part_of(labels: dict[str, str], devices: str, expected: list[str]) -> None:
    assert shared_gpus(labels, {"NVIDIA_VISIBLE_DEVICES": devices}) == expected


async def test_a_container_that_shares_gets_the_files_of_its_gpu(cluster: Cluster, tmp_path: Path) -> None:
    def files(gpus: Sequence[str]) -> list[str]:
        return [f"/dev/{gpu.lower()}" for gpu in gpus]

    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"NVIDIA_VISIBLE_DEVICES": "GPU-7"}})
    async with contents_of(cluster, tmp_path / "data", NodeFacts(has_gpus=True), gpu_files=files) as node:
        container = {"name": "main", "image": "busybox", "envFrom": [{"configMapRef": {"name": "m"}}]}
        pod = await node.add_pod(metadata={"labels": ONE}, containers=[container])
        found = await node.contents.container(pod, pod.spec.containers[0], attempt=0, address=ADDRESS)
    assert found.devices == ["/dev/gpu-7"]
    assert "CUDA_VISIBLE_DEVICES=GPU-7" in found.env


def test_the_program_of_reservations_is_there_under_the_name_of_its_image(tmp_path: Path) -> None:
    image = Images(tmp_path / "images.yaml").image("example.com/kai/resource-reservation:v1")
    machine = MachineRoot(Layout(tmp_path), Interpreter.ours(), [], has_namespaces=False)
    machine.prepare()
    program = Path(machine.path().split(":")[-1]) / image.entrypoint[0]
    environ = {"NVIDIA_VISIBLE_DEVICES": "a,b"}
    done = subprocess.run([str(program)], capture_output=True, text=True, cwd="/", env=environ, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (1, "one GPU is to be reserved, and the container sees 2")
