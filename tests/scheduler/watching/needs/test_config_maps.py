"""The ConfigMaps that a pod cannot start without."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.watching.needs.config_maps import config_map_problem, required_config_maps
from tests.scheduler.needed_objects import a_user

MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def of_volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}], "containers": [{"name": "main", **MOUNT}]}


def of_container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", **fields}]}


def variable(**reference: Any) -> dict[str, Any]:
    return of_container(env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"key": "x", **reference}}}])


PARTS = [{"configMap": {"name": "a"}}, {"configMap": {"name": "b", "optional": True}}, {"secret": {"name": "s"}}]


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        pytest.param(of_container(), (), id="nothing"),
        pytest.param(of_volume(configMap={"name": "a"}), ("a",), id="a volume"),
        pytest.param(of_volume(configMap={"name": "a", "optional": True}), (), id="a volume that may be missing"),
        pytest.param({"volumes": [{"name": "v", "configMap": {"name": "a"}}]}, (), id="a volume that nobody mounts"),
        pytest.param(of_volume(projected={"sources": PARTS}), ("a",), id="a part of a volume"),
        pytest.param(
            of_volume(projected={"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}),
            (),
            id="what the cluster puts everywhere",
        ),
        pytest.param(variable(name="a"), ("a",), id="a variable"),
        pytest.param(variable(name="a", optional=True), (), id="a variable that may be missing"),
        pytest.param(of_container(env=[{"name": "X", "value": "y"}]), (), id="a plain variable"),
        pytest.param(of_container(envFrom=[{"configMapRef": {"name": "a"}}]), ("a",), id="all of a ConfigMap"),
        pytest.param(of_container(envFrom=[{"secretRef": {"name": "s"}}]), (), id="all of a Secret"),
        pytest.param(
            {"initContainers": [{"name": "first", "envFrom": [{"configMapRef": {"name": "b"}}]}], **variable(name="a")},
            ("a", "b"),
            id="of init containers too",
        ),
    ],
)
def test_a_pod_requires_config_maps(spec: dict[str, Any], required: tuple[str, ...]) -> None:
    assert required_config_maps(a_user(**{"containers": [{"name": "main"}], **spec})) == required


def test_those_that_sharing_a_gpu_makes_are_not_waited_for() -> None:
    spec = of_container(envFrom=[{"configMapRef": {"name": "web-abc-shared-gpu-0"}}, {"configMapRef": {"name": "a"}}])
    pod = a_user(**spec)
    pod.metadata.annotations["runai/shared-gpu-configmap"] = "web-abc-shared-gpu"
    assert required_config_maps(pod) == ("a",)


def test_what_is_missing_is_named() -> None:
    assert config_map_problem(()) == ""
    assert config_map_problem(("a",)) == "ConfigMap a does not exist"
    assert config_map_problem(("a", "b")) == "ConfigMaps a, b do not exist"
