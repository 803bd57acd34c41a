"""The examples of docs/gpu-sharing.md are taken by the server and by admission, and mean what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.api.core import PODS, Pod
from shoal.scheduler.admission.gpu_sharing import GpuSharingSettings
from shoal.scheduler.admission.gpu_sharing.mutation import prepared
from shoal.scheduler.admission.gpu_sharing.rules import request_problems
from shoal.scheduler.gpu_requests import GpuRequest, gpu_request_of
from tests.support.clusters.in_process import Cluster

PAGE = (Path(__file__).parents[2] / "docs" / "gpu-sharing.md").read_text()
ON = GpuSharingSettings(is_enabled=True, runtime_class="")


def examples() -> list[dict[str, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return [document for block in blocks for document in yaml.safe_load_all(block)]


def test_the_examples_ask_for_what_the_page_says() -> None:
    asked = {body["metadata"]["name"]: gpu_request_of(msgspec.convert(body, Pod)) for body in examples()}
    assert asked == {
        "notebook": GpuRequest(portion=0.5, devices=1),
        "small-model": GpuRequest(memory=8192, devices=1),
        "pipeline": GpuRequest(portion=0.25, devices=2),
    }


async def test_the_examples_are_admitted_and_taken(cluster: Cluster) -> None:
    for body in examples():
        assert list(request_problems(msgspec.convert(body, Pod), None, ON)) == []
        await cluster.make(PODS, prepared(body, ON))
    pipeline = await cluster.read(PODS, "pipeline") or {}
    [proxy, model] = pipeline["spec"]["containers"]
    assert "env" not in proxy
    assert {variable["name"] for variable in model["env"]} >= {"NVIDIA_VISIBLE_DEVICES", "GPU_PORTION"}
