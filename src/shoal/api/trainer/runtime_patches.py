"""What a TrainJob may change of its runtime, besides its own fields: parts of pods, each by a named manager.

A patch is kept as plain JSON values, because it is merged as such; the structs here say what it may hold.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

from shoal.api.crd import Int64, KubernetesType, Rule, field_schema
from shoal.api.meta import Wire
from shoal.api.trainer.embedded import (
    TEMPLATE_METADATA,
    Environment,
    LocalReference,
    SchedulingGate,
    TemplateMetadata,
    Toleration,
    Volume,
    VolumeMount,
)

IMMUTABLE = Rule("self == oldSelf", "field is immutable")
"""The field cannot be changed while it is there; one that is not there can be added."""

Metadata: TypeAlias = Annotated[TemplateMetadata | None, field_schema(shape=TEMPLATE_METADATA)]


class ContainerPatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a container."""

    name: Annotated[str, field_schema("The container.", min_length=1, max_length=253)]
    env: Annotated[Environment, field_schema("Variables of its environment.")] = []
    volume_mounts: Annotated[
        list[VolumeMount],
        field_schema("Volumes that it uses.", list_type="map", list_map_keys=["name"], max_items=128),
    ] = []
    security_context: Annotated[
        dict[str, Any] | None, field_schema("What it may do.", shape=KubernetesType("core.v1.SecurityContext"))
    ] = None


ContainerPatches: TypeAlias = Annotated[
    list[ContainerPatch],
    field_schema(list_type="map", list_map_keys=["name"], max_items=64, rules=[IMMUTABLE]),
]


class PodSpecPatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a pod. What decides where it runs may change later too, while the job is suspended."""

    service_account_name: Annotated[
        str, field_schema("The account that it runs under.", max_length=253, rules=[IMMUTABLE])
    ] = ""
    node_selector: Annotated[dict[str, str], field_schema("Labels of the nodes that it may run on.")] = {}
    affinity: Annotated[
        dict[str, Any] | None,
        field_schema("Where it would rather run.", shape=KubernetesType("core.v1.Affinity")),
    ] = None
    tolerations: Annotated[
        list[Toleration], field_schema("Taints that it puts up with.", list_type="atomic", max_items=128)
    ] = []
    volumes: Annotated[
        list[Volume],
        field_schema(
            "Volumes for its containers.", list_type="map", list_map_keys=["name"], max_items=128, rules=[IMMUTABLE]
        ),
    ] = []
    init_containers: Annotated[ContainerPatches, field_schema("Containers that run before the others.")] = []
    containers: Annotated[ContainerPatches, field_schema("Its containers.")] = []
    scheduling_gates: Annotated[
        list[SchedulingGate],
        field_schema(
            "What it waits for before a node is sought.", list_type="map", list_map_keys=["name"], max_items=16
        ),
    ] = []
    image_pull_secrets: Annotated[
        list[LocalReference],
        field_schema(
            "Secrets for fetching images.", list_type="map", list_map_keys=["name"], max_items=64, rules=[IMMUTABLE]
        ),
    ] = []
    security_context: Annotated[
        dict[str, Any] | None,
        field_schema("What it may do.", shape=KubernetesType("core.v1.PodSecurityContext"), rules=[IMMUTABLE]),
    ] = None
    termination_grace_period_seconds: Annotated[
        Int64 | None, field_schema("How long it may take to stop.", minimum=0, rules=[IMMUTABLE])
    ] = None


class PodTemplatePatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a pod template."""

    metadata: Annotated[Metadata, field_schema("Labels and annotations to add.")] = None
    spec: Annotated[PodSpecPatch | None, field_schema("The pods.")] = None


class JobSpecPatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a Job."""

    template: Annotated[PodTemplatePatch | None, field_schema("Its pods.")] = None


class JobTemplatePatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a Job template."""

    metadata: Annotated[Metadata, field_schema("Labels and annotations to add.")] = None
    spec: Annotated[JobSpecPatch | None, field_schema("The Jobs.")] = None


class ReplicatedJobPatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a replicated job."""

    name: Annotated[str, field_schema("The replicated job.", min_length=1, max_length=253)]
    template: Annotated[JobTemplatePatch | None, field_schema("Its Jobs.")] = None


class JobSetSpecPatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a JobSet."""

    replicated_jobs: Annotated[
        list[ReplicatedJobPatch],
        field_schema("Its replicated jobs.", list_type="map", list_map_keys=["name"], max_items=100),
    ] = []


class JobSetTemplatePatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a runtime's template."""

    metadata: Annotated[Metadata, field_schema("Labels and annotations to add to the JobSet.")] = None
    spec: Annotated[dict[str, Any], field_schema("The JobSet.", shape=JobSetSpecPatch)] = {}


class TrainingRuntimeSpecPatch(Wire, frozen=True, kw_only=True):
    """What may be changed of a runtime."""

    template: Annotated[JobSetTemplatePatch | None, field_schema("The template of its JobSets.")] = None


class RuntimePatch(Wire, frozen=True, kw_only=True):
    """Changes of a runtime for one TrainJob, made by one manager."""

    manager: Annotated[
        str, field_schema("Who makes them, such as acme.io/tuner.", min_length=1, max_length=253, rules=[IMMUTABLE])
    ]
    time: Annotated[datetime | None, field_schema("When they were last made.")] = None
    training_runtime_spec: Annotated[TrainingRuntimeSpecPatch | None, field_schema("The changes.")] = None
