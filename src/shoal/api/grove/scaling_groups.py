"""PodCliqueScalingGroups: cliques that are scaled together."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from shoal.api.crd import Column, CustomResource, Int32, Int64, Scale, Version, field_schema
from shoal.api.grove.names import GROUP
from shoal.api.grove.parts import LastError
from shoal.api.meta import Condition, Object, Resource, Wire

GANG_TERMINATION_IN_PROGRESS = "GangTerminationInProgress"
"""Condition: the replica of the set that the group belongs to was torn down and has not recovered yet."""


class PodCliqueScalingGroupSpec(Wire, frozen=True, kw_only=True):
    """Which cliques are scaled together, and how often they are there."""

    replicas: Annotated[Int32, field_schema("How often the cliques are there.", default=1, required=True)] = 1
    min_available: Annotated[
        Int32 | None, field_schema("Replicas in the base gang, below which it counts as broken.", default=1)
    ] = None
    clique_names: Annotated[list[str], field_schema("The cliques of the set's template.", required=True)] = []

    @property
    def minimum(self) -> int:
        """The replicas that are part of the base gang."""
        return 1 if self.min_available is None else self.min_available


class ReplicasToUpdate(Wire, frozen=True, kw_only=True):
    """Which ready replicas an update replaces, one at a time."""

    current: Annotated[Int32, field_schema("The replica that is replaced now.")]
    completed: Annotated[list[Int32], field_schema("The replicas that were replaced.")] = []


class PodCliqueScalingGroupUpdate(Wire, frozen=True, kw_only=True):
    """How far an update of a scaling group is."""

    update_started_at: Annotated[datetime, field_schema("When it began.")]
    update_ended_at: Annotated[datetime | None, field_schema("When it ended; unset while it runs.")] = None
    pod_clique_set_generation_hash: Annotated[str, field_schema("The set's templates that it goes to.")]
    updated_pod_cliques_count: Annotated[Int32, field_schema("Cliques that are updated.", default=0)] = 0
    total_pod_cliques_count: Annotated[Int32, field_schema("Cliques that there are.", default=0)] = 0
    ready_replica_indices_selected_to_update: Annotated[
        ReplicasToUpdate | None, field_schema("The ready replicas that it replaces.")
    ] = None


class PodCliqueScalingGroupStatus(Wire, frozen=True, kw_only=True):
    """How a scaling group's replicas are."""

    observed_generation: Annotated[Int64 | None, field_schema("The generation that was last acted on.")] = None
    conditions: Annotated[list[Condition], field_schema("The state of the group.")] = []
    last_errors: Annotated[list[LastError], field_schema("What went wrong last.")] = []
    replicas: Annotated[Int32, field_schema("Replicas that are wanted.")] = 0
    scheduled_replicas: Annotated[
        Int32, field_schema("Replicas with enough pods on nodes.", default=0, required=True)
    ] = 0
    available_replicas: Annotated[Int32, field_schema("Replicas with enough ready pods.", default=0, required=True)] = 0
    updated_replicas: Annotated[
        Int32, field_schema("Available replicas of the wanted templates.", default=0, required=True)
    ] = 0
    selector: Annotated[str, field_schema("The pods, for autoscalers.")] = ""
    current_pod_clique_set_generation_hash: Annotated[
        str, field_schema("The set's templates that all replicas have.")
    ] = ""
    update_progress: Annotated[PodCliqueScalingGroupUpdate | None, field_schema("The last update.")] = None


class PodCliqueScalingGroup(Object, frozen=True, kw_only=True):
    """Cliques that are scaled together."""

    spec: Annotated[PodCliqueScalingGroupSpec, field_schema("What is asked for.", required=True)] = (
        PodCliqueScalingGroupSpec()
    )
    status: Annotated[PodCliqueScalingGroupStatus, field_schema("What there is.")] = PodCliqueScalingGroupStatus()


SCALING_GROUPS = Resource(
    type=PodCliqueScalingGroup,
    group=GROUP,
    version="v1alpha1",
    kind="PodCliqueScalingGroup",
    plural="podcliquescalinggroups",
)

DEFINITION = CustomResource(
    versions=(
        Version(
            resource=SCALING_GROUPS,
            status=True,
            scale=Scale(
                spec_replicas=".spec.replicas", status_replicas=".status.replicas", selector=".status.selector"
            ),
            columns=(
                Column(name="MinAvail", path=".spec.minAvailable", type="integer"),
                Column(name="Replicas", path=".spec.replicas", type="integer"),
                Column(name="Available", path=".status.availableReplicas", type="integer"),
                Column(name="Scheduled", path=".status.scheduledReplicas", type="integer"),
                Column(name="Updated", path=".status.updatedReplicas", type="integer"),
                Column(name="PCLQs-Updated", path=".status.updateProgress.updatedPodCliquesCount", type="integer"),
                Column(name="PCLQs-Total", path=".status.updateProgress.totalPodCliquesCount", type="integer"),
                Column(
                    name="MinBreached",
                    path='.status.conditions[?(@.type=="MinAvailableBreached")].status',
                    priority=1,
                ),
                Column(name="Age", path=".metadata.creationTimestamp", type="date"),
            ),
        ),
    ),
    short_names=("pcsg",),
)
