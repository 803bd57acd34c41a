"""PodCliqueSets: whole workloads of several roles, each replica a gang."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from shoal.api.crd import (
    Column,
    CustomResource,
    Int32,
    Int64,
    KubernetesType,
    Rule,
    Scale,
    Version,
    field_schema,
    struct_schema,
)
from shoal.api.grove.names import GROUP
from shoal.api.grove.parts import AutoScaling, CliqueSharing, GroupSharing, LastError, SetSharing, TopologyConstraint
from shoal.api.grove.pod_cliques import PodCliqueSpec
from shoal.api.meta import Condition, Object, Resource, Wire

ANY_ORDER = "CliqueStartupTypeAnyOrder"
IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"
"""In what order cliques start."""

ROLLING_RECREATE = "RollingRecreate"
ON_DELETE = "OnDelete"
"""How a change of templates reaches pods."""

TOPOLOGY_LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
"""Condition: a topology that the set asks for is not there."""


class CliqueTemplate(Wire, frozen=True, kw_only=True):
    """One role of a workload."""

    name: Annotated[str, field_schema("Unique in the set.")]
    labels: Annotated[dict[str, str], field_schema("Labels of the clique and its pods.")] = {}
    annotations: Annotated[dict[str, str], field_schema("Annotations of the clique and its pods.")] = {}
    spec: Annotated[PodCliqueSpec, field_schema("The pods.")]
    topology_constraint: Annotated[
        TopologyConstraint | None, field_schema("How close together the clique's pods run.")
    ] = None
    resource_sharing: Annotated[list[CliqueSharing], field_schema("Claims that the clique's pods share.")] = []


class ScalingGroupTemplate(Wire, frozen=True, kw_only=True):
    """Cliques that are scaled together."""

    name: Annotated[str, field_schema("Unique in the set.")]
    clique_names: Annotated[list[str], field_schema("The cliques.")]
    annotations: Annotated[dict[str, str], field_schema("Annotations of the scaling group.")] = {}
    replicas: Annotated[Int32 | None, field_schema("How often the cliques are there.", default=1)] = None
    min_available: Annotated[
        Int32 | None, field_schema("Replicas in the base gang, below which it counts as broken.", default=1)
    ] = None
    scale_config: Annotated[AutoScaling | None, field_schema("Lets an autoscaler choose the replicas.")] = None
    resource_sharing: Annotated[list[GroupSharing], field_schema("Claims that the group's pods share.")] = []
    topology_constraint: Annotated[
        TopologyConstraint | None, field_schema("How close together each replica's pods run.")
    ] = None

    @property
    def count(self) -> int:
        """How often the cliques are there at first."""
        return 1 if self.replicas is None else self.replicas

    @property
    def minimum(self) -> int:
        """The replicas that are part of the base gang."""
        return 1 if self.min_available is None else self.min_available


class HeadlessServiceConfig(Wire, frozen=True, kw_only=True):
    """How the pods of a replica are found by name."""

    publish_not_ready_addresses: Annotated[
        bool | None, field_schema("Also pods that are not ready.", default=True, required=True)
    ] = None


class ClaimTemplate(Wire, frozen=True, kw_only=True):
    """A template of claims that pods of the set may share."""

    name: Annotated[str, field_schema("Unique in the set.")]
    template_spec: Annotated[
        dict[str, Any],
        field_schema("As in a ResourceClaimTemplate.", shape=KubernetesType("resource.v1.ResourceClaimTemplateSpec")),
    ]


class PodCliqueSetTemplate(Wire, frozen=True, kw_only=True):
    """What each replica of a set is made of."""

    cliques: Annotated[list[CliqueTemplate], field_schema("The roles.", list_type="map", list_map_keys=["name"])]
    clique_startup_type: Annotated[
        str, field_schema("In what order cliques start.", default=ANY_ORDER, enum=(ANY_ORDER, IN_ORDER, EXPLICIT))
    ] = ""
    priority_class_name: Annotated[str, field_schema("The PriorityClass of all pods.")] = ""
    headless_service_config: Annotated[
        HeadlessServiceConfig | None, field_schema("How the pods of a replica are found by name.")
    ] = None
    topology_constraint: Annotated[
        TopologyConstraint | None, field_schema("How close together each replica's pods run.")
    ] = None
    termination_delay: Annotated[
        str | None, field_schema("How long a gang may be broken before it is torn down, as in 4h.")
    ] = None
    resource_claim_templates: Annotated[
        list[ClaimTemplate], field_schema("Templates of claims that pods may share.")
    ] = []
    resource_sharing: Annotated[list[SetSharing], field_schema("Claims that the set's pods share.")] = []
    pod_clique_scaling_groups: Annotated[list[ScalingGroupTemplate], field_schema("Cliques scaled together.")] = []


UpdateType: TypeAlias = Literal["RollingRecreate", "OnDelete"]


class UpdateStrategy(Wire, frozen=True, kw_only=True):
    """How a change of templates reaches pods."""

    type: Annotated[
        UpdateType | None,
        field_schema("One by one, or when someone deletes them.", default="RollingRecreate"),
    ] = None


class PodCliqueSetSpec(Wire, frozen=True, kw_only=True):
    """A workload: how often it is there, and what each replica is made of."""

    replicas: Annotated[Int32, field_schema("How often the whole workload is there.", default=0)] = 0
    update_strategy: Annotated[UpdateStrategy | None, field_schema("How a change of templates reaches pods.")] = None
    template: Annotated[PodCliqueSetTemplate, field_schema("What each replica is made of.")]

    @property
    def updates_on_delete(self) -> bool:
        """Whether pods change only when someone deletes them."""
        return self.update_strategy is not None and self.update_strategy.type == ON_DELETE


class GangStatus(Wire, frozen=True, kw_only=True):
    """How one of a set's gangs is."""

    name: Annotated[str, field_schema("The PodGang.")]
    phase: Annotated[
        str, field_schema("How far it is.", enum=("Pending", "Starting", "Running", "Failed", "Succeeded"))
    ]
    conditions: Annotated[list[Condition], field_schema("Its state.")] = []


