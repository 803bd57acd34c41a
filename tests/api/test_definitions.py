"""What holds for every kind that Shoal defines, its own and those that it writes for others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.crd import CustomResource, KubernetesType, object_schema
from shoal.api.definitions import ALL, DIALECTS
from tests.support.schemas.examples import example_of
from tests.support.schemas.structural import structural_problems

each_definition = pytest.mark.parametrize(
    "definition", [pytest.param(each, id=each.name) for each in (*ALL, *DIALECTS)]
)

EMBEDDED = [
    KubernetesType(name, has_metadata=has_metadata).schema()["properties"]
    for has_metadata, names in (
        (
            False,
            (
                "autoscaling.v2.MetricSpec",
                "core.v1.Affinity",
                "core.v1.EnvVar",
                "core.v1.LocalObjectReference",
                "core.v1.PersistentVolumeClaimSpec",
                "core.v1.PodSchedulingGate",
                "core.v1.PodSecurityContext",
                "core.v1.PodSpec",
                "core.v1.ResourceRequirements",
                "core.v1.SecurityContext",
                "core.v1.Toleration",
                "core.v1.VolumeMount",
                "resource.v1.ResourceClaimTemplateSpec",
            ),
        ),
        (True, ("core.v1.PodTemplateSpec", "core.v1.Volume")),
    )
    for name in names
]
"""Schemas of Kubernetes' own, which come without prose."""

LEAST: dict[str, dict[str, Any]] = {
    "clustertopologybindings.grove.io": {"spec": {"levels": []}},
    "optimizationjobs.trainer.kubeflow.org": {
        "spec": {"objectives": [], "parameters": [], "trainJobTemplate": {"spec": {}}}
    },
    "podcliquesets.grove.io": {"spec": {"template": {"cliques": []}}},
    "topologies.kai.scheduler": {"spec": {"levels": []}},
}
"""What objects of a kind cannot do without; all others can be empty."""


@each_definition
def test_the_schema_is_structural(definition: CustomResource) -> None:
    for version in definition.manifest()["spec"]["versions"]:
        assert list(structural_problems(version["schema"]["openAPIV3Schema"])) == []


@each_definition
def test_every_field_is_described(definition: CustomResource) -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        fields = schema.get("properties", {})
        if any(fields is embedded for embedded in EMBEDDED):
            return []
        inner = [(f"{path}.{name}", field) for name, field in fields.items() if name != "metadata"]
        found = [where for where, field in inner if not field.get("description")]
        if "items" in schema:
            inner.append((f"{path}[]", schema["items"]))
        return found + [name for where, child in inner for name in undescribed(child, where)]

    for version in definition.manifest()["spec"]["versions"]:
        assert undescribed(version["schema"]["openAPIV3Schema"], version["name"]) == []


@each_definition
def test_an_object_with_every_field_of_the_schema_loses_none(definition: CustomResource) -> None:
    for version in definition.versions:
        whole = example_of(object_schema(version.resource.type))
        whole["metadata"] = {"name": "a", "labels": {"a": "b"}}
        decoded = version.resource.decode(msgspec.json.encode(whole))
        assert msgspec.json.decode(msgspec.json.encode(decoded)) == whole


@each_definition
def test_an_object_of_nothing_but_what_is_required_is_read(definition: CustomResource) -> None:
    least = LEAST.get(definition.name, {})
    assert definition.resource.decode(msgspec.json.encode(least)).metadata.name == ""


def test_kinds_of_others_are_apart_from_our_own() -> None:
    own, others = ({definition.name for definition in each} for each in (ALL, DIALECTS))
    assert not own & others
    assert others == {
        "computedomains.resource.nvidia.com",
        "podgroups.scheduling.sigs.k8s.io",
        "podgroups.scheduling.volcano.sh",
        "queues.scheduling.volcano.sh",
    }
