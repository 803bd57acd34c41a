"""The schemas of what a JobSet embeds of Kubernetes' own kinds: templates of Jobs, and of volume claims.

Both stay plain JSON values when they are read. These types say only what the API server holds a writer to.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

from shoal.api.crd import Int32, Int64, KubernetesType, field_schema
from shoal.api.meta import LabelSelector, QuantityString, Wire

_Metadata: TypeAlias = Annotated[
    dict[str, Any], field_schema(shape=KubernetesType("meta.v1.ObjectMeta", has_metadata=True))
]
_PodTemplate: TypeAlias = Annotated[
    dict[str, Any], field_schema(shape=KubernetesType("core.v1.PodTemplateSpec", has_metadata=True))
]
_ClaimSpec: TypeAlias = Annotated[
    dict[str, Any], field_schema(shape=KubernetesType("core.v1.PersistentVolumeClaimSpec"))
]


class ExitCodesShape(Wire, frozen=True, kw_only=True):
    """The exit codes that a rule for failed pods is about."""

    container_name: Annotated[str | None, field_schema("The container; any where unset.")] = None
    operator: Annotated[str, field_schema("In or NotIn.")]
    values: Annotated[list[Int32], field_schema("The codes.", list_type="set")]


class PodConditionShape(Wire, frozen=True, kw_only=True):
    """A condition of a pod that a rule for failed pods is about."""

    type: Annotated[str, field_schema("The condition.")]
    status: Annotated[str, field_schema("Its status.")] = ""


class PodFailureRuleShape(Wire, frozen=True, kw_only=True):
    """What to do about a pod that failed in a certain way."""

    action: Annotated[str, field_schema("FailJob, FailIndex, Ignore or Count.")]
    on_exit_codes: Annotated[ExitCodesShape | None, field_schema("By exit code.")] = None
    on_pod_conditions: Annotated[
        list[PodConditionShape], field_schema("By the pod's conditions.", list_type="atomic")
    ] = []


class PodFailurePolicyShape(Wire, frozen=True, kw_only=True):
    """Rules for failed pods; the first that matches decides."""

    rules: Annotated[list[PodFailureRuleShape], field_schema("The rules.", list_type="atomic")]


class SuccessRuleShape(Wire, frozen=True, kw_only=True):
    """Indexes whose success is enough."""

    succeeded_indexes: Annotated[str | None, field_schema("Which.")] = None
    succeeded_count: Annotated[Int32 | None, field_schema("How many.")] = None


class JobSuccessPolicyShape(Wire, frozen=True, kw_only=True):
    """Rules by which a Job succeeds before all of its indexes have."""

    rules: Annotated[list[SuccessRuleShape], field_schema("The rules.", list_type="atomic")]


class JobSpecShape(Wire, frozen=True, kw_only=True):
    """A Job's specification, as in batch/v1."""

    active_deadline_seconds: Annotated[Int64 | None, field_schema("How long the Job may run.")] = None
    backoff_limit: Annotated[Int32 | None, field_schema("How many of its pods may fail.")] = None
    backoff_limit_per_index: Annotated[Int32 | None, field_schema("How many pods of one index may fail.")] = None
    completion_mode: Annotated[str | None, field_schema("Indexed or NonIndexed.")] = None
    completions: Annotated[Int32 | None, field_schema("How many pods must succeed.")] = None
    managed_by: Annotated[str | None, field_schema("Who looks after the Job.")] = None
    manual_selector: Annotated[bool | None, field_schema("Whether the selector was written by hand.")] = None
    max_failed_indexes: Annotated[Int32 | None, field_schema("How many indexes may fail.")] = None
    parallelism: Annotated[Int32 | None, field_schema("How many pods run at once.")] = None
    pod_failure_policy: Annotated[PodFailurePolicyShape | None, field_schema("What to do about failed pods.")] = None
    pod_replacement_policy: Annotated[str | None, field_schema("When a pod is replaced.")] = None
    selector: Annotated[LabelSelector | None, field_schema("The Job's pods; made by the server.")] = None
    success_policy: Annotated[JobSuccessPolicyShape | None, field_schema("When the Job has succeeded early.")] = None
    suspend: Annotated[bool | None, field_schema("Whether the Job waits.")] = None
    template: Annotated[_PodTemplate, field_schema("The pods.")]
    ttl_seconds_after_finished: Annotated[Int32 | None, field_schema("How long the Job is kept after its end.")] = None


class JobTemplateShape(Wire, frozen=True, kw_only=True):
    """A template of Jobs, as in a CronJob."""

    metadata: Annotated[_Metadata, field_schema("Labels and annotations of each Job.")] = {}
    spec: Annotated[JobSpecShape | None, field_schema("What each Job runs.")] = None


class ClaimConditionShape(Wire, frozen=True, kw_only=True):
    """One thing that is known of a claim."""

    last_probe_time: Annotated[datetime | None, field_schema("When this was last looked at.")] = None
    last_transition_time: Annotated[datetime | None, field_schema("When it last changed.")] = None
    message: Annotated[str, field_schema("In words.")] = ""
    reason: Annotated[str, field_schema("In one word.")] = ""
    status: Annotated[str, field_schema("True, False or Unknown.")]
    type: Annotated[str, field_schema("What is known.")]


class ModifyVolumeShape(Wire, frozen=True, kw_only=True):
    """How a change of a claim's attributes class goes."""

    status: Annotated[str, field_schema("How far it is.")]
    target_volume_attributes_class_name: Annotated[str, field_schema("The class that is wanted.")] = ""


_Quantities: TypeAlias = dict[str, QuantityString]


class ClaimStatusShape(Wire, frozen=True, kw_only=True):
    """A claim's status, which is admitted in a template and means nothing there."""

    access_modes: Annotated[list[str], field_schema("How it may be mounted.", list_type="atomic")] = []
    allocated_resource_statuses: Annotated[
        dict[str, str], field_schema("How far a change of its size is.", map_type="granular")
    ] = {}
    allocated_resources: Annotated[_Quantities, field_schema("What is set aside for it.")] = {}
    capacity: Annotated[_Quantities, field_schema("What it has.")] = {}
    conditions: Annotated[
        list[ClaimConditionShape], field_schema("What is known of it.", list_type="map", list_map_keys=["type"])
    ] = []
    current_volume_attributes_class_name: Annotated[str | None, field_schema("The class that it has.")] = None
    modify_volume_status: Annotated[ModifyVolumeShape | None, field_schema("How a change of class goes.")] = None
    phase: Annotated[str, field_schema("Pending, Bound or Lost.")] = ""


class ClaimTemplateShape(Wire, frozen=True, kw_only=True):
    """A template of volume claims."""

    api_version: Annotated[str, field_schema("Always v1.")] = ""
    kind: Annotated[str, field_schema("Always PersistentVolumeClaim.")] = ""
    metadata: Annotated[_Metadata, field_schema("The template's name, and labels and annotations of the claim.")] = {}
    spec: Annotated[_ClaimSpec, field_schema("What is claimed.")] = {}
    status: Annotated[ClaimStatusShape | None, field_schema("Not used.")] = None


JobTemplate: TypeAlias = Annotated[dict[str, Any], field_schema(shape=JobTemplateShape)]
ClaimTemplate: TypeAlias = Annotated[dict[str, Any], field_schema(shape=ClaimTemplateShape)]
