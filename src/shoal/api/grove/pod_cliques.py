"""PodCliques: pods of one role, made from one template."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from shoal.api.crd import Column, CustomResource, Int32, Int64, KubernetesType, Scale, Version, field_schema
from shoal.api.grove.names import GROUP
from shoal.api.grove.parts import AutoScaling, LastError
from shoal.api.meta import Condition, Object, Resource, Wire

CLIQUE_SCHEDULED = "PodCliqueScheduled"
MIN_AVAILABLE_BREACHED = "MinAvailableBreached"
PODS_GATED = "PodsGated"
"""Conditions: enough pods have a node; too few are well; some may not be scheduled yet, and why."""


class PodCliqueSpec(Wire, frozen=True, kw_only=True):
    """Pods of one role: how many, made how, and after whom."""

    role_name: Annotated[str, field_schema("What the pods are for; unique in a set, the clique's name when unset.")] = (
        ""
    )
    pod_spec: Annotated[
        dict[str, Any], field_schema("The pods.", required=True, shape=KubernetesType("core.v1.PodSpec"))
    ] = {}
    replicas: Annotated[Int32, field_schema("How many pods.", required=True)] = 0
    min_available: Annotated[
        Int32 | None, field_schema("Pods that start together and below which the gang counts as broken.")
    ] = None
    starts_after: Annotated[list[str], field_schema("Cliques whose pods must be ready first.")] = []
    auto_scaling_config: Annotated[AutoScaling | None, field_schema("Lets an autoscaler choose the replicas.")] = None

    @property
    def minimum(self) -> int:
        """The pods that start together: all of them where nothing else was said."""
        return self.replicas if self.min_available is None else self.min_available


class PodsToUpdate(Wire, frozen=True, kw_only=True):
    """Which ready pods an update replaces, one at a time."""

    current: Annotated[str, field_schema("The pod that is replaced now.")]
    completed: Annotated[list[str], field_schema("The pods that were replaced.")] = []


class PodCliqueUpdate(Wire, frozen=True, kw_only=True):
    """How far an update of a clique is."""

    update_started_at: Annotated[datetime | None, field_schema("When it began.")] = None
    update_ended_at: Annotated[datetime | None, field_schema("When it ended; unset while it runs.")] = None
    pod_clique_set_generation_hash: Annotated[str, field_schema("The set's templates that it goes to.")]
    pod_template_hash: Annotated[str, field_schema("The clique's template that it goes to.")]
    ready_pods_selected_to_update: Annotated[PodsToUpdate | None, field_schema("The ready pods that it replaces.")] = (
        None
    )


class PodCliqueStatus(Wire, frozen=True, kw_only=True):
    """How a clique's pods are."""

    observed_generation: Annotated[Int64 | None, field_schema("The generation that was last acted on.")] = None
    conditions: Annotated[list[Condition], field_schema("The state of the clique.")] = []
    last_errors: Annotated[list[LastError], field_schema("What went wrong last.")] = []
    replicas: Annotated[Int32, field_schema("Pods that are not going.")] = 0
    ready_replicas: Annotated[Int32, field_schema("Pods that are ready.", default=0, required=True)] = 0
    updated_replicas: Annotated[Int32, field_schema("Pods of the wanted template.", default=0, required=True)] = 0
    schedule_gated_replicas: Annotated[
        Int32, field_schema("Pods that may not be scheduled yet.", default=0, required=True)
    ] = 0
    scheduled_replicas: Annotated[Int32, field_schema("Pods that have a node.", default=0, required=True)] = 0
    hpa_pod_selector: Annotated[str, field_schema("The pods, for autoscalers.")] = ""
    current_pod_clique_set_generation_hash: Annotated[str, field_schema("The set's templates that all pods have.")] = ""
    current_pod_template_hash: Annotated[str, field_schema("The template that all pods have.")] = ""
    update_progress: Annotated[PodCliqueUpdate | None, field_schema("The last update.")] = None


class PodClique(Object, frozen=True, kw_only=True):
    """Pods of one role, made from one template."""

    spec: Annotated[PodCliqueSpec, field_schema("What is asked for.", required=True)] = PodCliqueSpec()
    status: Annotated[PodCliqueStatus, field_schema("What there is.")] = PodCliqueStatus()


POD_CLIQUES = Resource(type=PodClique, group=GROUP, version="v1alpha1", kind="PodClique", plural="podcliques")

DEFINITION = CustomResource(
    versions=(
        Version(
            resource=POD_CLIQUES,
            status=True,
            scale=Scale(
                spec_replicas=".spec.replicas", status_replicas=".status.replicas", selector=".status.hpaPodSelector"
            ),
            columns=(
                Column(name="MinAvail", path=".spec.minAvailable", type="integer"),
                Column(name="Replicas", path=".spec.replicas", type="integer"),
                Column(name="Ready", path=".status.readyReplicas", type="integer"),
                Column(name="Scheduled", path=".status.scheduledReplicas", type="integer"),
                Column(name="Updated", path=".status.updatedReplicas", type="integer"),
                Column(name="Gated", path=".status.scheduleGatedReplicas", type="integer", priority=1),
                Column(
                    name="MinBreached",
                    path='.status.conditions[?(@.type=="MinAvailableBreached")].status',
                    priority=1,
                ),
                Column(name="Age", path=".metadata.creationTimestamp", type="date"),
            ),
        ),
    ),
    short_names=("pclq",),
)
