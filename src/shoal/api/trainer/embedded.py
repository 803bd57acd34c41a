"""The types of Kubernetes' own that Trainer's kinds embed, read as plain JSON values."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from shoal.api.crd import KubernetesType, field_schema
from shoal.api.meta import Wire


class TemplateMetadata(Wire, frozen=True, kw_only=True):
    """The metadata of a template. Of it, only labels and annotations reach what is made from it."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []


TEMPLATE_METADATA = KubernetesType("meta.v1.ObjectMeta", has_metadata=True)
"""Its schema."""

EnvVar: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.EnvVar"))]
LocalReference: TypeAlias = Annotated[
    dict[str, Any], field_schema(shape=KubernetesType("core.v1.LocalObjectReference"))
]
SchedulingGate: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.PodSchedulingGate"))]
Toleration: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.Toleration"))]
Volume: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.Volume", has_metadata=True))]
VolumeMount: TypeAlias = Annotated[dict[str, Any], field_schema(shape=KubernetesType("core.v1.VolumeMount"))]

Environment: TypeAlias = Annotated[list[EnvVar], field_schema(list_type="map", list_map_keys=["name"], max_items=128)]
