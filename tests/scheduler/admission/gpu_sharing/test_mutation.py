"""How a pod that shares a GPU is prepared."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.scheduler.admission.gpu_sharing.mutation import prepared, random_text
from shoal.scheduler.admission.gpu_sharing.settings import GpuSharingSettings
from tests.support.builders.pods import pod_manifest

SETTINGS = GpuSharingSettings(is_enabled=True)


def sharing_pod_manifest(annotations: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A pod of two containers, after one that ends before them, that asks for half a GPU."""
    main = {"name": "main", "env": [{"name": "A", "value": "1"}]}
    return pod_manifest(
        annotations={"gpu-fraction": "0.5"} | (annotations or {}),
        metadata=metadata,
        containers=[main, "side"],
        init=["warm"],
    )


def done(pod: dict[str, Any], settings: GpuSharingSettings = SETTINGS) -> dict[str, Any]:
    before = copy.deepcopy(pod)
    found = prepared(pod, settings, lambda: "abcdefg")
    assert pod == before, "what was given is left as it was"
    return found


def variables(container: dict[str, Any]) -> list[str]:
    return [variable["name"] for variable in container.get("env") or ()]


def test_the_first_container_reads_both_maps() -> None:
    pod = done(sharing_pod_manifest())
    [main, side] = pod["spec"]["containers"]
    assert pod["metadata"]["annotations"]["runai/shared-gpu-configmap"] == "web-abcdefg-shared-gpu"
    assert variables(main) == ["A", "NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS", "GPU_PORTION"]
    reference = {"name": "web-abcdefg-shared-gpu-0", "key": "GPU_PORTION"}
    assert main["env"][-1]["valueFrom"] == {"configMapKeyRef": reference}
    assert main["envFrom"] == [{"configMapRef": {"name": "web-abcdefg-shared-gpu-0-evar", "optional": False}}]
    assert side == {"name": "side", "image": "i"}
    assert pod["spec"]["volumes"] == [
        {"name": "web-abcdefg-shared-gpu-0-vol", "configMap": {"name": "web-abcdefg-shared-gpu-0"}}
    ]
    assert pod["spec"]["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize(
    ("name", "field", "number", "mark"), [("side", "containers", 1, "1"), ("warm", "initContainers", 0, "i0")]
)
def test_another_container_reads_them_where_it_is_named(name: str, field: str, number: int, mark: str) -> None:
    pod = done(sharing_pod_manifest({"gpu-fraction-container-name": name}))
    assert "GPU_PORTION" in variables(pod["spec"][field][number])
    assert variables(pod["spec"]["containers"][0]) == ["A"]
    assert pod["spec"]["volumes"][0]["configMap"]["name"] == f"web-abcdefg-shared-gpu-{mark}"


def test_what_the_pod_says_about_these_variables_itself_does_not_count() -> None:
    pod = sharing_pod_manifest()
    pod["spec"]["containers"][0]["env"].append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"})
    [main, _] = done(pod)["spec"]["containers"]
    assert variables(main).count("NVIDIA_VISIBLE_DEVICES") == 1
    assert "value" not in main["env"][1]


def test_a_second_call_changes_nothing() -> None:
    once = done(sharing_pod_manifest())
    assert prepared(once, SETTINGS, lambda: "another") == once


@pytest.mark.parametrize(
    ("metadata", "prefix"),
    [
        pytest.param({}, "web-", id="the pod"),
        pytest.param({"ownerReferences": [{"name": "job"}]}, "job-", id="its owner"),
        pytest.param({"name": "", "generateName": "web-"}, "web-", id="what its name will begin with"),
        pytest.param({"name": "web.site"}, "web-site-", id="no dots in the name of a volume"),
        pytest.param({"name": "x" * 200}, "x" * 20, id="a long name is cut"),
        pytest.param({"name": ""}, "pod-", id="no name at all"),
    ],
)
def test_the_maps_are_named_after_the_pod_or_its_owner(metadata: dict[str, Any], prefix: str) -> None:
    pod = done(sharing_pod_manifest(**metadata))
    assert pod["metadata"]["annotations"]["runai/shared-gpu-configmap"].startswith(prefix)
    [volume] = pod["spec"]["volumes"]
    assert len(volume["name"]) <= 63
    assert not volume["name"].startswith("-")


def test_a_pod_that_shares_nothing_is_left_alone() -> None:
    pod = sharing_pod_manifest()
    del pod["metadata"]["annotations"]["gpu-fraction"]
    assert done(pod) == pod


@pytest.mark.parametrize(
    ("settings", "own", "expected"),
    [
        (SETTINGS, "kata", "kata"),
        (GpuSharingSettings(is_enabled=True, runtime_class=""), None, None),
        (GpuSharingSettings(is_enabled=True, runtime_class="gpu"), None, "gpu"),
    ],
    ids=["its own", "none is wanted", "another"],
)
def test_the_runtime_class_is_the_pods_own_or_the_one_that_is_set(
    settings: GpuSharingSettings, own: str | None, expected: str | None
) -> None:
    pod = sharing_pod_manifest()
    if own:
        pod["spec"]["runtimeClassName"] = own
    assert done(pod, settings)["spec"].get("runtimeClassName") == expected


def test_random_texts_differ_and_are_fit_for_names() -> None:
    found = {random_text() for _ in range(100)}
    assert len(found) > 90
    assert all(text.isalnum() and text == text.lower() for text in found)
    assert {len(text) for text in found} == {7}