class ReplicaUpdate(Wire, frozen=True, kw_only=True):
    """A replica that is being updated."""

    replica_index: Annotated[Int32, field_schema("The replica.")]
    update_started_at: Annotated[datetime | None, field_schema("When it began.")] = None
    update_ended_at: Annotated[datetime | None, field_schema("When it ended.")] = None


class PodCliqueSetUpdate(Wire, frozen=True, kw_only=True):
    """How far an update of a set is."""

    update_started_at: Annotated[datetime | None, field_schema("When it began.")] = None
    update_ended_at: Annotated[datetime | None, field_schema("When it ended; unset while it runs.")] = None
    updated_pod_cliques_count: Annotated[Int32, field_schema("Cliques that are updated.", default=0)] = 0
    total_pod_cliques_count: Annotated[Int32, field_schema("Cliques that there are.", default=0)] = 0
    updated_pod_clique_scaling_groups_count: Annotated[
        Int32, field_schema("Scaling groups that are updated.", default=0)
    ] = 0
    total_pod_clique_scaling_groups_count: Annotated[
        Int32, field_schema("Scaling groups that there are.", default=0)
    ] = 0
    currently_updating: Annotated[list[ReplicaUpdate], field_schema("The replicas in work.")] = []


class PodCliqueSetStatus(Wire, frozen=True, kw_only=True):
    """How a workload is."""

    observed_generation: Annotated[Int64 | None, field_schema("The generation that was last acted on.")] = None
    conditions: Annotated[list[Condition], field_schema("The state of the workload.")] = []
    last_errors: Annotated[list[LastError], field_schema("What went wrong last.")] = []
    replicas: Annotated[Int32, field_schema("Replicas that are wanted.")] = 0
    updated_replicas: Annotated[Int32, field_schema("Replicas of the wanted templates.", default=0, required=True)] = 0
    available_replicas: Annotated[Int32, field_schema("Replicas with enough ready pods.", default=0, required=True)] = 0
    hpa_pod_selector: Annotated[str, field_schema("The pods, for autoscalers.")] = ""
    pod_gang_statuses: Annotated[list[GangStatus], field_schema("How each gang is.")] = []
    current_generation_hash: Annotated[str, field_schema("The templates that are wanted.")] = ""
    update_progress: Annotated[PodCliqueSetUpdate | None, field_schema("The last update.")] = None


def _not_in_new_ones(holds: str, field_path: str) -> Rule:
    """A constraint by packDomain is kept where it is, and refused in a set that is made now."""
    return Rule(
        f"oldSelf.hasValue() || {holds}",
        "a new PodCliqueSet cannot use packDomain: set pack.required instead",
        reason="FieldValueForbidden",
        field_path=field_path,
        optional_old_self=True,
    )


def _none_of(field: str, each: str) -> str:
    """That no part of a set's template has a constraint by packDomain."""
    parts = f"self.spec.template.{field}"
    constraint = f"{each}.topologyConstraint"
    return f"!has({parts}) || {parts}.all({each}, !has({constraint}) || !has({constraint}.packDomain))"


_CONSTRAINT = "self.spec.template.topologyConstraint"


class PodCliqueSet(Object, frozen=True, kw_only=True):
    """A workload of several roles; each of its replicas starts as a whole or not at all."""

    SCHEMA = struct_schema(
        rules=[
            _not_in_new_ones(
                f"!has({_CONSTRAINT}) || !has({_CONSTRAINT}.packDomain)",
                ".spec.template.topologyConstraint.packDomain",
            ),
            _not_in_new_ones(_none_of("cliques", "c"), ".spec.template.cliques"),
            _not_in_new_ones(_none_of("podCliqueScalingGroups", "g"), ".spec.template.podCliqueScalingGroups"),
        ]
    )

    spec: Annotated[PodCliqueSetSpec, field_schema("What is asked for.")]
    status: Annotated[PodCliqueSetStatus, field_schema("What there is.")] = PodCliqueSetStatus()


POD_CLIQUE_SETS = Resource(
    type=PodCliqueSet, group=GROUP, version="v1alpha1", kind="PodCliqueSet", plural="podcliquesets"
)

DEFINITION = CustomResource(
    versions=(
        Version(
            resource=POD_CLIQUE_SETS,
            status=True,
            scale=Scale(
                spec_replicas=".spec.replicas", status_replicas=".status.replicas", selector=".status.hpaPodSelector"
            ),
            columns=(
                Column(name="Replicas", path=".spec.replicas", type="integer"),
                Column(name="Available", path=".status.availableReplicas", type="integer"),
                Column(name="Updated", path=".status.updatedReplicas", type="integer"),
                Column(name="PCLQs-Updated", path=".status.updateProgress.updatedPodCliquesCount", type="integer"),
                Column(name="PCLQs-Total", path=".status.updateProgress.totalPodCliquesCount", type="integer"),
                Column(
                    name="PCSGs-Updated",
                    path=".status.updateProgress.updatedPodCliqueScalingGroupsCount",
                    type="integer",
                ),
                Column(
                    name="PCSGs-Total", path=".status.updateProgress.totalPodCliqueScalingGroupsCount", type="integer"
                ),
                Column(name="Age", path=".metadata.creationTimestamp", type="date"),
            ),
        ),
    ),
    short_names=("pcs",),
)
