"""What pods may ask of GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core.pods import Pod
from shoal.scheduler.admission.gpu_sharing.rules import device_problems, request_problems
from shoal.scheduler.admission.gpu_sharing.settings import GpuSharingSettings
from tests.scheduler.builders import a_kai_pod

HALF = {"gpu-fraction": "0.5"}
SHARED, WHOLE = GpuSharingSettings(is_enabled=True), GpuSharingSettings(is_enabled=False)


@pytest.mark.parametrize(
    ("settings", "pod", "field"),
    [
        pytest.param(WHOLE, a_kai_pod(), None, id="no GPU"),
        pytest.param(WHOLE, a_kai_pod(gpus=2), None, id="whole GPUs where none are shared"),
        pytest.param(WHOLE, a_kai_pod(annotations=HALF), "gpu-fraction", id="a part where none are shared"),
        pytest.param(
            WHOLE, a_kai_pod(annotations={"gpu-memory": "10"}), "gpu-memory", id="memory where none are shared"
        ),
        pytest.param(SHARED, a_kai_pod(gpus=2), None, id="whole GPUs"),
        pytest.param(SHARED, a_kai_pod(annotations=HALF), None, id="a part"),
        pytest.param(SHARED, a_kai_pod(annotations={"gpu-memory": "10"}), None, id="memory"),
        pytest.param(SHARED, a_kai_pod(annotations={"gpu-fraction": "2"}), "gpu-fraction", id="more than a GPU"),
        pytest.param(SHARED, a_kai_pod(annotations=HALF, gpus=1), "gpu-fraction", id="a part beside a whole one"),
        pytest.param(SHARED, a_kai_pod(annotations={"mps": "true"}, gpus=1), "mps", id="MPS without a part"),
        pytest.param(
            SHARED,
            a_kai_pod(annotations={"gpu-fraction-num-devices": "2"}),
            "gpu-fraction-num-devices",
            id="parts of what",
        ),
        pytest.param(
            SHARED,
            a_kai_pod(annotations={"gpu-fraction": "0.5", "gpu-fraction-container-name": "warm"}, init=["warm"]),
            None,
            id="an init container",
        ),
        pytest.param(
            SHARED,
            a_kai_pod(annotations={"gpu-fraction": "0.5", "gpu-fraction-container-name": "gone"}),
            "gpu-fraction-container-name",
            id="a container that is not there",
        ),
    ],
)
def test_what_a_new_pod_may_ask_for(settings: GpuSharingSettings, pod: Pod, field: str | None) -> None:
    found = [problem.path for problem in request_problems(pod, None, settings)]
    assert found == ([] if field is None else [f"metadata.annotations[{field}]"])


def test_a_pod_that_was_there_before_the_rule_can_still_be_changed_otherwise() -> None:
    old = a_kai_pod(annotations={"gpu-fraction": "2", "note": "a"})
    assert list(request_problems(a_kai_pod(annotations={"gpu-fraction": "2", "note": "b"}), old, SHARED)) == []
    assert list(request_problems(a_kai_pod(annotations={"gpu-fraction": "3"}), old, SHARED)) != []


def with_variable(variable: dict[str, Any], field: str = "containers") -> dict[str, Any]:
    return {
        "metadata": {"annotations": {"runai/shared-gpu-configmap": "web-x-shared-gpu"}},
        "spec": {"containers": [{"name": "main"}], field: [{"name": "main", "env": [{"name": "A"}, variable]}]},
    }


def reading(name: str, key: str = "NVIDIA_VISIBLE_DEVICES") -> dict[str, Any]:
    return {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        pytest.param(with_variable({"name": "B", "value": "all"}), None, id="another variable"),
        pytest.param(with_variable({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}), None, id="void"),
        pytest.param(with_variable({"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}), None, id="none"),
        pytest.param(
            with_variable({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}), "spec.containers[0].env[1]", id="all"
        ),
        pytest.param(with_variable({"name": "NVIDIA_VISIBLE_DEVICES"}), "spec.containers[0].env[1]", id="empty is all"),
        pytest.param(
            with_variable({"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}, "initContainers"),
            "spec.initContainers[0].env[1]",
            id="in an init container",
        ),
        pytest.param(with_variable(reading("web-x-shared-gpu-0")), None, id="what admission itself has written"),
        pytest.param(with_variable(reading("mine")), "spec.containers[0].env[1]", id="from a map of its own"),
        pytest.param(with_variable(reading("web-x-shared-gpu-0", "X")), "spec.containers[0].env[1]", id="another key"),
        pytest.param({"metadata": {}, "spec": {}}, None, id="nothing at all"),
    ],
)
def test_devices_are_not_chosen_by_pods(pod: dict[str, Any], path: str | None) -> None:
    assert [problem.path for problem in device_problems(pod)] == ([] if path is None else [path])
